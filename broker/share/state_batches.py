"""The delivery states of ranges of offsets, as they are kept by the share coordinator. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple


class DeliveryState(IntEnum):
    """Of a record that a share group has been given. Numbered as in Kafka's records; 3 is reserved there."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        return self is DeliveryState.ACKNOWLEDGED or self is DeliveryState.ARCHIVED


class StateBatch(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


_last_offset = attrgetter("last_offset")


def combined(batches: Sequence[StateBatch], new: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Add batches to those that are there, which are sorted and do not overlap, and forget what is below the start.

    Where batches overlap, the one with the higher delivery count wins, and of two with the same count the one with the
    higher state: records can only come closer to their end. Neighbours in the same state become one.
    """
    added = sorted(new)
    kept = list(batches)
    if added:
        first = added[0].first_offset - 1  # a neighbour may become one with it
        last = max(batch.last_offset for batch in added) + 1
        begin = bisect_left(kept, first, key=_last_offset)
        end = begin
        while end < len(kept) and kept[end].first_offset <= last:
            end += 1
        kept[begin:end] = _merged([*kept[begin:end], *added])
    return tuple(_from(kept, start_offset)) if start_offset >= 0 else tuple(kept)


def _from(batches: list[StateBatch], start_offset: int) -> list[StateBatch]:
    begin = bisect_left(batches, start_offset, key=_last_offset)
    if not begin and (not batches or batches[0].first_offset >= start_offset):
        return batches
    left = batches[begin:]
    if left and left[0].first_offset < start_offset:
        left[0] = left[0]._replace(first_offset=start_offset)
    return left


def _merged(batches: list[StateBatch]) -> list[StateBatch]:
    """Each stretch between two borders has the state of the batch that ranks highest there."""
    batches.sort()
    borders = sorted({border for batch in batches for border in (batch.first_offset, batch.last_offset + 1)})
    open_batches: list[tuple[int, int, int]] = []  # highest rank first: count, state and last offset, negative
    merged: list[StateBatch] = []
    place = 0
    for first, end in pairwise(borders):
        while place < len(batches) and batches[place].first_offset == first:
            _, last, state, count = batches[place]
            heappush(open_batches, (-count, -state, -last))
            place += 1
        while open_batches and -open_batches[0][2] < first:
            heappop(open_batches)
        if not open_batches:
            continue
        count, state = -open_batches[0][0], -open_batches[0][1]
        if merged and merged[-1][1:] == (first - 1, state, count):
            first = merged.pop().first_offset
        merged.append(StateBatch(first, end - 1, state, count))
    return merged
