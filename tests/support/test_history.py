"""The checker finds each thing that may go wrong, and nothing where nothing is."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest

from tests.support.history import Event, Found, History, Kind, Logs, Problem, What, check
from tests.support.second_opinion import second_opinion


class Story:
    """A history in the making, with a second between two events."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        for kind in (Kind.PLAIN, Kind.IDEMPOTENT, Kind.TRANSACTIONAL):
            self.note(kind.value, What.OPENED, kind=kind)

    def note(self, who: str, what: What, **fields: Any) -> None:
        self.events.append(Event(float(len(self.events)), who, what, **fields))

    def member(self, who: str = "member", group: str = "group") -> None:
        self.note(who, What.OPENED, kind=Kind.MEMBER, group=group)
        self.note(who, What.ASSIGNED)

    def send(self, value: str, offset: int | None = None, who: str = "idempotent", transaction: str = "") -> None:
        self.note(who, What.SEND, partition=0, value=value, transaction=transaction)
        if offset is not None:
            self.note(who, What.SENT, value=value, offset=offset)

    def read(self, *entries: tuple[int, str], who: str = "member") -> None:
        for offset, value in entries:
            self.note(who, What.READ, partition=0, offset=offset, value=value)

    def check(self, log: dict[int, str], committed: dict[int, str] | None = None) -> list[Found]:
        everything: Logs = {0: log}
        return check(self.events, everything, everything if committed is None else {0: committed})

    def problems(self, log: dict[int, str], committed: dict[int, str] | None = None) -> list[Problem]:
        return [found.problem for found in self.check(log, committed)]


@pytest.fixture
def story() -> Story:
    return Story()


def transaction(story: Story, name: str, *values: str, commit: bool | None) -> None:
    """With commit=None, nobody knows what came of it."""
    for value in values:
        story.send(value, who="transactional", transaction=name)
    if commit is not False:
        story.note("transactional", What.COMMIT, transaction=name)
    if commit is not None:
        story.note("transactional", What.COMMITTED if commit else What.ABORTED, transaction=name)


def test_nothing_is_wrong_where_everything_is_as_it_was_said(story: Story) -> None:
    story.send("a", 0)
    story.send("b", 1)
    story.send("unknown and there")
    story.send("unknown and lost")
    transaction(story, "one", "c", "d", commit=True)
    transaction(story, "two", "e", commit=False)
    transaction(story, "three", "f", "g", commit=None)
    log = {0: "a", 1: "b", 2: "unknown and there", 3: "c", 4: "d", 6: "e"}
    committed = {offset: value for offset, value in log.items() if value != "e"}
    story.member()
    story.read(*committed.items())
    assert story.check(log, committed) == []


def test_a_lost_write(story: Story) -> None:
    story.send("a", 0)
    story.send("b", 1)
    assert story.problems({0: "a"}) == [Problem.LOST_WRITE]


def test_a_lost_write_of_a_transaction_tears_it_too(story: Story) -> None:
    transaction(story, "one", "a", "b", commit=True)
    assert story.problems({0: "a"}) == [Problem.LOST_WRITE, Problem.TORN]


def test_a_torn_transaction_of_which_nobody_knows_the_end(story: Story) -> None:
    transaction(story, "one", "a", "b", commit=None)
    assert story.problems({0: "a", 1: "b"}, {0: "a"}) == [Problem.TORN]


def test_an_aborted_transaction_in_the_log(story: Story) -> None:
    transaction(story, "one", "a", commit=False)
    assert story.problems({0: "a"}) == [Problem.ABORTED_READ]


def test_a_transaction_that_was_never_to_be_committed(story: Story) -> None:
    story.send("a", who="transactional", transaction="one")
    assert story.problems({0: "a"}) == [Problem.ABORTED_READ]


def test_a_reader_sees_what_was_aborted(story: Story) -> None:
    transaction(story, "one", "a", commit=False)
    story.member()
    story.read((0, "a"))
    assert story.problems({0: "a"}, {}) == [Problem.ABORTED_READ]


@pytest.mark.parametrize(("who", "expected"), [("idempotent", [Problem.DUPLICATE]), ("plain", [])])
def test_a_duplicate(story: Story, who: str, expected: list[Problem]) -> None:
    story.send("a", 0, who=who)
    assert story.problems({0: "a", 1: "a"}) == expected


def test_an_acknowledgement_with_the_wrong_offset(story: Story) -> None:
    story.send("a", 1)
    assert story.problems({0: "a"}) == [Problem.OFFSETS]


def test_two_readers_find_different_values_at_one_offset(story: Story) -> None:
    story.send("a", 0)
    story.send("b", 1)
    story.member()
    story.read((0, "b"), (1, "b"), (2, "a"))
    assert story.problems({0: "a", 1: "b"}) == [Problem.OFFSETS, Problem.OFFSETS]


def test_what_was_read_and_is_gone(story: Story) -> None:
    story.send("a")
    story.member()
    story.read((0, "a"))
    assert story.problems({}) == [Problem.LOST_READ]


def test_what_nobody_sent(story: Story) -> None:
    assert story.problems({0: "a"}) == [Problem.ALIEN]


def test_a_reader_goes_back(story: Story) -> None:
    story.send("a", 0)
    story.send("b", 1)
    story.member()
    story.read((0, "a"), (1, "b"), (0, "a"))
    assert story.problems({0: "a", 1: "b"}) == [Problem.POLL]


def test_a_reader_may_go_back_when_it_begins_anew(story: Story) -> None:
    story.send("a", 0)
    story.member()
    story.read((0, "a"))
    story.note("member", What.ASSIGNED)
    story.read((0, "a"))
    assert story.problems({0: "a"}) == []


def test_a_reader_skips_a_record(story: Story) -> None:
    for offset, value in enumerate("abc"):
        story.send(value, offset)
    story.member("one")
    story.read((0, "a"), (2, "c"), who="one")
    story.member("two")
    story.read((1, "b"), who="two")
    assert story.problems({0: "a", 1: "b", 2: "c"}) == [Problem.SKIPPED]


def test_a_group_leaves_a_record_out(story: Story) -> None:
    for offset, value in enumerate("ab"):
        story.send(value, offset)
    story.member()
    story.read((0, "a"))
    assert story.problems({0: "a", 1: "b"}) == [Problem.UNREAD]


def test_a_group_begins_before_what_it_has_committed(story: Story) -> None:
    for offset, value in enumerate("ab"):
        story.send(value, offset)
    story.member("one")
    story.read((0, "a"), (1, "b"), who="one")
    story.note("one", What.OFFSET_COMMITTED, partition=0, offset=2)
    story.member("two")
    story.read((1, "b"), who="two")
    assert story.problems({0: "a", 1: "b"}) == [Problem.WENT_BACK]


@pytest.mark.parametrize(("who", "expected"), [("idempotent", [Problem.SEND]), ("plain", [])])
def test_records_in_another_order_than_they_were_sent_in(story: Story, who: str, expected: list[Problem]) -> None:
    story.send("a", 1, who=who)
    story.send("b", 0, who=who)
    assert story.problems({0: "b", 1: "a"}) == expected


def test_the_first_records_of_an_idempotent_producer_are_overtaken(story: Story) -> None:
    """They were still on their way to a former leader when the new one saw the producer for the first time."""
    story.send("a")
    story.send("b")
    story.send("c", 0)
    story.send("d", 1)
    for value, offset in (("a", 2), ("b", 3)):
        story.note("idempotent", What.SENT, value=value, offset=offset)
    log = {0: "c", 1: "d", 2: "a", 3: "b"}
    assert story.problems(log) == []
    assert second_opinion(History(story.events), {0: log}) == []


def test_later_records_of_an_idempotent_producer_are_not_overtaken(story: Story) -> None:
    story.send("a", 0)
    story.send("b")
    story.send("c", 1)
    story.note("idempotent", What.SENT, value="b", offset=2)
    log = {0: "a", 1: "c", 2: "b"}
    assert story.problems(log) == [Problem.SEND]
    assert len(second_opinion(History(story.events), {0: log})) == 1


def test_a_record_with_the_sequence_number_of_one_that_was_dropped(story: Story) -> None:
    """It was written, but nobody knew. The broker took the next one for a repetition."""
    story.send("dropped", who="transactional", transaction="one")
    story.note("transactional", What.ABORTED, transaction="one")
    story.send("next", 0, who="transactional", transaction="two")
    story.send("last", 2, who="transactional", transaction="two")
    for what in (What.COMMIT, What.COMMITTED):
        story.note("transactional", what, transaction="two")
    everything, committed = {0: {0: "dropped", 2: "last"}}, {0: {2: "last"}}
    history = History(story.events)
    assert [each.problem for each in check(history, everything, committed)] == [Problem.LOST_WRITE, Problem.TORN]
    assert history.swallowed(everything) == {"next": "dropped"}
    history = history.without({"next"})
    assert check(history, everything, committed) == []
    assert second_opinion(history, committed) == []


@pytest.mark.parametrize("answered", [True, False])
def test_a_record_in_whose_place_is_another_one(story: Story, answered: bool) -> None:
    story.send("other", 0 if answered else None, who="transactional", transaction="one")
    if not answered:
        story.note("transactional", What.COMMIT, transaction="one")  # its end is not known
    story.send("lost", 0, who="transactional", transaction="two")
    assert History(story.events).swallowed({0: {0: "other"}}) == {}


@pytest.mark.skipif(importlib.util.find_spec("barnabas.simulation") is None, reason="there is no simulation yet")
def test_the_simulations_checker_finds_the_same(story: Story) -> None:
    story.send("a", 0)
    story.send("b", 1)
    transaction(story, "one", "c", "d", commit=True)
    transaction(story, "two", "e", commit=False)
    story.note("transactional", What.SENT, value="c", offset=2)
    story.note("transactional", What.SENT, value="d", offset=3)
    story.member()
    good = {0: "a", 1: "b", 2: "c", 3: "d"}
    story.read(*good.items())
    history = History(story.events)
    assert second_opinion(history, {0: good}) == []
    bad = {0: "a", 2: "c", 5: "e"}
    kinds = {each.partition(":")[0] for each in second_opinion(history, {0: bad})}
    assert kinds == {"lost write", "aborted read", "torn transaction"}


def test_an_event_from_a_line() -> None:
    line = json.dumps({"at": 1.5, "who": "x", "what": "opened", "kind": "member", "group": "g"})
    assert Event.from_json(line) == Event(1.5, "x", What.OPENED, kind=Kind.MEMBER, group="g")
