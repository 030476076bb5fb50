"""Each error is the one that Apache Kafka 4.3 gives, except for too many partitions, where it just fails."""

import pytest

from barnabas.broker.controller.create_partitions import NewPartitions, create_partitions
from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.controller.reassignments import Reassignment, alter_partition_reassignments
from barnabas.broker.registry.errors import BadVersion
from barnabas.protocol.errors import ErrorCode
from tests.broker.controller.cluster import Cluster, codes, topic_id_of


def test_partitions_are_added() -> None:
    cluster = Cluster(brokers=(1, 2, 3), topics={"t": [(2, 3)]})
    old = cluster.view.topics["t"].partitions[0]
    decision = create_partitions(cluster.view, [NewPartitions("t", 4)])
    assert codes(decision) == [ErrorCode.NONE]
    cluster.carry_out(decision)
    topic = cluster.view.topics["t"]
    assert topic.topic_id == topic_id_of("t")
    assert topic.partitions == (
        old,
        PartitionImage(1, (3, 2), 3, 0, (3, 2), partition_epoch=0),
        PartitionImage(2, (1, 3), 1, 0, (1, 3), partition_epoch=0),
        PartitionImage(3, (2, 3), 2, 0, (2, 3), partition_epoch=0),
    )


def test_with_a_manual_assignment() -> None:
    cluster = Cluster(brokers=(1, 2, 3), topics={"t": [(2, 3)]})
    cluster.carry_out(create_partitions(cluster.view, [NewPartitions("t", 3, [[1, 2], [3, 1]])]))
    assert [partition.replica_nodes for partition in cluster.view.topics["t"].partitions] == [(2, 3), (1, 2), (3, 1)]


def test_the_first_broker_may_be_gone() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(9,)]})
    cluster.carry_out(create_partitions(cluster.view, [NewPartitions("t", 2)]))
    assert cluster.view.topics["t"].partitions[1].replica_nodes == (2,)


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewPartitions("nosuch", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions("a b", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions("t", 2), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 0), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", -1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 2, [[1]]), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 10_003), ErrorCode.POLICY_VIOLATION),
        (NewPartitions("t", 4, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[1], [1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[7]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[1, 2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("wide", 2), ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_what_cannot_be_added(new: NewPartitions, code: ErrorCode) -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1,), (1,)], "wide": [(1, 2, 3)]})
    decision = create_partitions(cluster.view, [new])
    assert codes(decision) == [code]
    assert not decision.operations


def test_a_name_that_occurs_twice() -> None:
    cluster = Cluster(topics={"t": [(1,)], "u": [(1,)]})
    decision = create_partitions(cluster.view, [NewPartitions("t", 3), NewPartitions("u", 2), NewPartitions("t", 4)])
    assert {result.name: result.error_code for result in decision.results} == {
        "t": ErrorCode.INVALID_REQUEST,
        "u": ErrorCode.NONE,
    }
    assert len(decision.results) == 2


def test_an_assignment_that_changed_in_between_is_not_overwritten() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1, 2)]})
    decision = create_partitions(cluster.view, [NewPartitions("t", 2)])
    cluster.carry_out(alter_partition_reassignments(cluster.view, [Reassignment("t", 0, (2, 1))]))
    with pytest.raises(BadVersion):
        cluster.carry_out(decision)


def test_too_many_in_one_request() -> None:
    cluster = Cluster(topics={"t": [(1,)], "u": [(1,)]})
    decision = create_partitions(cluster.view, [NewPartitions("t", 8001), NewPartitions("u", 2002)])
    assert codes(decision) == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]
