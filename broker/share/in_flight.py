"""The records of a share partition that are under way: which were given to whom, and what happened to them. Pure.

They are kept as ranges of offsets, each in one state. Everything below the start is done with; everything from
`next_new` on has not been given to anybody. A change that has to be written first (an acknowledgement, the end of a
session) begins with a `Transition`, and counts when that is completed. A range in transition stays as it is meanwhile.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from barnabas.broker.share.state_batches import DeliveryState, StateBatch
from barnabas.protocol.errors import ErrorCode

_NOBODY: Final = ""
_NEVER: Final = 0.0
_FEWEST_BEFORE_CAUTION: Final = 2

_AVAILABLE: Final = DeliveryState.AVAILABLE
_ACQUIRED: Final = DeliveryState.ACQUIRED
_ACKNOWLEDGED: Final = DeliveryState.ACKNOWLEDGED
_ARCHIVED: Final = DeliveryState.ARCHIVED


class AcknowledgeType(IntEnum):
    GAP = 0  # there is no record at this offset
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4  # keep it for longer


class Limits(NamedTuple):
    """The settings of a group, as of now."""

    delivery_count: int
    record_locks: int
    may_renew: bool = True

    @property
    def careful_from(self) -> int:
        """From this delivery count on, records are given in small portions: one of them may kill its consumers."""
        return max(_FEWEST_BEFORE_CAUTION, -(-self.delivery_count // 2))


class FetchedBatch(NamedTuple):
    """The offsets of a record batch in the log."""

    first: int
    last: int


class Acquired(NamedTuple):
    first: int
    last: int
    delivery_count: int


class Acknowledgement(NamedTuple):
    first: int
    last: int
    types: Sequence[int]  # one for all, or one for each


class Acquisition(NamedTuple):
    """Who asks for records, and how many they may be."""

    member: str
    max_records: int
    batch_size: int
    is_exact: bool  # never more than `max_records`, even if that takes a record batch apart
    deadline: float  # when the records are available again


class _Range:
    __slots__ = ("count", "deadline", "first", "in_transition", "last", "member", "origin", "state")

    def __init__(self, first: int, last: int, state: DeliveryState, count: int, origin: FetchedBatch) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.origin = origin  # what was first acquired together stays together when it is acquired again
        self.member = _NOBODY
        self.deadline = _NEVER
        self.in_transition = False

    @property
    def can_be_acquired(self) -> bool:
        return self.state is _AVAILABLE and not self.in_transition

    def split_off(self, first: int) -> _Range:
        """The part from `first` on, which this one loses."""
        rest = _Range(first, self.last, self.state, self.count, self.origin)
        rest.member = self.member
        rest.deadline = self.deadline
        self.last = first - 1
        return rest


class Transition:
    """Changes that count once they are written."""

    __slots__ = ("changes",)

    def __init__(self) -> None:
        self.changes: list[tuple[_Range, DeliveryState]] = []

    def add(self, of: _Range, state: DeliveryState) -> None:
        of.in_transition = True
        self.changes.append((of, state))

    @property
    def batches(self) -> list[StateBatch]:
        return [StateBatch(each.first, each.last, state, each.count) for each, state in self.changes]


_first = attrgetter("first")


class InFlight:
    def __init__(self, start_offset: int, batches: Iterable[StateBatch] = ()) -> None:
        """From what was written. Offsets between its batches were given to somebody who never said what happened to
        them: they are available, as if nobody had had them."""
        self.start_offset = start_offset
        self.next_new = start_offset
        self._ranges: list[_Range] = []
        self._may_have_available = False
        for first, last, number, count in sorted(batches):
            if last < self.next_new:
                continue
            if first > self.next_new:
                self._load(self.next_new, first - 1, _AVAILABLE, 0)
            state = DeliveryState(number)
            self._load(max(first, self.next_new), last, _AVAILABLE if state is _ACQUIRED else state, count)
        self.move_start()

    def _load(self, first: int, last: int, state: DeliveryState, count: int) -> None:
        self._ranges.append(_Range(first, last, state, count, FetchedBatch(first, last)))
        self._may_have_available = self._may_have_available or state is _AVAILABLE
        self.next_new = last + 1

    # --- looking ---

    @property
    def is_empty(self) -> bool:
        return not self._ranges

    @property
    def record_count(self) -> int:
        """How many offsets are under way, done with or not."""
        return self.next_new - self.start_offset if self._ranges else 0

    @property
    def completed_count(self) -> int:
        """How many of them are done with, or will be when what is being written is."""
        completed = 0
        for each in self._ranges:
            if each.state.is_terminal and each.last >= self.start_offset:
                completed += each.last - max(each.first, self.start_offset) + 1
        return completed

    def completed_with(self, transitions: Iterable[Transition]) -> int:
        """`completed_count` once these are completed."""
        return self.completed_count + sum(
            each.last - each.first + 1
            for transition in transitions
            for each, state in transition.changes
            if state.is_terminal
        )

    def next_fetch_offset(self) -> int:
        """Where the next records to give away are."""
        if self._may_have_available:
            for each in self._ranges:
                if each.can_be_acquired and each.last >= self.start_offset:
                    return max(each.first, self.start_offset)
            self._may_have_available = False
        return self.next_new

    def can_acquire(self, limits: Limits) -> bool:
        return self.next_fetch_offset() < self.next_new or self.record_count < limits.record_locks

    def next_deadline(self) -> float | None:
        """When the first acquisition runs out."""
        return min(
            (each.deadline for each in self._ranges if each.state is _ACQUIRED and not each.in_transition), default=None
        )

    def states(self) -> list[tuple[int, int, DeliveryState, int, str]]:
        """First and last offset, state, delivery count and owner of every range."""
        return [(each.first, each.last, each.state, each.count, each.member) for each in self._ranges]

    # --- acquiring ---

    def acquire(
        self, asked: Acquisition, fetched: Sequence[FetchedBatch], fetch_offset: int, limits: Limits
    ) -> list[Acquired]:
        """Give records to a member: those of `fetched`, which was read from `fetch_offset` on, that are available.

        Whole record batches are given, even if that is more than was asked for, unless it must be exact.
        """
        base, last = fetched[0].first, fetched[-1].last
        wanted = min(asked.max_records, limits.record_locks - self.record_count)
        if wanted <= 0 and fetch_offset < self.next_new:  # nothing new, but what came back
            wanted = min(asked.max_records, self.next_new - fetch_offset)
            last = min(last, self.next_new - 1)
        if last < self.start_offset or wanted <= 0:
            return []
        self.archive(fetch_offset, base - 1)  # compacted away meanwhile
        first = max(base, self.start_offset)
        acquired, is_over = self._acquire_again(asked, fetched, first, last, wanted, limits)
        left = wanted - sum(each.last - each.first + 1 for each in acquired)
        if not is_over and left > 0 and self.next_new <= last:
            acquired += self._acquire_new(asked, fetched, max(first, self.next_new), last, left)
        self.move_start()
        return acquired

    def _acquire_again(
        self,
        asked: Acquisition,
        fetched: Sequence[FetchedBatch],
        first: int,
        last: int,
        wanted: int,
        limits: Limits,
    ) -> tuple[list[Acquired], bool]:
        """What came back, or was never given away after all. Also tells whether nothing else may be given with it."""
        acquired: list[Acquired] = []
        left = wanted
        if not self._may_have_available:
            return acquired, False
        for origin, group in groupby(list(self._overlapping(first, last)), key=attrgetter("origin")):
            if left <= 0:
                break
            available = [each for each in group if each.can_be_acquired]
            if not available:
                continue
            highest = max(each.count for each in available)
            is_careful = highest >= limits.careful_from
            if is_careful and left < wanted:
                return acquired, True
            portion = left if asked.is_exact else last - first + 1
            if not highest:
                portion = min(portion, _up_to_batch_end(fetched, max(origin.first, first), left))
            taken = 0
            for each in available:
                if is_careful and each.count >= limits.careful_from:
                    size = origin.last - origin.first + 1
                    portion = min(portion, max(1, size >> (each.count - limits.careful_from + 1)))
                    if each.count == limits.delivery_count - 1 and limits.delivery_count > _FEWEST_BEFORE_CAUTION:
                        portion = min(portion, max(taken, 1))  # its last delivery: alone
                if taken >= portion:
                    break
                begin = max(each.first, first)
                end = min(each.last, last, begin + portion - taken - 1)
                given = self._cut(each, begin, end)
                self._give(given, asked)
                taken += end - begin + 1
                if acquired and acquired[-1][1:] == (begin - 1, given.count):
                    acquired[-1] = Acquired(acquired[-1].first, end, given.count)
                else:
                    acquired.append(Acquired(begin, end, given.count))
            left -= taken
            if is_careful:
                return acquired, True
        return acquired, False

    def _acquire_new(
        self, asked: Acquisition, fetched: Sequence[FetchedBatch], first: int, last: int, wanted: int
    ) -> list[Acquired]:
        if asked.is_exact:
            last = min(last, first + wanted - 1)
            borders = []
        else:
            last = min(last, first + _up_to_batch_end(fetched, first, wanted) - 1)
            borders = _borders(fetched, first, last, asked.batch_size)
        acquired = []
        for begin, end in zip([first, *borders], [*(border - 1 for border in borders), last], strict=True):
            new = _Range(begin, end, _AVAILABLE, 0, FetchedBatch(begin, end))
            self._give(new, asked)
            self._ranges.append(new)
            acquired.append(Acquired(begin, end, 1))
        self.next_new = last + 1
        return acquired

    def _give(self, given: _Range, asked: Acquisition) -> None:
        given.state = _ACQUIRED
        given.count += 1
        given.member = asked.member
        given.deadline = asked.deadline

    # --- acknowledging ---

    def acknowledge(
        self, member: str, acknowledgements: Sequence[Acknowledgement], limits: Limits, deadline: float
    ) -> ErrorCode | Transition:
        """What becomes of records that a member has; all or nothing. Records that are renewed are its own until the
        deadline, whatever is written."""
        transition = Transition()
        renewed: list[_Range] = []
        for acknowledgement in acknowledgements:
            error = self._acknowledge(member, acknowledgement, limits, transition, renewed)
            if error:
                for each, _ in transition.changes:
                    each.in_transition = False
                return error
        for each in renewed:
            each.deadline = deadline
        return transition

    def _acknowledge(
        self,
        member: str,
        acknowledgement: Acknowledgement,
        limits: Limits,
        transition: Transition,
        renewed: list[_Range],
    ) -> ErrorCode:
        first, last, types = acknowledgement
        if last < self.start_offset:
            return ErrorCode.NONE  # is done with
        if not self._ranges or (first < self._ranges[0].first and not first < self.start_offset <= last):
            return ErrorCode.INVALID_RECORD_STATE
        if last >= self.next_new:
            return ErrorCode.INVALID_REQUEST
        for each in list(self._overlapping(max(first, self.start_offset), last)):
            if each.state is not _ACQUIRED or each.in_transition or each.member != member:
                return ErrorCode.INVALID_RECORD_STATE
            begin, end = max(each.first, first, self.start_offset), min(each.last, last)
            for start, stop, kind in _runs(begin, end, first, types):
                part = self._cut(each, start, stop)
                if kind == AcknowledgeType.RENEW:
                    if not limits.may_renew:
                        return ErrorCode.INVALID_RECORD_STATE
                    renewed.append(part)
                else:
                    transition.add(part, self._after(part, kind, limits))
                if stop < end:
                    each = self._ranges[self._place_of(stop + 1)]
        return ErrorCode.NONE

    def _after(self, part: _Range, kind: int, limits: Limits) -> DeliveryState:
        if kind == AcknowledgeType.ACCEPT:
            return _ACKNOWLEDGED
        if kind == AcknowledgeType.RELEASE:
            return self._released(part, limits)
        return _ARCHIVED

    def _released(self, part: _Range, limits: Limits) -> DeliveryState:
        return _ARCHIVED if part.count >= limits.delivery_count or part.last < self.start_offset else _AVAILABLE

    def release(self, member: str, limits: Limits) -> Transition:
        """A member is gone: what it has comes back."""
        transition = Transition()
        for each in self._ranges:
            if each.state is _ACQUIRED and each.member == member and not each.in_transition:
                transition.add(each, self._released(each, limits))
        return transition

    def complete(self, transition: Transition) -> None:
        """It is written."""
        for each, state in transition.changes:
            each.in_transition = False
            self._become(each, state)
        self.move_start()

    def roll_back(self, transition: Transition) -> None:
        """It could not be written: members have what they had, until their time is over."""
        for each, _ in transition.changes:
            each.in_transition = False

    def _become(self, each: _Range, state: DeliveryState) -> None:
        each.state = state
        each.member = _NOBODY
        self._may_have_available = self._may_have_available or state is _AVAILABLE

    # --- time and the log ---

    def expire(self, now: float, limits: Limits) -> list[StateBatch]:
        """Take back what members have had for too long. Gives what is to be written, which need not be waited for."""
        released = []
        for each in self._ranges:
            if each.state is _ACQUIRED and each.deadline <= now and not each.in_transition:
                self._become(each, self._released(each, limits))
                released.append(StateBatch(each.first, each.last, each.state, each.count))
        return released

    def log_starts_at(self, offset: int) -> None:
        """Records below are deleted: nobody gets them, whatever happened to them."""
        if offset > self.start_offset:
            self.start_offset = offset
            self.next_new = max(self.next_new, offset)
            self.move_start()

    def archive(self, first: int, last: int) -> None:
        """There are no records for anybody at these offsets: what is available there is done with."""
        self._archive(first, last, _AVAILABLE)

    def take_back(self, first: int, last: int, acquired: Sequence[Acquired]) -> list[Acquired]:
        """Records that were just acquired are not for anybody: of an aborted transaction. Gives what is left."""
        self._archive(first, last, _ACQUIRED)
        left = []
        for each in acquired:
            if each.first < first:
                left.append(each._replace(last=min(each.last, first - 1)))
            if each.last > last:
                left.append(each._replace(first=max(each.first, last + 1)))
        return left

    def _archive(self, first: int, last: int, state: DeliveryState) -> None:
        for each in list(self._overlapping(first, last)):
            if each.state is state and not each.in_transition:
                self._become(self._cut(each, max(each.first, first), min(each.last, last)), _ARCHIVED)

    def move_start(self) -> None:
        """Forget what is done with at the beginning."""
        kept = 0
        for each in self._ranges:
            if each.in_transition or (each.last >= self.start_offset and not each.state.is_terminal):
                break
            kept += 1
            self.start_offset = max(self.start_offset, each.last + 1)
        if kept:
            del self._ranges[:kept]
        if self._ranges:
            head = self._ranges[0]
            if not head.in_transition:
                head.first = max(head.first, self.start_offset)
            self.start_offset = max(self.start_offset, head.first)

    # --- ranges ---

    def _place_of(self, offset: int) -> int:
        """The place of the range that has an offset, or of the first one after it."""
        place = bisect_right(self._ranges, offset, key=_first)
        return place - 1 if place and self._ranges[place - 1].last >= offset else place

    def _overlapping(self, first: int, last: int) -> Iterator[_Range]:
        if first > last:  # and a range that begins before both may contain them
            return
        place = self._place_of(first)
        while place < len(self._ranges) and self._ranges[place].first <= last:
            yield self._ranges[place]
            place += 1

    def _cut(self, each: _Range, first: int, last: int) -> _Range:
        """The part of a range from `first` to `last`, as a range of its own."""
        place = self._place_of(each.first)
        if first > each.first:
            each = each.split_off(first)
            place += 1
            self._ranges.insert(place, each)
        if last < each.last:
            self._ranges.insert(place + 1, each.split_off(last + 1))
        return each


def _up_to_batch_end(fetched: Sequence[FetchedBatch], first: int, wanted: int) -> int:
    """How many offsets from `first` on, so that there are as many as wanted and no record batch is taken apart."""
    offset = first + wanted - 1
    place = bisect_right(fetched, offset, key=_first)
    if place and fetched[place - 1].last >= offset:
        offset = fetched[place - 1].last
    return offset - first + 1


def _borders(fetched: Sequence[FetchedBatch], first: int, last: int, size: int) -> list[int]:
    """Where to part what is acquired, so that the parts have at least `size` offsets and whole record batches."""
    borders: list[int] = []
    if last - first + 1 <= size:
        return borders
    begin = first
    for batch in fetched:
        if batch.first > last:
            break
        if batch.first - begin >= size:
            borders.append(batch.first)
            begin = batch.first
    return borders


def _runs(begin: int, end: int, first: int, types: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Stretches of offsets that are acknowledged in the same way."""
    if len(types) == 1:
        yield begin, end, types[0]
        return
    for kind, offsets in groupby(range(begin, end + 1), key=lambda offset: types[offset - first]):
        run = list(offsets)
        yield run[0], run[-1], kind
