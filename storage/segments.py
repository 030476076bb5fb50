"""The segments of a log, in order of their base offsets. There is at least one; the last is the active one."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from barnabas.storage.segment import Segment


class Segments:
    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = sorted(segments, key=lambda segment: segment.base_offset)
        self._base_offsets = [segment.base_offset for segment in self._segments]
        self.active = self._segments[-1]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that would hold `offset`, and those after it."""
        return self._segments[max(bisect_right(self._base_offsets, offset) - 1, 0) :]

    def before(self, offset: int) -> list[Segment]:
        """The segments before the one that would hold `offset`."""
        return self._segments[: max(bisect_right(self._base_offsets, offset) - 1, 0)]

    def floor(self, offset: int) -> Segment:
        """The segment that would hold `offset`: the last one that begins at or before it, or else the first one."""
        if offset >= self.active.base_offset:
            return self.active
        return self._segments[max(bisect_right(self._base_offsets, offset) - 1, 0)]

    def after(self, segment: Segment) -> Segment | None:
        """The next segment."""
        index = bisect_right(self._base_offsets, segment.base_offset)
        return self._segments[index] if index < len(self._segments) else None

    def with_ends(self, end_offset: int) -> Iterator[tuple[Segment, int]]:
        """Every segment with its end offset. The active one ends where the log does."""
        ends = [*self._base_offsets[1:], end_offset]
        return zip(self._segments, ends, strict=True)

    def add(self, segment: Segment) -> None:
        index = bisect_left(self._base_offsets, segment.base_offset)
        self._segments.insert(index, segment)
        self._base_offsets.insert(index, segment.base_offset)
        self.active = self._segments[-1]

    def remove(self, segment: Segment) -> None:
        index = self._segments.index(segment)
        del self._segments[index]
        del self._base_offsets[index]
        self.active = self._segments[-1]
