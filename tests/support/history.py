"""What clients of a cluster did and saw, and a checker of it in the manner of Jepsen's for Kafka.

Each client records what it is about to do, and the outcome, as events with a common clock. A value is sent only once,
so that a value that is in a log twice was duplicated on the way, not by the client. `check` compares all of it with the
logs as they are in the end and names what is impossible:

    problems = check(events, everything, committed)      both: {partition: {offset: value}}

Nothing in here knows how the history came about: real processes write it as lines of JSON (`Event.from_json`), and
anything else may make the events itself.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

Log = Mapping[int, str]  # values by their offsets
Logs = Mapping[int, Log]  # by partition


class What(Enum):
    """The kinds of events. What ends in -ed has been answered by the cluster."""

    OPENED = "opened"  # a client begins; `kind` says what it is
    SEND = "send"  # partition, value; transaction, if in one
    SENT = "sent"  # value, offset (-1 if the library does not know it)
    COMMIT = "commit"  # transaction: from here on it may be committed
    COMMITTED = "committed"  # transaction
    ABORTED = "aborted"  # transaction
    ASSIGNED = "assigned"  # a member of a group starts again, at what the group has committed
    READ = "read"  # partition, offset, value
    OFFSET_COMMITTED = "offset committed"  # partition, offset


class Kind(Enum):
    PLAIN = "plain"  # at least once
    IDEMPOTENT = "idempotent"
    TRANSACTIONAL = "transactional"
    MEMBER = "member"  # of the group that `group` names; reads what is committed


class Problem(Enum):
    LOST_WRITE = "lost write"  # acknowledged, and not in the log
    LOST_READ = "lost after it was read"  # a consumer has seen it, and it is not in the log
    DUPLICATE = "duplicate"  # more than once, in spite of idempotence
    ALIEN = "never sent"
    ABORTED_READ = "aborted read"
    TORN = "torn transaction"  # some of it is there, and some is not
    OFFSETS = "inconsistent offsets"  # two answers put different values at one offset, or a value at two
    POLL = "non-monotonic poll"  # a consumer went back
    SKIPPED = "skipped"  # a consumer moved past what it should have read
    SEND = "non-monotonic send"  # a producer's records are in another order than it sent them in
    WENT_BACK = "committed offset went back"
    UNREAD = "not read by the group"  # although its members have read to the end


@dataclass(frozen=True, slots=True)
class Event:
    at: float
    who: str  # one life of one client
    what: What
    partition: int = -1
    offset: int = -1
    value: str = ""
    transaction: str = ""
    kind: Kind | None = None
    group: str = ""

    @classmethod
    def from_json(cls, line: str) -> Event:
        given = json.loads(line)
        given["what"] = What(given["what"])
        if "kind" in given:
            given["kind"] = Kind(given["kind"])
        return cls(**given)


class Found(NamedTuple):
    problem: Problem
    text: str

    def __str__(self) -> str:
        return f"{self.problem.value}: {self.text}"


@dataclass
class _Transaction:
    values: list[str] = field(default_factory=list)
    may_be_committed: bool = False
    is_committed: bool = False


class History:
    """Events in the order of time, and what follows from them."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = sorted(events, key=lambda event: event.at)
        self.kinds: dict[str, Kind] = {}
        self.groups: dict[str, str] = {}
        self.sends: dict[str, Event] = {}
        self.acknowledged: dict[str, Event] = {}
        self.transactions: dict[str, _Transaction] = defaultdict(_Transaction)
        self.reads: list[Event] = []
        for event in self.events:
            self._note(event)

    def _note(self, event: Event) -> None:
        match event.what:
            case What.OPENED:
                assert event.kind is not None
                self.kinds[event.who] = event.kind
                self.groups[event.who] = event.group
            case What.SEND:
                if event.value in self.sends:
                    raise ValueError(f"{event.value} was sent twice: by {self.sends[event.value].who} and {event.who}")
                self.sends[event.value] = event
                if event.transaction:
                    self.transactions[event.transaction].values.append(event.value)
            case What.SENT:
                self.acknowledged[event.value] = event
            case What.COMMIT:
                self.transactions[event.transaction].may_be_committed = True
            case What.COMMITTED:
                self.transactions[event.transaction].is_committed = True
            case What.READ:
                self.reads.append(event)

    def read_by_group(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {group: set() for group in self.groups.values() if group}
        for event in self.reads:
            found[self.groups[event.who]].add(event.value)
        return found

    def latecomers(self, logs: Logs) -> set[str]:
        """What idempotent producers sent before the first record that a log has of them, and what came after it.

        A log that knows nothing of a producer takes any sequence number, in Kafka as well (KIP-360). While the first
        batches wait in vain at a former leader, later ones may reach the new leader. The first are refused from then
        on, and come under a new epoch of the producer: nothing is lost, but the order is.
        """
        offsets = {(partition, value): offset for partition, log in logs.items() for offset, value in log.items()}
        sent = [each for each in self.sends.values() if self.kinds[each.who] is Kind.IDEMPOTENT]
        first: dict[tuple[str, int], Event] = {}
        for each in sorted(sent, key=lambda each: offsets.get((each.partition, each.value), -1)):
            if (each.partition, each.value) in offsets:
                first.setdefault((each.who, each.partition), each)
        late = set()
        for each in sent:
            known = first.get((each.who, each.partition))
            answer = self.acknowledged.get(each.value)
            if known is not None and each.at < known.at and (answer is None or answer.at > known.at):
                late.add(each.value)
        return late

    def swallowed(self, everything: Logs) -> dict[str, str]:
        """What librdkafka lost and took for written, and the records in whose place.

        When it aborts a transaction, it drops messages that wait for another attempt, and gives their sequence numbers
        to the next messages (librdkafka 2.16). If the first attempt was written before the leader died, a broker has to
        take the next message for the same one and answers with its offset, Apache Kafka as well.
        """
        found = {}
        for value, answer in self.acknowledged.items():
            sent = self.sends[value]
            there = everything.get(sent.partition, {}).get(answer.offset)
            before = self.sends.get(there) if there is not None and there != value else None
            if before is not None and before.who == sent.who and before.at < sent.at and self._was_dropped(before):
                found[value] = before.value
        return found

    def _was_dropped(self, sent: Event) -> bool:
        is_aborted = bool(sent.transaction) and not self.transactions[sent.transaction].may_be_committed
        return is_aborted and sent.value not in self.acknowledged

    def without(self, values: Collection[str]) -> History:
        """As if these had never been sent."""
        return History(
            event for event in self.events if event.what not in (What.SEND, What.SENT) or event.value not in values
        )

    def described(self, value: str) -> str:
        """A value with what is known about it, for a person."""
        sent = self.sends.get(value)
        if sent is None:
            return f"{value} (never sent)"
        answer = self.acknowledged.get(value)
        known = f"acknowledged at offset {answer.offset} at {answer.at:.3f}" if answer else "not acknowledged"
        within = f" in {sent.transaction}" if sent.transaction else ""
        return f"{value} (to {sent.partition}{within}, sent at {sent.at:.3f}, {known})"


def check(events: Iterable[Event] | History, everything: Logs, committed: Logs) -> list[Found]:
    """All that is wrong. `everything` are the logs with aborted records in them, `committed` as readers see them."""
    history = events if isinstance(events, History) else History(events)
    return _Checker(history, everything, committed).check()


class _Checker:
    def __init__(self, history: History, everything: Logs, committed: Logs) -> None:
        self._history = history
        self._everything = everything
        self._committed = committed
        self._found: list[Found] = []
        self._places: dict[str, list[tuple[int, int]]] = defaultdict(list)  # where a value is, aborted or not
        for partition, log in everything.items():
            for offset, value in sorted(log.items()):
                self._places[value].append((partition, offset))
        self._visible = {value for log in committed.values() for value in log.values()}

    def check(self) -> list[Found]:
        self._check_logs()
        self._check_acknowledged()
        self._check_transactions()
        self._check_order_of_sends()
        self._check_reads()
        self._check_groups()
        return self._found

    def _add(self, problem: Problem, text: str) -> None:
        self._found.append(Found(problem, text))

    def _kind_of(self, value: str) -> Kind:
        return self._history.kinds[self._history.sends[value].who]

    def _check_logs(self) -> None:
        for value, places in self._places.items():
            sent = self._history.sends.get(value)
            if sent is None:
                self._add(Problem.ALIEN, f"{value} at {places}")
                continue
            if any(partition != sent.partition for partition, _ in places):
                self._add(Problem.OFFSETS, f"{self._history.described(value)} is at {places}")
            if len(places) > 1 and self._kind_of(value) is not Kind.PLAIN:
                self._add(Problem.DUPLICATE, f"{self._history.described(value)} is at {places}")
        for partition, log in self._committed.items():
            for offset, value in log.items():
                if self._everything[partition].get(offset) != value:
                    there = self._everything[partition].get(offset)
                    self._add(Problem.OFFSETS, f"{value} at {partition}@{offset}, where another reader found {there}")

    def _check_acknowledged(self) -> None:
        for value, answer in self._history.acknowledged.items():
            sent = self._history.sends[value]
            places = self._places.get(value, [])
            if not sent.transaction and value not in self._visible:
                self._add(Problem.LOST_WRITE, self._history.described(value))
            elif places and answer.offset >= 0 and (sent.partition, answer.offset) not in places:
                self._add(Problem.OFFSETS, f"{self._history.described(value)} is at {places}")

    def _check_transactions(self) -> None:
        for name, each in self._history.transactions.items():
            there = [value for value in each.values if value in self._visible]
            missing = [value for value in each.values if value not in self._visible]
            if each.is_committed:
                for value in missing:
                    self._add(Problem.LOST_WRITE, f"{self._history.described(value)}, which was committed")
            elif not each.may_be_committed:
                for value in there:
                    self._add(Problem.ABORTED_READ, f"{self._history.described(value)} is in the log")
            if there and missing:
                self._add(Problem.TORN, f"{name}: there is {there}, and not {missing}")

    def _check_order_of_sends(self) -> None:
        last: dict[tuple[str, int], tuple[int, str]] = {}
        late = self._history.latecomers(self._everything)
        for value, sent in self._history.sends.items():  # in the order of time
            if value not in self._places or value in late or self._history.kinds[sent.who] is Kind.PLAIN:
                continue
            offset = self._places[value][0][1]
            before = last.get((sent.who, sent.partition))
            if before is not None and offset < before[0]:
                text = f"{self._history.described(value)} is at {offset}, before {before[1]} at {before[0]}"
                self._add(Problem.SEND, text)
            last[sent.who, sent.partition] = offset, value

    def _check_reads(self) -> None:
        offsets = {partition: sorted(log) for partition, log in self._committed.items()}
        index_of = {
            partition: {offset: index for index, offset in enumerate(sorted_)} for partition, sorted_ in offsets.items()
        }
        position: dict[tuple[str, int], int] = {}
        for event in self._history.events:
            if event.what is What.ASSIGNED:
                for key in [key for key in position if key[0] == event.who]:
                    del position[key]
            if event.what is not What.READ:
                continue
            at = f"{event.who} read {event.value} at {event.partition}@{event.offset} at {event.at:.3f}"
            self._check_read(event, at)
            before = position.get((event.who, event.partition))
            position[event.who, event.partition] = event.offset
            if before is None:
                continue
            if event.offset <= before:
                self._add(Problem.POLL, f"{at}, after offset {before}")
            elif before in (index := index_of.get(event.partition, {})) and event.offset in index:
                between = offsets[event.partition][index[before] + 1 : index[event.offset]]
                if between:
                    self._add(Problem.SKIPPED, f"{at}, after offset {before}, and not what is at {between[:5]}")

    def _check_read(self, event: Event, at: str) -> None:
        there = self._everything.get(event.partition, {}).get(event.offset)
        if event.value not in self._places:
            self._add(Problem.LOST_READ, f"{at}; {self._history.described(event.value)}")
        elif there != event.value:
            self._add(Problem.OFFSETS, f"{at}, where {there} is")
        elif event.value not in self._visible:
            self._add(Problem.ABORTED_READ, at)

    def _check_groups(self) -> None:
        for group, read in self._history.read_by_group().items():
            for value in sorted(self._visible - read):
                self._add(Problem.UNREAD, f"{group}: {self._history.described(value)}")
        # The group's place in a partition when a member began; nothing until its first read there.
        reached: dict[tuple[str, int], int] = defaultdict(int)
        begins_at: dict[str, dict[int, int]] = {}
        for event in self._history.events:
            group = self._history.groups.get(event.who, "")
            if event.what is What.OFFSET_COMMITTED:
                reached[group, event.partition] = max(reached[group, event.partition], event.offset)
            elif event.what is What.ASSIGNED:
                begins_at[event.who] = {p: offset for (name, p), offset in reached.items() if name == group}
            elif event.what is What.READ:
                place = begins_at.get(event.who, {}).pop(event.partition, 0)
                if event.offset < place:
                    text = f"{event.who} began at {event.partition}@{event.offset} at {event.at:.3f}"
                    self._add(Problem.WENT_BACK, f"{text}, after {group} had committed {place}")
