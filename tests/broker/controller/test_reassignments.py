"""Each error is the one that Apache Kafka 4.3 gives."""

import pytest

from broker.controller.images import PartitionImage
from broker.controller.reassignments import (
    Reassignment,
    alter_partition_reassignments,
    list_partition_reassignments,
)
from protocol.errors import ErrorCode
from tests.broker.controller.cluster import Cluster, codes


@pytest.mark.parametrize(
    ("reassignment", "code"),
    [
        (Reassignment("t", 0, (1,)), ErrorCode.NONE),  # where it is already
        (Reassignment("t", 0, None), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (Reassignment("nosuch", 0, (1,)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Reassignment("nosuch", 0, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Reassignment("t", 9, (1,)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Reassignment("t", -1, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Reassignment("t", 0, (7,)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Reassignment("t", 0, (1, 1)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Reassignment("t", 0, ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Reassignment("t", 0, (-1,)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_on_one_broker(reassignment: Reassignment, code: ErrorCode) -> None:
    cluster = Cluster(topics={"t": [(1,)]})
    decision = alter_partition_reassignments(cluster.view, [reassignment])
    assert codes(decision) == [code]
    assert not decision.operations
    assert list_partition_reassignments(cluster.view, None) == []


def test_a_move_is_noted_listed_and_called_off() -> None:
    cluster = Cluster(brokers=(1, 2, 3), topics={"t": [(1, 2), (1, 2)]})
    decision = alter_partition_reassignments(cluster.view, [Reassignment("t", 1, (3, 2))])
    assert codes(decision) == [ErrorCode.NONE]
    cluster.carry_out(decision)
    moving = PartitionImage(1, (3, 2, 1), 1, 0, (1, 2), 0, adding_replicas=(3,), removing_replicas=(1,))
    assert cluster.view.topics["t"].partitions[1] == moving
    assert list_partition_reassignments(cluster.view, None) == [("t", moving)]
    assert list_partition_reassignments(cluster.view, [("t", 0), ("t", 1), ("t", 7), ("u", 0)]) == [("t", moving)]

    elsewhere = alter_partition_reassignments(cluster.view, [Reassignment("t", 1, (2, 3))])
    cluster.carry_out(elsewhere)
    assert cluster.view.topics["t"].partitions[1].replica_nodes == (2, 3, 1)

    cluster.carry_out(alter_partition_reassignments(cluster.view, [Reassignment("t", 1, None)]))
    assert cluster.view.topics["t"].partitions[1] == PartitionImage(1, (2, 1), 1, 0, (1, 2), 0)
    assert list_partition_reassignments(cluster.view, None) == []


def test_another_order_of_the_same_replicas_is_no_move() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1, 2)]})
    cluster.carry_out(alter_partition_reassignments(cluster.view, [Reassignment("t", 0, (2, 1))]))
    assert cluster.view.topics["t"].partitions[0] == PartitionImage(0, (2, 1), 1, 0, (1, 2), 0)


def test_several_partitions_of_a_topic_change_its_node_once() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1,), (1,)]})
    moves = [Reassignment("t", 0, (2,)), Reassignment("t", 1, (2,)), Reassignment("t", 1, None)]
    decision = alter_partition_reassignments(cluster.view, moves)
    assert codes(decision) == [ErrorCode.NONE] * 3
    assert len(decision.operations) == 1
    cluster.carry_out(decision)
    assert [partition.is_reassigning for partition in cluster.view.topics["t"].partitions] == [True, False]


def test_the_replication_factor_may_have_to_stay() -> None:
    cluster = Cluster(brokers=(1, 2, 3), topics={"t": [(1, 2)]})
    for replicas in ((1,), (1, 2, 3)):
        decision = alter_partition_reassignments(
            cluster.view, [Reassignment("t", 0, replicas)], allow_replication_factor_change=False
        )
        assert codes(decision) == [ErrorCode.INVALID_REPLICATION_FACTOR]
    allowed = alter_partition_reassignments(
        cluster.view, [Reassignment("t", 0, (3, 1))], allow_replication_factor_change=False
    )
    assert codes(allowed) == [ErrorCode.NONE]
