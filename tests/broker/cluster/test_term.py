"""A controller's term: what it does when brokers come and go, and what clients and brokers ask it for."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from barnabas.broker.cluster.deletions import deletions, strike_off
from barnabas.broker.cluster.log_dir_events import note_log_dir_event
from barnabas.broker.controller import znodes
from barnabas.broker.controller.alter_partition import WantedIsr
from barnabas.broker.controller.create_partitions import NewPartitions
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.controller.delete_topics import TopicReference
from barnabas.broker.controller.elections import ElectionType
from barnabas.broker.controller.images import NO_LEADER
from barnabas.broker.controller.reassignments import Reassignment
from barnabas.broker.registry.errors import NodeExists, RegistryUnavailable
from barnabas.broker.registry.tree_operations import Create, Operation, Set
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.cluster.brokers import Brokers


@pytest.fixture
async def brokers() -> AsyncIterator[Brokers]:
    brokers = await Brokers(1, 2, 3).start()
    yield brokers
    for member in brokers.members.values():
        await member.stop()


async def create(brokers: Brokers, name: str = "t", replicas: tuple[int, ...] = (1, 2, 3), **configs: str) -> None:
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    (result,) = await brokers.term.create_topics([NewTopic(name, assignments=[(0, replicas)], configs=settings)])
    assert result.error_code is ErrorCode.NONE
    await brokers.settle()


async def set_isr(brokers: Brokers, isr: tuple[int, ...], topic: str = "t") -> None:
    """What a leader asks for when followers have caught up, or have not."""
    image, partition = brokers.term.cluster.topics[topic], brokers.partition(topic)
    wanted = WantedIsr(
        image.topic_id, 0, partition.leader_epoch, partition.partition_epoch, [(each, -1) for each in isr]
    )
    leader = brokers.term.cluster.brokers[partition.leader_id]
    code, (result,) = await brokers.term.alter_partitions(leader.broker_id, leader.epoch, [wanted])
    assert (code, result.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    await brokers.settle()


def led(brokers: Brokers, topic: str = "t") -> tuple[int, int, tuple[int, ...]]:
    partition = brokers.partition(topic)
    return partition.leader_id, partition.leader_epoch, partition.isr_nodes


async def test_the_first_broker_is_the_controller_and_every_broker_knows_all(brokers: Brokers) -> None:
    assert brokers.controllers == [1]
    assert [scripted.live_brokers for scripted in brokers.scripted.values()] == [[1, 2, 3]] * 3
    assert {scripted.controller for scripted in brokers.scripted.values()} == {(1, 1)}


async def test_a_new_topic_is_ordered_before_it_is_in_the_metadata(brokers: Brokers) -> None:
    for scripted in brokers.scripted.values():
        scripted.orders.clear()
    await create(brokers, replicas=(2, 3))
    assert [scripted.keys() for scripted in brokers.scripted.values()] == [
        [ApiKey.UPDATE_METADATA],
        [ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA],
        [ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA],
    ]
    brokers.agreed()
    assert brokers.scripted[3].replicas["t", 0].is_new


async def test_creation_waits_for_the_leaders_but_not_longer_than_the_request(brokers: Brokers) -> None:
    brokers.scripted[2].reachable = False
    creating = asyncio.create_task(
        brokers.term.create_topics([NewTopic("t", assignments=[(0, (2, 3))])], timeout_ms=5000)
    )
    await brokers.settle()
    assert not creating.done()
    brokers.clock.advance(5)
    (result,) = await creating
    assert result.error_code is ErrorCode.REQUEST_TIMED_OUT
    brokers.scripted[2].reachable = True
    await brokers.pass_time(1)
    brokers.agreed()

    (followed,) = await brokers.term.create_topics([NewTopic("u", assignments=[(0, (3, 2))])], timeout_ms=5000)
    assert followed.error_code is ErrorCode.NONE


@pytest.mark.parametrize("failure", [None, RegistryUnavailable("lost"), NodeExists("/somebody/else")])
async def test_the_states_of_many_partitions_follow_the_topic(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, failure: Exception | None
) -> None:
    """Whatever keeps them from being written with the request, the controller gives the partitions their leaders."""
    monkeypatch.setattr("barnabas.broker.controller.create_topics.STATES_AT_ONCE", 1)
    write = brokers.term._writes.carry_out_in_parts
    failures = [failure] if failure else []

    async def fails_once(decide: Any) -> None:
        if failures and "_led" in getattr(decide, "__qualname__", ""):  # with the request, not afterwards
            raise failures.pop()
        await write(decide)

    monkeypatch.setattr(brokers.term._writes, "carry_out_in_parts", fails_once)
    (result,) = await brokers.term.create_topics([NewTopic("t", 3, 3)])
    assert result.error_code is ErrorCode.NONE
    await brokers.pass_time(1)
    await brokers.settle()
    assert not failures
    assert NO_LEADER not in [partition.leader_id for partition in brokers.term.cluster.topics["t"].partitions]
    assert all(len(scripted.replicas) == 3 for scripted in brokers.scripted.values())


async def test_a_topic_one_of_whose_logs_cannot_be_created_stays(brokers: Brokers) -> None:
    """It may be in use already: a transaction whose coordinator's topic is deleted would never end."""
    brokers.scripted[2].broken_disk = True
    results = await brokers.term.create_topics(
        [NewTopic("t", assignments=[(0, (1,)), (1, (2,))]), NewTopic("u", assignments=[(0, (3,))])]
    )
    assert [result.error_code for result in results] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
    assert list(brokers.term.cluster.topics) == ["t", "u"]
    await brokers.settle()
    assert ("t", 0) in brokers.scripted[1].replicas


async def test_a_leader_that_has_registered_again_and_refuses_a_new_topic(brokers: Brokers) -> None:
    brokers.scripted[2].broker_epoch = 1_000_000  # which the controller is about to hear
    (result,) = await brokers.term.create_topics([NewTopic("t", assignments=[(0, (1, 2)), (1, (2, 1))])])
    assert result.error_code is ErrorCode.NONE
    assert list(brokers.term.cluster.topics) == ["t"]


async def test_a_topic_is_whole_if_other_replicas_can_lead_its_partitions(brokers: Brokers) -> None:
    brokers.scripted[2].broken_disk = True
    (result,) = await brokers.term.create_topics([NewTopic("t", assignments=[(0, (1, 2, 3)), (1, (2, 3, 1))])])
    assert result.error_code is ErrorCode.NONE
    await brokers.settle()
    assert brokers.partition("t", 1).leader_id == 3


async def test_partitions_that_cannot_be_created_stay(brokers: Brokers) -> None:
    await create(brokers, replicas=(1,))
    brokers.scripted[2].broken_disk = True
    (result,) = await brokers.term.create_partitions([NewPartitions("t", 2, [[2]])])
    assert result.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(brokers.term.cluster.topics["t"].partitions) == 2


async def note_disk(brokers: Brokers, broker_id: int) -> None:
    await note_log_dir_event(brokers.members[broker_id].session, broker_id)
    await brokers.settle()


async def test_a_broker_whose_disk_fails_hands_over_its_leaderships(brokers: Brokers) -> None:
    await create(brokers, replicas=(2, 3, 1))
    await create(brokers, "alone", replicas=(2,))
    brokers.scripted[2].broken_disk = True
    await note_disk(brokers, 2)
    assert led(brokers) == (3, 1, (3, 1))
    assert brokers.partition("alone").leader_id == 2
    assert brokers.tree.children(znodes.LOG_DIR_EVENTS) == []
    brokers.scripted[2].broken_disk = False
    await note_disk(brokers, 2)
    brokers.agreed()
    assert led(brokers) == (3, 1, (3, 1))


async def test_nobody_waits_for_a_follower_whose_disk_fails(brokers: Brokers) -> None:
    await create(brokers, replicas=(2, 3, 1))
    brokers.scripted[1].broken_disk = True
    await note_disk(brokers, 1)
    assert led(brokers) == (2, 1, (2, 3))


async def test_a_controller_that_takes_over_learns_whose_disk_fails(brokers: Brokers) -> None:
    await create(brokers, replicas=(2, 3, 1))
    brokers.scripted[2].broken_disk = True
    await brokers.members[1].crash()
    await brokers.settle()
    assert led(brokers)[0] == 3


async def test_a_note_that_cannot_be_read_is_removed(brokers: Brokers) -> None:
    await brokers.members[2].session.multi([Create(znodes.LOG_DIR_EVENT, b"?", sequential=True)])
    await brokers.settle()
    assert brokers.tree.children(znodes.LOG_DIR_EVENTS) == []


async def test_a_broker_dies_and_comes_back(brokers: Brokers) -> None:
    await create(brokers, replicas=(2, 3, 1))
    await brokers.members[2].crash()
    await brokers.settle()
    assert led(brokers) == (3, 1, (3, 1))
    brokers.agreed()
    assert brokers.scripted[1].metadata["t"][0].offline_replicas == [2]

    await brokers.members[2].restart()
    await brokers.settle()
    assert led(brokers) == (3, 1, (3, 1))
    brokers.agreed()
    assert brokers.scripted[1].metadata["t"][0].offline_replicas == []
    assert brokers.scripted[1].live_brokers == [1, 2, 3]


async def test_the_last_in_sync_comes_back(brokers: Brokers) -> None:
    await create(brokers, replicas=(2, 3))
    await set_isr(brokers, (2,))
    await brokers.members[2].crash()
    await brokers.settle()
    assert led(brokers) == (NO_LEADER, 1, (2,))
    brokers.agreed()
    await brokers.members[2].restart()
    await brokers.settle()
    assert led(brokers) == (2, 2, (2,))
    brokers.agreed()


async def test_a_quick_restart_is_a_death_and_a_return(brokers: Brokers) -> None:
    """KAFKA-7235: nobody looked between the two."""
    await create(brokers, replicas=(2, 3))
    await create(brokers, "alone", replicas=(2,))
    before = brokers.term.cluster.brokers[2].epoch
    brokers.members[1].session.cut_off()  # the controller learns about both at once
    await brokers.members[2].crash()
    await brokers.members[2].restart()
    brokers.members[1].session.restore()
    await brokers.settle()
    assert brokers.term.cluster.brokers[2].epoch > before
    assert led(brokers) == (3, 1, (3,))
    assert led(brokers, "alone") == (2, 1, (2,))
    brokers.agreed()
    brokers.agreed("alone")
    # It was told nothing that was meant for its former registration.
    assert {message.broker_epoch for _, message in brokers.scripted[2].orders} == {
        brokers.members[2].membership.broker_epoch
    }


async def test_what_a_broker_leads_after_a_crash_gets_a_new_leader_epoch() -> None:
    brokers = await Brokers(1).start()
    await create(brokers, replicas=(1,))
    await brokers.members[1].stop()
    await brokers.members[1].restart()
    assert led(brokers) == (1, 0, (1,))
    await brokers.members[1].crash()
    await brokers.members[1].restart(after_crash=True)
    await brokers.settle()
    assert led(brokers) == (1, 1, (1,))
    assert not brokers.term.cluster.brokers[1].after_crash
    brokers.agreed()
    await brokers.members[1].stop()


async def test_an_unclean_election_only_where_it_is_allowed(brokers: Brokers) -> None:
    await create(brokers, "clean", replicas=(2, 3))
    await create(brokers, "dirty", replicas=(2, 3), unclean_leader_election_enable="true")
    for topic in ("clean", "dirty"):
        await set_isr(brokers, (2,), topic)
    await brokers.members[2].crash()
    await brokers.settle()
    assert led(brokers, "clean") == (NO_LEADER, 1, (2,))
    assert led(brokers, "dirty") == (3, 1, (3,))

    # Altered for the topic.
    configs = b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}'
    await brokers.members[3].session.multi([Set("/config/topics/clean", configs)])
    await brokers.settle()
    assert led(brokers, "clean") == (3, 2, (3,))
    brokers.agreed("clean")


async def test_an_unclean_election_by_request(brokers: Brokers) -> None:
    await create(brokers, replicas=(2, 3))
    await set_isr(brokers, (2,))
    await brokers.members[2].crash()
    await brokers.settle()
    (result,) = await brokers.term.elect_leaders(ElectionType.UNCLEAN, [TopicPartition("t", 0)])
    assert result.error_code is ErrorCode.NONE
    await brokers.settle()
    assert led(brokers) == (3, 2, (3,))
    brokers.agreed()


async def test_a_new_controller_takes_over(brokers: Brokers) -> None:
    await create(brokers, replicas=(1, 2, 3))
    await brokers.members[1].crash()
    await brokers.settle()
    assert brokers.controllers == [2]
    assert led(brokers) == (2, 1, (2, 3))
    assert brokers.term.epoch == 2
    brokers.agreed()


async def test_a_change_of_the_isr_updates_metadata_without_an_order(brokers: Brokers) -> None:
    await create(brokers)
    brokers.scripted[1].orders.clear()
    await set_isr(brokers, (1, 3))
    assert brokers.scripted[1].keys() == [ApiKey.UPDATE_METADATA]
    brokers.agreed()


async def test_an_isr_asked_for_with_a_stale_broker_epoch(brokers: Brokers) -> None:
    await create(brokers)
    wanted = WantedIsr(brokers.term.cluster.topics["t"].topic_id, 0, 0, 0, [(1, -1)])
    code, _ = await brokers.term.alter_partitions(1, brokers.members[1].membership.broker_epoch - 1, [wanted])
    assert code is ErrorCode.STALE_BROKER_EPOCH
    code, _ = await brokers.term.alter_partitions(9, 1, [wanted])
    assert code is ErrorCode.STALE_BROKER_EPOCH


async def test_preferred_leaders_come_back_by_themselves(brokers: Brokers) -> None:
    await create(brokers, replicas=(2, 3))
    await brokers.members[2].crash()
    await brokers.settle()
    await brokers.members[2].restart()
    await brokers.settle()
    await set_isr(brokers, (3, 2))
    brokers.settings.auto_leader_rebalance_enable = False
    await brokers.pass_time(300)
    assert led(brokers)[0] == 3
    brokers.settings.auto_leader_rebalance_enable = True
    await brokers.pass_time(300)
    assert led(brokers) == (2, 2, (3, 2))
    brokers.agreed()


async def test_a_controlled_shutdown_moves_leaders(brokers: Brokers) -> None:
    await create(brokers, "led", replicas=(2, 3))
    await create(brokers, "followed", replicas=(3, 2))
    await create(brokers, "alone", replicas=(2,))
    await create(brokers, "stuck", replicas=(2, 3))
    await set_isr(brokers, (2,), "stuck")
    epoch = brokers.members[2].membership.broker_epoch
    code, remaining = await brokers.term.controlled_shutdown(2, epoch)
    assert (code, remaining) == (ErrorCode.NONE, [("stuck", 0)])
    assert led(brokers, "led") == (3, 1, (3,))
    assert led(brokers, "followed") == (3, 1, (3,))
    assert led(brokers, "alone") == (2, 0, (2,))
    await brokers.settle()
    (stop,) = (message for key, message in brokers.scripted[2].orders if key is ApiKey.STOP_REPLICA)
    assert [state.topic_name for state in stop.topic_states] == ["followed"]
    assert not stop.topic_states[0].partition_states[0].delete_partition

    # Until it is gone it does not come back into an ISR, and does not lead.
    wanted = WantedIsr(brokers.term.cluster.topics["led"].topic_id, 0, 1, 1, [(3, -1), (2, -1)])
    leader = brokers.term.cluster.brokers[3]
    _, (result,) = await brokers.term.alter_partitions(3, leader.epoch, [wanted])
    assert result.error_code is ErrorCode.INELIGIBLE_REPLICA

    # After its restart, it may.
    await brokers.members[2].stop()
    await brokers.settle()
    await brokers.members[2].restart()
    await brokers.settle()
    assert led(brokers, "alone") == (2, 2, (2,))
    await set_isr(brokers, (3, 2), "led")


@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_broker_that_is_gone_before_its_leaderships_are_handed_over(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    await create(brokers, "shared", replicas=(2, 3))
    await create(brokers, "last", replicas=(2, 3))
    await set_isr(brokers, (2,), "last")
    session, epoch = brokers.members[1].session, brokers.members[2].membership.broker_epoch

    async def late(operations: Sequence[Operation]) -> None:
        monkeypatch.undo()
        await brokers.members[2].crash()
        await brokers.settle()
        if comes_back:
            await brokers.members[2].restart()
            await brokers.settle()
        await session.multi(operations)

    monkeypatch.setattr(session, "multi", late)
    code, remaining = await brokers.term.controlled_shutdown(2, epoch)
    assert (code, list(remaining)) == (ErrorCode.STALE_BROKER_EPOCH, [])
    assert brokers.partition("last").isr_nodes == (2,)
    await brokers.settle()
    assert all(key is not ApiKey.STOP_REPLICA for key, _ in brokers.scripted[2].orders)
    if comes_back:
        brokers.agreed("last")


async def test_a_broker_that_seems_to_have_died_hands_over(brokers: Brokers) -> None:
    await create(brokers, "led", replicas=(2, 3))
    await create(brokers, "followed", replicas=(3, 2))
    await create(brokers, "alone", replicas=(2,))
    await create(brokers, "stuck", replicas=(2, 3))
    await set_isr(brokers, (2,), "stuck")
    (controller,) = brokers.controllers
    suspects = brokers.members[controller].suspects
    suspects[2] = brokers.members[2].membership.broker_epoch
    brokers.term.suspicions_changed()
    await brokers.settle()
    assert led(brokers, "led") == (3, 1, (3,))
    assert led(brokers, "followed") == (3, 1, (3,))
    # Nobody else has what it leads here.
    assert led(brokers, "alone") == (2, 0, (2,))
    assert led(brokers, "stuck")[0] == 2
    # It may live, and is told like everybody else.
    brokers.agreed("led")

    # It does not come back into an ISR as long as it is suspected.
    leader = brokers.term.cluster.brokers[3]
    wanted = WantedIsr(brokers.term.cluster.topics["led"].topic_id, 0, 1, 1, [(3, -1), (2, -1)])
    _, (result,) = await brokers.term.alter_partitions(3, leader.epoch, [wanted])
    assert result.error_code is ErrorCode.INELIGIBLE_REPLICA
    suspects.clear()
    brokers.term.suspicions_changed()
    await brokers.settle()
    await set_isr(brokers, (3, 2), "led")


async def test_a_suspicion_of_a_former_registration_is_ignored(brokers: Brokers) -> None:
    await create(brokers, "t", replicas=(2, 3))
    (controller,) = brokers.controllers
    brokers.members[controller].suspects[2] = brokers.members[2].membership.broker_epoch - 1
    brokers.term.suspicions_changed()
    await brokers.settle()
    assert led(brokers) == (2, 0, (2, 3))


async def test_a_shutdown_of_an_unknown_broker(brokers: Brokers) -> None:
    assert await brokers.term.controlled_shutdown(7) == (ErrorCode.BROKER_NOT_AVAILABLE, ())
    stale = brokers.members[2].membership.broker_epoch - 1
    assert await brokers.term.controlled_shutdown(2, stale) == (ErrorCode.STALE_BROKER_EPOCH, ())


async def test_no_producer_id_is_allocated_twice(brokers: Brokers) -> None:
    epochs = {each: member.membership.broker_epoch for each, member in brokers.members.items()}
    blocks = await asyncio.gather(*(brokers.term.allocate_producer_ids(each, epochs[each]) for each in (1, 2, 3, 2)))
    assert {block.error_code for block in blocks} == {ErrorCode.NONE}
    assert sorted(block.start for block in blocks) == [0, 1000, 2000, 3000]
    assert (await brokers.term.allocate_producer_ids(7, 1)).error_code is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert (await brokers.term.allocate_producer_ids(2, 1)).error_code is ErrorCode.STALE_BROKER_EPOCH
    await brokers.members[1].crash()
    await brokers.settle()
    assert (await brokers.term.allocate_producer_ids(2, epochs[2])).start == 4000


async def test_a_topic_is_deleted_while_a_replica_is_down(brokers: Brokers) -> None:
    await create(brokers, replicas=(1, 2))
    topic_id = brokers.term.cluster.topics["t"].topic_id
    await brokers.members[2].crash()
    await brokers.settle()
    (deleted,) = await brokers.term.delete_topics([TopicReference("t")])
    assert deleted.error_code is ErrorCode.NONE
    await brokers.settle()
    assert ("t", 0) not in brokers.scripted[1].replicas
    assert all("t" not in brokers.scripted[each].metadata for each in (1, 3))
    assert deletions(brokers.tree) == {topic_id: {1, 2}}
    await strike_off(brokers.members[1].session, 1, [topic_id])
    assert deletions(brokers.tree) == {topic_id: {2}}
    await brokers.members[2].restart()
    await strike_off(brokers.members[2].session, 2, [topic_id])
    assert deletions(brokers.tree) == {}


async def test_a_topic_that_is_recreated_at_once_is_not_deleted_by_a_late_order(brokers: Brokers) -> None:
    """KAFKA-9539: a broker that answers late gets both orders in the order in which they were given."""
    await create(brokers, replicas=(2,))
    brokers.scripted[2].reachable = False
    await brokers.term.delete_topics([TopicReference("t")])
    creating = asyncio.create_task(brokers.term.create_topics([NewTopic("t", assignments=[(0, (2,))])]))
    await brokers.settle()
    brokers.scripted[2].reachable = True
    await brokers.pass_time(1)
    (created,) = await creating
    await brokers.settle()
    assert brokers.scripted[2].replicas["t", 0].topic_id == created.topic_id
    brokers.agreed()


async def test_topics_that_kafka_was_told_to_delete_are_deleted(brokers: Brokers) -> None:
    await create(brokers, replicas=(2, 3))
    await brokers.members[3].session.create("/admin/delete_topics/t")
    await brokers.members[3].session.create("/admin/delete_topics/nosuch")
    await brokers.members[1].crash()
    await brokers.settle()
    assert not brokers.term.cluster.topics
    assert not brokers.scripted[2].replicas
    assert len(brokers.tree.children("/admin/delete_topics")) == 1  # the note of where folders may still be


async def test_settings_without_a_topic_go_with_a_new_term(brokers: Brokers) -> None:
    await create(brokers, replicas=(2,), a="1")
    await brokers.members[3].session.create("/config/topics/gone", b'{"version":1,"config":{}}')
    await brokers.members[1].crash()
    await brokers.settle()
    assert brokers.tree.children("/config/topics") == ["t"]


async def test_validate_only_changes_nothing(brokers: Brokers) -> None:
    (result,) = await brokers.term.create_topics([NewTopic("t", 3, 2)], validate_only=True)
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 3, 2)
    assert not brokers.term.cluster.topics
    await create(brokers)
    (grown,) = await brokers.term.create_partitions([NewPartitions("t", 4)], validate_only=True)
    assert grown.error_code is ErrorCode.NONE
    assert len(brokers.term.cluster.topics["t"].partitions) == 1


async def test_several_at_once_create_the_same_topic(brokers: Brokers) -> None:
    calls = (brokers.term.create_topics([NewTopic("t", n), NewTopic(f"own{n}")]) for n in (1, 2, 3))
    results = await asyncio.gather(*calls)
    assert sorted(first.error_code for first, _ in results) == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.TOPIC_ALREADY_EXISTS,
    ]
    assert set(brokers.term.cluster.topics) == {"t", "own1", "own2", "own3"}


async def test_partitions_added_while_the_topic_is_deleted(brokers: Brokers) -> None:
    await create(brokers)
    (grown,), (deleted,), (late,) = await asyncio.gather(
        brokers.term.create_partitions([NewPartitions("t", 2)]),
        brokers.term.delete_topics([TopicReference("t")]),
        brokers.term.create_partitions([NewPartitions("t", 3)]),
    )
    assert deleted.error_code is ErrorCode.NONE
    assert {grown.error_code, late.error_code} <= {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not brokers.term.cluster.topics
    assert brokers.tree.children("/brokers/topics") == []


async def test_settings_are_read_at_each_call(brokers: Brokers) -> None:
    brokers.settings.num_partitions, brokers.settings.default_replication_factor = 7, 3
    (result,) = await brokers.term.create_topics([NewTopic("t")])
    assert (result.num_partitions, result.replication_factor) == (7, 3)
    brokers.settings.delete_topic_enable = False
    (deleted,) = await brokers.term.delete_topics([TopicReference("t")])
    assert deleted.error_code is ErrorCode.TOPIC_DELETION_DISABLED


async def test_racks_are_respected() -> None:
    brokers = await Brokers(1, 2, 3, 4, racks={1: "a", 2: "a", 3: "b", 4: "b"}).start()
    await brokers.term.create_topics([NewTopic("t", 8, 2)])
    for partition in brokers.term.cluster.topics["t"].partitions:
        assert {replica <= 2 for replica in partition.replica_nodes} == {True, False}
    for member in brokers.members.values():
        await member.stop()


# --- reassignments ---


async def test_a_partition_moves(brokers: Brokers) -> None:
    await create(brokers, replicas=(1, 2))
    (result,) = await brokers.term.alter_partition_reassignments([Reassignment("t", 0, (3, 2))])
    assert result.error_code is ErrorCode.NONE
    await brokers.settle()
    moving = brokers.partition()
    assert (moving.replica_nodes, moving.adding_replicas, moving.removing_replicas) == ((3, 2, 1), (3,), (1,))
    assert led(brokers) == (1, 1, (1, 2))
    brokers.agreed()

    await set_isr(brokers, (1, 2, 3))
    moved = brokers.partition()
    assert (moved.replica_nodes, moved.is_reassigning) == ((3, 2), False)
    assert led(brokers) == (3, 2, (2, 3))
    brokers.agreed()
    assert ("t", 0) not in brokers.scripted[1].replicas


async def test_a_move_continues_under_a_new_controller(brokers: Brokers) -> None:
    """KAFKA-3978."""
    await create(brokers, replicas=(1, 2))
    await brokers.term.alter_partition_reassignments([Reassignment("t", 0, (3, 2))])
    await brokers.settle()
    await brokers.members[1].crash()
    await brokers.settle()
    assert brokers.controllers == [2]
    assert brokers.partition().is_reassigning
    assert led(brokers) == (2, 2, (2,))
    await set_isr(brokers, (2, 3))
    assert brokers.partition().replica_nodes == (3, 2)
    assert not brokers.partition().is_reassigning
    brokers.agreed()


async def test_a_move_that_was_done_when_its_controller_died_is_finished(brokers: Brokers) -> None:
    await create(brokers, replicas=(2, 1))
    await brokers.term.alter_partition_reassignments([Reassignment("t", 0, (2, 3))])
    await brokers.settle()
    brokers.term._attention.set = lambda: None
    await set_isr(brokers, (2, 1, 3))
    assert brokers.partition().is_reassigning
    await brokers.members[1].crash()
    await brokers.settle()
    assert brokers.partition().replica_nodes == (2, 3)
    assert not brokers.partition().is_reassigning
    brokers.agreed()


async def test_a_move_is_cancelled(brokers: Brokers) -> None:
    await create(brokers, replicas=(1, 2))
    await brokers.term.alter_partition_reassignments([Reassignment("t", 0, (3,))])
    await brokers.settle()
    assert ("t", 0) in brokers.scripted[3].replicas
    (result,) = await brokers.term.alter_partition_reassignments([Reassignment("t", 0, None)])
    assert result.error_code is ErrorCode.NONE
    await brokers.settle()
    assert brokers.partition().replica_nodes == (1, 2)
    assert led(brokers) == (1, 2, (1, 2))
    brokers.agreed()
    assert ("t", 0) not in brokers.scripted[3].replicas


async def test_a_topic_is_deleted_while_it_moves(brokers: Brokers) -> None:
    """KAFKA-9478."""
    await create(brokers, replicas=(1, 2))
    await brokers.term.alter_partition_reassignments([Reassignment("t", 0, (3, 2))])
    (deleted,), (moved,) = await asyncio.gather(
        brokers.term.delete_topics([TopicReference("t")]),
        brokers.term.alter_partition_reassignments([Reassignment("t", 0, (1,))]),
    )
    assert (deleted.error_code, moved.error_code) == (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    await brokers.settle()
    assert all(("t", 0) not in scripted.replicas for scripted in brokers.scripted.values())
    assert not brokers.term.cluster.topics
    assert not brokers.term.is_busy


async def test_a_target_dies_while_a_partition_moves(brokers: Brokers) -> None:
    await create(brokers, replicas=(1, 2))
    await brokers.term.alter_partition_reassignments([Reassignment("t", 0, (3, 2))])
    await brokers.settle()
    await brokers.members[3].crash()
    await brokers.settle()
    assert brokers.partition().is_reassigning
    await brokers.members[3].restart()
    await brokers.settle()
    await set_isr(brokers, (1, 2, 3))
    assert brokers.partition().replica_nodes == (3, 2)
    brokers.agreed()
