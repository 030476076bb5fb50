"""The last offset of every key in the dirty section of a log, or in as much of it as fits into the allowed memory."""

from bisect import bisect_left, bisect_right
from typing import Final

from barnabas.storage.cleaner.record_scan import ScannedKeys

# The memory of an entry besides the key: its share of the table, which is larger while it grows, and two objects.
_ENTRY_SIZE: Final = 170


class OffsetMap:
    def __init__(self, first_dirty_offset: int, max_bytes: int) -> None:
        self.first_dirty_offset = first_dirty_offset
        # All records up to here are in the map. Compaction ends here.
        self.latest_offset = first_dirty_offset - 1
        self.offsets: dict[bytes | None, int] = {}
        # The base offsets of batches that are entirely in the map, without gaps between offsets and without tombstones.
        # For these, the offsets in the map determine what remains.
        self.plain_batches: set[int] = set()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._sorted_offsets: list[int] | None = None

    @property
    def is_full(self) -> bool:
        return self._bytes >= self._max_bytes

    def add(self, base_offset: int, scanned: ScannedKeys) -> None:
        """Add a batch's records. The last one of a key counts."""
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
        """The map is complete. `last_between` may be called from now on."""
        self._sorted_offsets = sorted(self.offsets.values())

    def last_between(self, first_offset: int, last_offset: int) -> list[int]:
        """The offsets in this range that are the last of their key."""
        offsets = self._sorted_offsets
        if offsets is None:
            raise RuntimeError("the map is not finished")
        start = bisect_left(offsets, first_offset)
        return offsets[start : bisect_right(offsets, last_offset, start)]
