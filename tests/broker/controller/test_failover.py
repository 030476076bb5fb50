"""Who leads when brokers die, come back, or restart."""

from collections.abc import Collection
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.controller import znodes
from barnabas.broker.controller.failover import Brokers, hand_over, led, look_after, still_led
from barnabas.broker.controller.images import NO_LEADER, PartitionImage
from barnabas.broker.registry.tree_operations import Delete, Set
from tests.broker.controller.cluster import Cluster


def brokers(live: Collection[int], restarted: Collection[int] = (), shutting_down: Collection[int] = ()) -> Brokers:
    return Brokers(frozenset(live), frozenset(restarted), frozenset(shutting_down))


def outcome(partition: PartitionImage | None) -> tuple[int, int, tuple[int, ...]] | None:
    return partition and (partition.leader_id, partition.leader_epoch, partition.isr_nodes)


def partition(leader: int = 1, isr: tuple[int, ...] = (1, 2, 3)) -> PartitionImage:
    return PartitionImage(0, (1, 2, 3), leader, 7, isr, 4)


def test_a_restarted_leader_hands_over_to_others_in_sync() -> None:
    assert outcome(led(partition(), brokers({1, 2, 3}, {1}), unclean=False)) == (2, 8, (2, 3))
    assert outcome(led(partition(), brokers({1, 2, 3}, {3}), unclean=False)) == (1, 8, (1, 2))


def test_a_restarted_leader_without_others_leads_in_a_new_epoch() -> None:
    assert outcome(led(partition(isr=(1,)), brokers({1, 2, 3}, {1}), unclean=False)) == (1, 8, (1,))
    assert outcome(led(partition(), brokers({1, 2, 3}, {1, 2, 3}), unclean=False)) == (1, 8, (1, 2, 3))
    assert outcome(led(partition(isr=(1,)), brokers({1, 2, 3}, {1}), unclean=True)) == (1, 8, (1,))


def test_a_restarted_broker_may_be_elected() -> None:
    assert outcome(led(partition(NO_LEADER, (1,)), brokers({1, 2}, {1}), unclean=False)) == (1, 8, (1,))


def test_a_restart_elsewhere_changes_nothing() -> None:
    assert led(partition(isr=(1, 2)), brokers({1, 2, 3}, {3}), unclean=False) is None
    assert led(partition(NO_LEADER, (1,)), brokers({2, 3}, {3}), unclean=False) is None


ids = st.sets(st.integers(1, 5))


@given(
    replicas=st.lists(st.integers(1, 5), min_size=1, max_size=5, unique=True),
    data=st.data(),
    live=ids,
    restarted=ids,
    unclean=st.booleans(),
)
def test_only_live_and_eligible_replicas_lead(
    replicas: list[int], data: st.DataObject, live: set[int], restarted: set[int], unclean: bool
) -> None:
    isr = tuple(data.draw(st.permutations(sorted(data.draw(st.sets(st.sampled_from(replicas), min_size=1))))))
    leader = data.draw(st.sampled_from([*isr, NO_LEADER]))
    before = PartitionImage(0, tuple(replicas), leader, 7, isr, 4)
    after = led(before, brokers(live, live & restarted), unclean=unclean)
    if after is None:
        assert leader in live or not live & {*isr}
        assert leader not in restarted & live
        assert leader in live or not unclean or not live & {*replicas}
        return
    assert after.leader_epoch == 8
    assert after.replica_nodes == before.replica_nodes
    if after.leader_id == NO_LEADER:
        assert not live & {*isr}
        assert {*after.isr_nodes} == {*isr}  # any of them may come back
    else:
        assert after.leader_id in live
        assert after.leader_id in after.isr_nodes
        assert {*after.isr_nodes} <= live
        if not unclean or live & {*isr}:
            assert {*after.isr_nodes} <= {*isr}
    assert led(after, brokers(live), unclean=unclean) is None  # once is enough


def test_a_partition_that_never_had_a_leader_gets_one() -> None:
    cluster = Cluster(brokers=(2, 3), topics={"t": [(1, 2, 3), (1,)]})
    for path in ("0/state", "0", "1/state", "1"):
        cluster.registry.apply([Delete(f"/brokers/topics/t/partitions/{path}")])
    cluster.registry.apply([Delete("/brokers/topics/t/partitions")])
    topics = cluster.view.topics.values()
    cluster.registry.apply(list(look_after(cluster.view, topics, brokers((2, 3)), lambda topic: False)))
    first, second = cluster.view.topics["t"].partitions
    assert outcome(first) == (2, 0, (2, 3))
    assert second.partition_epoch == -1


def test_a_leader_that_was_not_in_sync_is_reported() -> None:
    cluster = Cluster(brokers=(2,), topics={"t": [(1, 2)], "u": [(2, 1)]})
    state = cluster.view.topics["t"].partitions[0]._replace(isr_nodes=(1,))
    topics = [replace(cluster.view.topics["t"], partitions=(state,)), cluster.view.topics["u"]]
    heard = []
    for unclean in (False, True):
        look = look_after(
            cluster.view, topics, brokers((2,)), lambda topic, u=unclean: u, lambda *what: heard.append(what)
        )
        list(look)
    assert [(topic, partition.leader_id) for topic, partition in heard] == [("t", 2)]


def test_what_a_broker_hands_over() -> None:
    cluster = Cluster(brokers=(1, 2, 3), topics={"t": [(1, 2), (2, 1), (1,), (2, 3), (1, 3)]})
    state = znodes.write_state(PartitionImage(4, (), 1, 3, (1,)), 1)
    cluster.registry.apply([Set(znodes.state_path("t", 4), state)])
    operations, followed = hand_over(cluster.view, 1, frozenset({1}))
    assert followed == [("t", 1)]
    cluster.registry.apply(operations)
    assert [outcome(each) for each in cluster.view.topics["t"].partitions] == [
        (2, 1, (2,)),
        (2, 1, (2,)),
        (1, 0, (1,)),
        (2, 0, (2, 3)),
        (1, 3, (1,)),
    ]
    assert still_led(cluster.view, 1) == [("t", 4)]
