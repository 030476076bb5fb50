"""AlterShareGroupOffsets, before it is decided."""

from barnabas.broker.group.share.offsets import alteration
from barnabas.client.requests.share_groups import alter_share_group_offsets
from barnabas.protocol.errors import ErrorCode
from tests.broker.group.harness import FewTopics
from tests.broker.group.share.harness import result_of


def wanted(*indexes):
    topics = FewTopics()
    topics.create("t", 2)
    return alteration(topics, alter_share_group_offsets("g", *(("t", index, 5) for index in indexes)).topics)


def test_each_partition_of_a_request_is_a_step():
    assert sum(1 for _ in wanted(*range(1000))) > 1000


def test_only_partitions_that_there_are_begin_elsewhere():
    starts, asked, response = result_of(wanted(0, 1, 2, -1))
    assert list(starts.values()) == [{0: 5, 1: 5}]
    assert [each.partitions for each in asked.values()] == [{0, 1}]
    assert [each.error_code for each in response.responses[0].partitions] == [
        *[ErrorCode.NONE] * 2,
        *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2,
    ]
