"""Each error is the one that Apache Kafka 4.3 gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.controller import znodes
from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.controller.reassignments import (
    Reassignment,
    alter_partition_reassignments,
    finish_reassignments,
    target_replicas,
)
from barnabas.broker.registry.tree_operations import Set
from barnabas.protocol.errors import ErrorCode
from tests.broker.controller.cluster import Cluster, codes


def on_the_move(cluster: Cluster) -> list[PartitionImage]:
    return [
        partition
        for topic in cluster.view.topics.values()
        for partition in topic.partitions
        if partition.is_reassigning
    ]


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
    assert on_the_move(cluster) == []


def test_a_move_is_recorded_listed_and_cancelled() -> None:
    cluster = Cluster(brokers=(1, 2, 3), topics={"t": [(1, 2), (1, 2)]})
    decision = alter_partition_reassignments(cluster.view, [Reassignment("t", 1, (3, 2))])
    assert codes(decision) == [ErrorCode.NONE]
    cluster.carry_out(decision)
    moving = PartitionImage(1, (3, 2, 1), 1, 1, (1, 2), 1, adding_replicas=(3,), removing_replicas=(1,))
    assert cluster.view.topics["t"].partitions[1] == moving
    assert on_the_move(cluster) == [moving]

    elsewhere = alter_partition_reassignments(cluster.view, [Reassignment("t", 1, (2, 3))])
    cluster.carry_out(elsewhere)
    assert cluster.view.topics["t"].partitions[1].replica_nodes == (2, 3, 1)

    cluster.carry_out(alter_partition_reassignments(cluster.view, [Reassignment("t", 1, None)]))
    assert cluster.view.topics["t"].partitions[1] == PartitionImage(1, (2, 1), 1, 2, (1, 2), 2)
    assert on_the_move(cluster) == []


def test_replicas_that_are_only_removed_are_gone_at_once() -> None:
    cluster = Cluster(brokers=(1, 2, 3), topics={"t": [(1, 2, 3)]})
    cluster.carry_out(alter_partition_reassignments(cluster.view, [Reassignment("t", 0, (3, 2))]))
    assert cluster.view.topics["t"].partitions[0] == PartitionImage(0, (3, 2), 3, 1, (2, 3), 1)


def test_a_replica_that_is_down_may_stay_but_not_be_added() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1, 3)]})
    decision = alter_partition_reassignments(cluster.view, [Reassignment("t", 0, (3, 2)), Reassignment("t", 0, (1, 4))])
    assert codes(decision) == [ErrorCode.NONE, ErrorCode.INVALID_REPLICA_ASSIGNMENT]


def test_a_move_is_not_cancelled_if_records_would_be_lost() -> None:
    """Only a new replica is in sync."""
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1,)]})
    cluster.carry_out(alter_partition_reassignments(cluster.view, [Reassignment("t", 0, (2,))]))
    state = znodes.write_state(PartitionImage(0, (), 2, 5, (2,)), 1)
    cluster.registry.apply([Set(znodes.state_path("t", 0), state)])
    called_off = [Reassignment("t", 0, None)]
    assert codes(alter_partition_reassignments(cluster.view, called_off)) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    cluster.carry_out(alter_partition_reassignments(cluster.view, called_off, unclean_allowed=lambda topic: True))
    assert cluster.view.topics["t"].partitions[0] == PartitionImage(0, (1,), 1, 6, (1,), 3)


@given(
    replicas=st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True),
    targets=st.lists(
        st.none() | st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True).map(tuple), min_size=1, max_size=4
    ),
    data=st.data(),
)
def test_a_moving_partition_is_always_led_by_a_replica_in_sync(
    replicas: list[int], targets: list[tuple[int, ...] | None], data: st.DataObject
) -> None:
    cluster = Cluster(brokers=range(1, 7), topics={"t": [tuple(replicas)]})
    for target in targets:
        before = cluster.view.topics["t"].partitions[0]
        cluster.carry_out(alter_partition_reassignments(cluster.view, [Reassignment("t", 0, target)]))
        check(before, cluster.view.topics["t"].partitions[0])
        # Some of the new replicas catch up.
        partition = cluster.view.topics["t"].partitions[0]
        more = data.draw(st.sets(st.sampled_from(partition.replica_nodes)))
        isr = (*partition.isr_nodes, *(more - {*partition.isr_nodes}))
        state = znodes.write_state(partition._replace(isr_nodes=isr), 1)
        cluster.registry.apply([Set(znodes.state_path("t", 0), state)])
        before = cluster.view.topics["t"].partitions[0]
        cluster.registry.apply(finish_reassignments(cluster.view, cluster.view.topics.values()))
        after = cluster.view.topics["t"].partitions[0]
        check(before, after)
        if before.is_reassigning and {*target_replicas(before)} <= {*before.isr_nodes}:
            assert not after.is_reassigning


def check(before: PartitionImage, after: PartitionImage) -> None:
    assert after.leader_id in after.isr_nodes
    assert {*after.isr_nodes} <= {*after.replica_nodes}
    assert {*after.adding_replicas, *after.removing_replicas} <= {*after.replica_nodes}
    assert {*after.isr_nodes} <= {*before.isr_nodes}  # a move never puts a replica in sync
    if {*after.replica_nodes} != {*before.replica_nodes} or after.leader_id != before.leader_id:
        assert after.leader_epoch > before.leader_epoch
    if before.is_reassigning and not after.is_reassigning:
        assert {*after.replica_nodes} <= {*before.replica_nodes}


def test_another_order_of_the_same_replicas_is_not_a_move() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1, 2)]})
    cluster.carry_out(alter_partition_reassignments(cluster.view, [Reassignment("t", 0, (2, 1))]))
    assert cluster.view.topics["t"].partitions[0] == PartitionImage(0, (2, 1), 1, 0, (1, 2), 0)


def test_several_partitions_of_a_topic_change_its_node_once() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1,), (1,)]})
    moves = [Reassignment("t", 0, (2,)), Reassignment("t", 1, (2,)), Reassignment("t", 1, None)]
    decision = alter_partition_reassignments(cluster.view, moves)
    assert codes(decision) == [ErrorCode.NONE] * 3
    assert [each.path for each in decision.operations].count("/brokers/topics/t") == 1
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
