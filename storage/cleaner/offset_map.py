"""The last offset of every key in the dirty section of a log, or in as much of it as fits into the memory allowed."""

from bisect import bisect_left, bisect_right
from typing import Final

from storage.cleaner.record_scan import ScannedKeys

# What an entry takes besides the key itself: its share of the table, which is larger while it grows, and two objects.
_ENTRY_SIZE: Final = 170


class OffsetMap:
    def __init__(self, first_dirty_offset: int, max_bytes: int) -> None:
        self.first_dirty_offset = first_dirty_offset
        # All records up to here are in the map. Compaction goes no further.
        self.latest_offset = first_dirty_offset - 1
        self.offsets: dict[bytes | None, int] = {}
        # The base offsets of batches that are in the map as a whole, have no gaps between their offsets, and no records
        # without a value: of those the offsets that are left say all there is to know.
        self.plain_batches: set[int] = set()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._sorted_offsets: list[int] | None = None

    @property
    def is_full(self) -> bool:
        return self._bytes >= self._max_bytes

    def add(self, base_offset: int, scanned: ScannedKeys) -> None:
        """Take note of a batch's records; of several with one key the last counts."""
        keys, offsets, tombstones = scanned
        before = len(self.offsets)
        records = zip(keys, offsets, strict=True)
        if base_offset < self.first_dirty_offset:
            self.offsets.update((key, offset) for key, offset in records if offset >= self.first_dirty_offset)
        else:
            self.offsets.update(records)
            if not tombstones and offsets == list(range(base_offset, base_offset + len(offsets))):
                self.plain_batches.add(base_offset)
        self.offsets.pop(None, None)
        added = len(self.offsets) - before
        if added:
            self._bytes += added * (_ENTRY_SIZE + len(b"".join(filter(None, keys))) // len(keys))

    def finish(self) -> None:
        """All is in. From here on `last_between` can be asked."""
        self._sorted_offsets = sorted(self.offsets.values())

    def last_between(self, first_offset: int, last_offset: int) -> list[int]:
        """Which of the offsets in a stretch are the last of their key."""
        offsets = self._sorted_offsets
        if offsets is None:
            raise RuntimeError("the map is not finished")
        start = bisect_left(offsets, first_offset)
        return offsets[start : bisect_right(offsets, last_offset, start)]
