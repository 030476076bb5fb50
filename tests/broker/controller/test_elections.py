"""Each error is the one that Apache Kafka 4.3 gives."""

from barnabas.broker.controller import znodes
from barnabas.broker.controller.elections import ElectionType, all_partitions, elect_leaders
from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.registry.tree_operations import Set
from barnabas.protocol.errors import ErrorCode
from tests.broker.controller.cluster import Cluster, codes

NOT_NEEDED = ErrorCode.ELECTION_NOT_NEEDED


def set_state(cluster: Cluster, index: int, leader: int, isr: tuple[int, ...]) -> None:
    state = znodes.write_state(PartitionImage(index, (), leader, 5, isr), 1)
    cluster.registry.apply([Set(znodes.state_path("t", index), state)])


def test_on_one_broker_there_is_nothing_to_elect() -> None:
    cluster = Cluster(topics={"t": [(1,), (1,)]})
    for kind in ElectionType:
        assert codes(elect_leaders(cluster.view, kind, [("t", 0), ("t", 1), ("t", 0)])) == [NOT_NEEDED] * 3
        assert elect_leaders(cluster.view, kind, []).results == []


def test_partitions_that_do_not_exist() -> None:
    cluster = Cluster(topics={"t": [(1,)]})
    for kind in ElectionType:
        decision = elect_leaders(cluster.view, kind, [("t", 1), ("t", -1), ("a b", 0)])
        assert codes(decision) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3


def test_the_preferred_leader_comes_back() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1, 2), (1, 2)]})
    set_state(cluster, 1, leader=2, isr=(2, 1))
    decision = elect_leaders(cluster.view, ElectionType.PREFERRED, all_partitions(cluster.view))
    assert codes(decision) == [NOT_NEEDED, ErrorCode.NONE]
    cluster.carry_out(decision)
    assert cluster.view.topics["t"].partitions[1] == PartitionImage(1, (1, 2), 1, 6, (2, 1), partition_epoch=2)


def test_a_partition_that_is_named_twice_is_elected_once() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1, 2)]})
    set_state(cluster, 0, leader=2, isr=(2, 1))
    decision = elect_leaders(cluster.view, ElectionType.PREFERRED, [("t", 0), ("t", 0)])
    assert codes(decision) == [ErrorCode.NONE, NOT_NEEDED]
    assert len(decision.operations) == 1


def test_the_preferred_leader_is_not_in_sync_or_not_alive() -> None:
    cluster = Cluster(brokers=(1, 2), topics={"t": [(1, 2), (3, 2)]})
    set_state(cluster, 0, leader=2, isr=(2,))
    set_state(cluster, 1, leader=2, isr=(2, 3))
    decision = elect_leaders(cluster.view, ElectionType.PREFERRED, all_partitions(cluster.view))
    assert codes(decision) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE] * 2


def test_an_unclean_election_takes_a_replica_that_is_alive() -> None:
    cluster = Cluster(brokers=(2, 3), topics={"t": [(1, 2, 3), (1, 2, 3), (1,)]})
    set_state(cluster, 0, leader=-1, isr=(1,))
    set_state(cluster, 1, leader=-1, isr=(1, 3))
    decision = elect_leaders(cluster.view, ElectionType.UNCLEAN, [("t", 0), ("t", 1), ("t", 2)])
    assert codes(decision) == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]
    cluster.carry_out(decision)
    first, second, _ = cluster.view.topics["t"].partitions
    assert (first.leader_id, first.leader_epoch, first.isr_nodes) == (2, 6, (2,))
    assert (second.leader_id, second.leader_epoch, second.isr_nodes) == (3, 6, (3,))
