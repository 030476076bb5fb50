"""Which of a topic's subscribers has the fewest partitions, and which the most, while partitions move between them."""

from __future__ import annotations

from collections.abc import Sequence


class Loads:
    """Subscribers by their load, with a range at either end in which all have the same.

    Each member of the light range gets a partition in turn. When all have one more, the range rises by one level and
    takes in the members that were already there. The heavy range gives partitions away in the same manner, and falls.
    `sizes` is the caller's, who keeps it up to date: a range takes in whom it finds at its level at that moment.
    """

    def __init__(self, members: Sequence[int], sizes: Sequence[int]) -> None:
        """The members are ascending, and equal ones stay so."""
        self._sizes = sizes
        self._members = sorted(members, key=sizes.__getitem__)
        self._light_level = sizes[self._members[0]] - 1
        self._light_end = 0  # the range begins at 0
        self._next_light = 0
        self._heavy_level = sizes[self._members[-1]] + 1
        self._heavy_start = self._heavy_end = len(members)  # members after the end have nothing to give
        self._next_heavy = len(members) - 1

    @property
    def spread(self) -> int:
        """By how many partitions the extremes differ, before the first has moved."""
        return self._heavy_level - self._light_level - 2

    @property
    def is_even(self) -> bool:
        """Another move would improve nothing."""
        return self._heavy_level - self._light_level <= 1

    def lightest(self) -> int:
        """Who gets the next partition."""
        if self._next_light >= self._light_end:
            self._light_level += 1
            while self._light_end < len(self._members) and self._size_at(self._light_end) == self._light_level:
                self._light_end += 1
            self._next_light = 0
        self._next_light += 1
        return self._members[self._next_light - 1]

    def heaviest(self) -> int | None:
        """Who gives the next partition away, if anybody can."""
        if self._next_heavy < self._heavy_start:
            if self._heavy_start == self._heavy_end > 0:  # a new range: it begins wherever the next member is
                self._heavy_level = self._size_at(self._heavy_start - 1)
            else:
                self._heavy_level -= 1
            while self._heavy_start > 0 and self._size_at(self._heavy_start - 1) == self._heavy_level:
                self._heavy_start -= 1
            self._next_heavy = self._heavy_end - 1
        if self._next_heavy < 0:
            return None
        self._next_heavy -= 1
        return self._members[self._next_heavy + 1]

    def leave_out_heaviest(self) -> None:
        """Whom `heaviest` has just named has nothing to give: it leaves the range, by changing places with its end."""
        here, end = self._next_heavy + 1, self._heavy_end - 1
        self._members[here], self._members[end] = self._members[end], self._members[here]
        self._heavy_end = end

    def _size_at(self, place: int) -> int:
        return self._sizes[self._members[place]]
