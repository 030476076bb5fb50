"""How requests name partitions. The tests of the command line show what the requests do."""

from barnabas.client.offsets import by_topic, list_offsets
from barnabas.protocol.topic_partition import TopicPartition


def test_each_topic_is_named_once():
    partitions = [TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("b", 0)]
    assert by_topic(partitions) == [("a", [2]), ("b", [0, 1])]
    assert by_topic([]) == []


def test_without_partitions_no_request_is_sent():
    assert list_offsets(None, {}) == {}
