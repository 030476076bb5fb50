"""Registration: one node per broker and session, whatever happened to the last one."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.broker.cluster.registration import RegistrationRefused, check_listener, join_cluster, register
from barnabas.broker.controller import znodes
from barnabas.broker.controller.images import BrokerImage, Endpoint
from barnabas.broker.registry.errors import RegistryUnavailable
from barnabas.broker.registry.session import Session
from barnabas.broker.registry.tree_operations import Operation
from tests.broker.cluster.brokers import Brokers
from tests.broker.registry.memory import MemoryRegistry
from tests.support.manual_clock import ManualClock

IMAGE = BrokerImage(4, (Endpoint("PLAINTEXT", "PLAINTEXT", "here", 9092),), "r1")
PATH = "/brokers/ids/4"


class LosesAnswers(Session):
    happens = True
    lost = False

    async def multi(self, operations: Sequence[Operation]) -> None:
        if self.lost:
            await super().multi(operations)
            return
        self.lost = True
        if self.happens:
            await super().multi(operations)
        raise RegistryUnavailable("the connection was lost")


async def tree() -> MemoryRegistry:
    registry = MemoryRegistry()
    await join_cluster(registry, "an-id")
    return registry


async def enter(session: Session, clock: ManualClock, directory_id: str = "d1") -> int:
    return await register(session, IMAGE, clock, directory_id=directory_id, session_timeout_ms=6000)


async def test_the_tree_has_what_kafka_expects() -> None:
    registry = await tree()
    for path in (
        *("/admin/delete_topics", "/brokers/ids", "/brokers/seqid", "/brokers/topics", "/config/brokers"),
        *("/config/changes", "/config/clients", "/config/ips", "/config/topics", "/config/users", "/consumers"),
        *("/isr_change_notification", "/log_dir_event_notification"),
    ):
        assert registry.get(path).data == b"", path
    assert registry.get("/cluster/id").data == b'{"version":"1","id":"an-id"}'
    assert registry.get("/feature").data == b'{"features":{},"version":2,"status":1}'


async def test_a_cluster_keeps_its_id() -> None:
    registry = await tree()
    assert await join_cluster(Session(registry), "another") == "an-id"


async def test_a_broker_with_partitions_creates_no_cluster() -> None:
    registry = MemoryRegistry()
    with pytest.raises(RegistrationRefused, match="knows no cluster"):
        await join_cluster(Session(registry), "an-id", may_be_new=False)
    assert registry.find("/brokers") is None
    await join_cluster(registry, "an-id")
    assert await join_cluster(Session(registry), "an-id", may_be_new=False) == "an-id"


async def test_brokers_must_be_able_to_reach_each_other() -> None:
    registry = await tree()
    check_listener(registry, 5, "INTERNAL")  # it is the first
    await enter(Session(registry), ManualClock())
    check_listener(registry, 5, "PLAINTEXT")
    check_listener(registry, 4, "INTERNAL")  # its former registration
    with pytest.raises(RegistrationRefused, match="has a listener INTERNAL, only PLAINTEXT"):
        check_listener(registry, 5, "INTERNAL")


async def test_the_epoch_is_the_number_of_the_transaction() -> None:
    registry, clock = await tree(), ManualClock()
    first = Session(registry)
    epoch = await enter(first, clock)
    assert registry.get(PATH).czxid == epoch
    assert znodes.read_broker(4, registry.get(PATH)) == IMAGE._replace(epoch=epoch)
    await first.close()
    assert await enter(Session(registry), clock) > epoch


async def test_a_former_session_is_waited_for() -> None:
    registry, clock = await tree(), ManualClock()
    former, session = Session(registry), Session(registry)
    epoch = await enter(former, clock)
    entering = asyncio.create_task(enter(session, clock))
    for _ in range(10):
        await asyncio.sleep(0)
    clock.advance(5)
    assert not entering.done()
    await former.expire()
    assert await entering > epoch


async def test_a_former_session_that_does_not_end() -> None:
    registry, clock = await tree(), ManualClock()
    await enter(Session(registry), clock)
    entering = asyncio.create_task(enter(Session(registry), clock))
    for _ in range(10):
        await asyncio.sleep(0)
    clock.advance(9)
    with pytest.raises(RegistrationRefused, match=r"broker 4 is still registered, at here:9092.*running twice"):
        await entering


class Away(Session):
    away = False

    async def refresh(self, path: str) -> None:
        if self.away:
            raise RegistryUnavailable("it cannot be reached")
        await super().refresh(path)


async def passes(clock: ManualClock, seconds: int) -> None:
    for _ in range(seconds):
        clock.advance(1)
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_former_session_lasts_longer_if_the_registry_was_away() -> None:
    registry, clock = await tree(), ManualClock()
    former, session = Session(registry), Away(registry)
    epoch = await enter(former, clock)
    entering = asyncio.create_task(enter(session, clock))
    await passes(clock, 1)
    session.away = True
    await passes(clock, 7)
    session.away = False
    await passes(clock, 8)
    assert not entering.done()
    await former.expire()
    assert await entering > epoch


async def test_a_registry_that_stays_away_is_not_waited_for() -> None:
    registry, clock = await tree(), ManualClock()
    await enter(Session(registry), clock)
    session = Away(registry)
    entering = asyncio.create_task(enter(session, clock))
    await passes(clock, 1)
    session.away = True
    await passes(clock, 10)
    with pytest.raises(RegistryUnavailable):
        await entering


async def test_another_broker_with_the_same_id_is_refused_at_once() -> None:
    registry, clock = await tree(), ManualClock()
    await enter(Session(registry), clock)
    with pytest.raises(
        RegistrationRefused, match=r"another broker with the id 4 is registered, at here:9092.*node\.id"
    ):
        await enter(Session(registry), clock, "d2")


@pytest.mark.parametrize("happens", [True, False])
async def test_a_registration_whose_answer_was_lost(happens: bool) -> None:
    registry, clock = await tree(), ManualClock()
    session = LosesAnswers(registry)
    session.happens = happens
    assert await enter(session, clock) == registry.get(PATH).czxid


async def test_an_expired_session_is_followed_by_a_new_one() -> None:
    brokers = await Brokers(1, 2).start()
    member = brokers.members[2]
    epoch = member.membership.broker_epoch
    await member.session.expire()
    await brokers.settle()
    assert member.membership.broker_epoch > epoch
    assert brokers.term.cluster.brokers[2].epoch == member.membership.broker_epoch
    assert len(member.sessions) == 2
    # And again, now the controller.
    await brokers.members[1].session.expire()
    await brokers.settle()
    assert len(brokers.controllers) == 1
    assert sorted(brokers.term.cluster.brokers) == [1, 2]
    for each in brokers.members.values():
        await each.stop()


async def test_a_session_that_expires_while_its_broker_registers_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one session in the end, not one for each that has expired; and none is left open."""
    brokers = await Brokers(1, 2).start()
    member = brokers.members[2]
    former = member.session
    closed: list[Session] = []
    close = Session.close

    async def noting_close(session: Session) -> None:
        closed.append(session)
        await close(session)

    monkeypatch.setattr(Session, "close", noting_close)
    begin = member.membership._register

    async def expiring(registry: Session, *rest: Any) -> None:
        if len(member.sessions) == 2:
            await begin(registry, *rest)
            await registry.expire()
        else:
            await begin(registry, *rest)

    monkeypatch.setattr(member.membership, "_register", expiring)
    await former.expire()
    await brokers.settle()
    await brokers.pass_time(2)
    await brokers.settle()
    assert len(member.sessions) == 3
    assert closed == member.sessions[:2]
    assert brokers.term.cluster.brokers[2].epoch == member.membership.broker_epoch
    for each in brokers.members.values():
        await each.stop()


async def test_a_registry_that_comes_back_empty_is_refused() -> None:
    brokers = await Brokers(1).start()
    member = brokers.members[1]
    full, brokers.tree = brokers.tree, MemoryRegistry()
    await member.session.expire()
    await brokers.settle()
    await brokers.pass_time(5)
    assert brokers.tree.find("/cluster/id") is None
    brokers.tree = full
    await brokers.pass_time(5)
    await brokers.settle()
    assert brokers.tree.find("/brokers/ids/1") is not None
    await member.stop()


async def test_a_registry_that_comes_back_as_another_clusters_is_refused() -> None:
    brokers = await Brokers(1).start()
    member = brokers.members[1]
    brokers.tree = MemoryRegistry()
    await join_cluster(brokers.tree, "somebody-elses")
    await member.session.expire()
    await brokers.settle()
    assert brokers.tree.find("/brokers/ids/1") is None
    await brokers.pass_time(5)
    assert brokers.tree.find("/brokers/ids/1") is None
    await member.stop()
