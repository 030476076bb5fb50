"""How partitions are named in requests. What the requests do, brokers say: see the tests of the command line."""

from broker.cli.client.client import TopicPartition
from broker.cli.client.offsets import by_topic, list_offsets


def test_each_topic_is_named_once():
    partitions = [TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("b", 0)]
    assert by_topic(partitions) == [("a", [2]), ("b", [0, 1])]
    assert by_topic([]) == []


def test_nobody_is_asked_about_nothing():
    assert list_offsets(None, {}) == {}
