"""AlterShareGroupOffsets, before it is decided and while states are created."""

from barnabas.broker.group.share.offsets import alteration
from barnabas.client.requests.share_groups import alter_share_group_offsets
from barnabas.protocol.errors import ErrorCode
from tests.broker.group.harness import FewTopics
from tests.broker.group.share.harness import group_of, result_of


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


def test_a_deletion_that_begins_while_states_are_created_is_not_undone():
    group = group_of(("t", 2))
    group.alter(("t", 0, 5), ("t", 1, 5))
    group.states.holds = True
    group.alter(("t", 0, 7), ("t", 1, 7))
    group.forget("t")
    group.states.go_on()
    assert not group.states.states
    assert not group.group.state_partitions.initialized
    group.states.holds = False
    group.join("a", "t")
    group.settle("a")
    assert group.owned["a"] == {"t": [0, 1]}
    assert len(group.states.states) == 2
