"""Elections: one controller at a time, always one, and none that writes after another was elected."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from barnabas.broker.cluster.election import Elected
from barnabas.broker.cluster.term import Term
from barnabas.broker.cluster.writes import Deposed
from barnabas.broker.controller import znodes
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.controller.delete_topics import TopicReference
from barnabas.broker.controller.elections import ElectionType
from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.registry.errors import RegistryUnavailable
from barnabas.broker.registry.registry import Change, Registry, WatchCallback
from barnabas.broker.registry.session import Session
from barnabas.broker.registry.tree_operations import Create, Delete, Operation, Set
from barnabas.protocol.errors import ErrorCode
from tests.broker.cluster.brokers import Brokers, Member


class FaultySession(Session):
    """Sees no changes as long as it is deaf, and loses answers to changes that happened, or that did not."""

    deaf = False
    lose_answer_to = ""
    lose_change_to = ""

    def watch(self, path: str, callback: WatchCallback):
        held: list[Sequence[Change]] = []

        def hear(changes: Sequence[Change]) -> None:
            if self.deaf:
                held.append(changes)
            else:
                callback(changes)

        return super().watch(path, hear)

    async def multi(self, operations: Sequence[Operation]) -> None:
        paths = [operation.path for operation in operations]
        if self.lose_change_to in paths:
            self.lose_change_to = ""
            raise RegistryUnavailable("the connection was lost before")
        await super().multi(operations)
        if self.lose_answer_to in paths:
            self.lose_answer_to = ""
            raise RegistryUnavailable("the connection was lost after")


@pytest.fixture
async def brokers() -> AsyncIterator[Brokers]:
    brokers = await Brokers(1, 2, 3, session_type=FaultySession).start()
    yield brokers
    for member in brokers.members.values():
        member.session.deaf = False
        await member.stop()


def term_of(brokers: Brokers, broker_id: int) -> Term:
    term = brokers.members[broker_id].term
    assert term is not None
    return term


def says(brokers: Brokers) -> tuple[int, int]:
    controller = znodes.read_controller(brokers.tree.get(znodes.CONTROLLER))
    return controller, znodes.read_controller_epoch(brokers.tree.get(znodes.CONTROLLER_EPOCH))


async def test_there_is_one_controller_and_the_tree_names_it(brokers: Brokers) -> None:
    assert brokers.controllers == [1]
    assert says(brokers) == (1, 1)
    node = brokers.tree.get(znodes.CONTROLLER)
    assert node.ephemeral
    assert b'"kraftControllerEpoch":-1' in node.data


async def test_when_it_stops_another_is_elected(brokers: Brokers) -> None:
    for gone in (1, 2):
        await brokers.members[gone].stop()
        await brokers.settle()
        assert brokers.controllers == [gone + 1]
        assert says(brokers) == (gone + 1, gone + 1)
    assert len({term.epoch for term in brokers.terms}) == len(brokers.terms)


async def test_a_node_that_somebody_deletes_is_an_election(brokers: Brokers) -> None:
    former = brokers.term
    await brokers.members[3].session.multi([Delete(znodes.CONTROLLER)])
    await brokers.settle()
    assert not former.is_active
    assert len(brokers.controllers) == 1
    assert says(brokers) == (brokers.controllers[0], 2)


async def test_one_that_seems_to_have_died_is_replaced_once(brokers: Brokers) -> None:
    former = term_of(brokers, 1)
    brokers.members[1].session.deaf = True  # as if it were dead
    for survivor in (2, 3):
        brokers.members[survivor].election.replace(1)
    await brokers.settle()
    controller, epoch = says(brokers)
    assert controller in (2, 3)
    assert epoch == 2
    assert brokers.controllers == [1, controller]
    with pytest.raises(Deposed):
        await former._writes.write([Delete("/admin/delete_topics")])


async def test_a_controller_that_was_elected_meanwhile_is_not_replaced(brokers: Brokers) -> None:
    await brokers.members[1].stop()
    await brokers.settle()
    before = says(brokers)
    assert before[0] == 2
    brokers.members[3].election.replace(1)
    await brokers.settle()
    assert says(brokers) == before


@pytest.mark.parametrize("lost", ["lose_answer_to", "lose_change_to"])
async def test_one_that_replaces_another_and_gets_no_answer_checks_what_happened(brokers: Brokers, lost: str) -> None:
    setattr(brokers.members[3].session, lost, znodes.CONTROLLER)
    brokers.members[3].election.replace(1)
    await brokers.settle()
    await brokers.pass_time(1)
    happened = lost == "lose_answer_to"
    assert says(brokers) == ((3, 2) if happened else (1, 1))
    assert brokers.controllers == [3 if happened else 1]


async def test_one_that_is_deposed_before_its_term_starts_has_not_failed(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, deposed = Term.begin, []

    async def deposed_once(term: Term) -> None:
        if not deposed:
            deposed.append(term)
            node = brokers.tree.get(znodes.CONTROLLER_EPOCH)
            epoch = znodes.write_controller_epoch(znodes.read_controller_epoch(node) + 1)
            await brokers.members[3].session.multi(
                [Delete(znodes.CONTROLLER), Set(znodes.CONTROLLER_EPOCH, epoch, node.version)]
            )
            raise Deposed
        await begin(term)

    monkeypatch.setattr(Term, "begin", deposed_once)
    with capture_logs() as logs:
        await brokers.members[3].session.multi([Delete(znodes.CONTROLLER)])
        await brokers.settle()
    assert len(brokers.controllers) == 1
    assert [entry for entry in logs if entry["log_level"] == "error"] == []


async def test_one_whose_node_is_deleted_before_it_has_a_term_stands_again(brokers: Brokers) -> None:
    deleted = []

    async def deleted_once(member: Member, registry: Registry, elected: Elected, on_end: Any) -> Term:
        if not deleted:
            deleted.append(elected.epoch)
            for other in {1, 2, 3} - {member.broker_id}:
                await brokers.members[other].stop()  # nobody else will be elected
            await member.session.multi([Delete(znodes.CONTROLLER)])
        return await Member._make_term(member, registry, elected, on_end)

    for member in brokers.members.values():
        member.election._make_term = partial(deleted_once, member)
    await brokers.members[3].session.multi([Delete(znodes.CONTROLLER)])
    await brokers.settle()
    (controller,) = brokers.controllers
    assert says(brokers) == (controller, deleted[0] + 1)
    assert term_of(brokers, controller).epoch == deleted[0] + 1


async def test_one_that_stops_before_its_term_begins_stops(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has registered again and was elected, and the order to stop comes while its term begins."""
    begins = asyncio.Event()

    async def never_ready(term: Term) -> None:
        begins.set()
        await asyncio.Event().wait()

    member = brokers.members[1]
    for other in (2, 3):
        await brokers.members[other].stop()
    monkeypatch.setattr(Term, "begin", never_ready)
    with capture_logs() as logs:
        await member.session.expire()
        await begins.wait()
        await member.election.leave()  # as a broker does that stops
        leaving = asyncio.create_task(member.membership.leave())
        await asyncio.wait([leaving], timeout=10)
    assert leaving.done()
    assert brokers.tree.find(znodes.CONTROLLER) is None
    assert [entry for entry in logs if "cannot register" in entry["event"]] == []


async def test_a_deposed_controller_cannot_write(brokers: Brokers) -> None:
    """KAFKA-6082: it does not know yet that it was deposed."""
    await brokers.term.create_topics([NewTopic("t", assignments=[(0, (2, 3))])])
    former = term_of(brokers, 1)
    brokers.members[1].session.deaf = True
    await brokers.members[3].session.multi([Delete(znodes.CONTROLLER)])
    await brokers.settle()
    assert brokers.controllers in ([1, 2], [1, 3])
    assert former.is_active
    before = [(path, node) for path, node in brokers.tree.tree.nodes()]

    partition = PartitionImage(0, (2, 3), 3, 9, (3,))
    with pytest.raises(Deposed):
        await former._writes.write([Create("/brokers/topics/x", znodes.write_topic(b"x" * 16, [partition]))])
    assert not former.is_active
    assert [(path, node) for path, node in brokers.tree.tree.nodes()] == before
    # Whatever it is asked for now, it answers that it is not the controller.
    (created,) = await former.create_topics([NewTopic("u")])
    (deleted,) = await former.delete_topics([TopicReference("t")])
    (elected,) = await former.elect_leaders(ElectionType.UNCLEAN, [("t", 0)])
    answers = {created.error_code, deleted.error_code, elected.error_code}
    assert answers == {ErrorCode.NOT_CONTROLLER}
    assert len(brokers.controllers) == 1


async def test_an_order_of_a_deposed_controller_is_refused_and_ends_its_term(brokers: Brokers) -> None:
    """KAFKA-4229: two brokers believe that they are the controller; the others obey the newer one, and the older one
    finds out."""
    former = term_of(brokers, 1)
    brokers.members[1].session.deaf = True
    await brokers.members[3].session.multi([Delete(znodes.CONTROLLER)])
    await brokers.settle()
    newer = next(each for each in brokers.controllers if each != 1)
    assert brokers.scripted[2].controller == (newer, 2)
    former._ordering.follow_brokers()
    former._ordering._send_metadata(list(former.cluster.brokers.values()), [])
    await brokers.settle()
    assert not former.is_active
    assert brokers.controllers == [newer]


async def test_a_session_that_expires_unheard(brokers: Brokers) -> None:
    former = term_of(brokers, 1)
    session = brokers.members[1].session
    session.cut_off()
    await session.expire()
    await brokers.settle()
    assert len(brokers.controllers) == 2
    (unable,) = await former.create_topics([NewTopic("t")])
    assert unable.error_code in (ErrorCode.NOT_CONTROLLER, ErrorCode.KAFKA_STORAGE_ERROR)
    session.restore()
    await brokers.settle()
    assert not former.is_active
    assert len(brokers.controllers) == 1
    # It is a member again, under a new epoch.
    assert sorted(brokers.term.cluster.brokers) == [1, 2, 3]
    assert brokers.scripted[1].controller == says(brokers)


async def test_a_controller_keeps_its_term_while_the_registry_is_out_of_reach(brokers: Brokers) -> None:
    term = brokers.term
    session = brokers.members[1].session
    session.cut_off()
    await brokers.members[3].crash()
    (unable,) = await term.create_topics([NewTopic("t")])
    assert unable.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert brokers.term is term
    session.restore()
    await brokers.settle()
    assert brokers.term is term
    assert brokers.scripted[2].live_brokers == [1, 2]


async def test_elections_that_had_to_wait_for_the_registry_are_held_later(brokers: Brokers) -> None:
    await brokers.term.create_topics([NewTopic("t", assignments=[(0, (3, 2))])])
    session = brokers.members[1].session
    session.lose_change_to = znodes.state_path("t", 0)
    await brokers.members[3].crash()
    await brokers.settle()
    assert brokers.partition().leader_id == 3
    await brokers.pass_time(1)
    assert brokers.partition().leader_id == 2
    brokers.agreed()


async def test_nothing_is_refused_because_of_what_the_registry_showed_before_it_was_lost(brokers: Brokers) -> None:
    term, session = brokers.term, brokers.members[1].session
    session.lose_answer_to = znodes.topic_path("t")
    (created,) = await term.create_topics([NewTopic("t")])
    session.cut_off()
    (deleted,) = await term.delete_topics([TopicReference("u")])
    assert created.error_code is deleted.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    session.restore()
    await brokers.settle()
    (deleted,) = await term.delete_topics([TopicReference("u")])
    assert deleted.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("happened", [True, False])
async def test_an_election_whose_answer_was_lost(happened: bool) -> None:
    brokers = Brokers(1, session_type=FaultySession)
    member = brokers.members[1]
    await member.membership.open("a-new-cluster-of-22-ch")
    setattr(member.session, "lose_answer_to" if happened else "lose_change_to", znodes.CONTROLLER)
    opened = member.membership.registry

    async def the_same() -> Session:
        assert isinstance(opened, Session)
        return opened

    member.membership._open_session = the_same
    starting = asyncio.create_task(member.start())
    if not happened:
        with pytest.raises(RegistryUnavailable):
            await starting
        await member.election.start(opened)
    else:
        await starting
    await brokers.settle()
    assert brokers.controllers == [1]
    assert says(brokers) == (1, 1)
    await member.stop()


async def test_a_broker_whose_term_cannot_start_resigns(brokers: Brokers) -> None:
    """KAFKA-13407: an elected controller that never starts its term keeps the others from being elected."""

    async def fail(*arguments: object) -> Term:
        raise LookupError("this broker cannot")

    brokers.members[2].election._make_term = fail
    await brokers.members[1].stop()
    await brokers.settle()
    assert brokers.controllers == [3]
    await brokers.members[3].stop()
    await brokers.settle()
    assert brokers.tree.find(znodes.CONTROLLER) is None  # it tries again in a second
    brokers.members[2].election._make_term = brokers.members[2]._make_term
    await brokers.pass_time(1)
    assert brokers.controllers == [2]
