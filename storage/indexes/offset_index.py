"""The offset index of a segment, `.index`: where in the file to begin looking for an offset.

An entry has 8 bytes: the offset relative to the segment's base offset (int32) and the position of a batch (int32). The
offset is the last one in that batch. Entries are sparse: about one per `index.interval.bytes` of the log.
"""

import struct
from typing import Final

from barnabas.storage.indexes.index_file import IndexFile

_ENTRY: Final = struct.Struct(">ii")
_RELATIVE_OFFSET: Final = struct.Struct(">i")
_MAX_RELATIVE_OFFSET: Final = 2**31 - 1


class OffsetIndex(IndexFile):
    ENTRY_SIZE = 8

    __slots__ = ()

    def append(self, offset: int, position: int) -> None:
        self._append_entry(_ENTRY.pack(offset - self.base_offset, position))

    def lookup(self, offset: int) -> tuple[int, int]:
        """Where to begin looking for the batch that holds `offset`: the nearest entry at or before it.

        Returns the last offset of the batch there, and its position; (the segment's base offset, 0) if there is no
        entry.
        """
        data = self._data()
        index = self._first_after(offset)
        if not index:
            return self.base_offset, 0
        relative_offset, position = _ENTRY.unpack_from(data, (index - 1) * 8)
        return self.base_offset + relative_offset, position

    def first_offset_from(self, position: int) -> int | None:
        """The nearest known offset that no batch before `position` reaches; None if the index has none."""
        data = self._data()
        low, high = 0, self.size >> 3
        while low < high:
            middle = (low + high) >> 1
            if _ENTRY.unpack_from(data, middle << 3)[1] < position:
                low = middle + 1
            else:
                high = middle
        if low == self.size >> 3:
            return None
        relative_offset: int = _ENTRY.unpack_from(data, low << 3)[0]
        return self.base_offset + relative_offset

    def last(self) -> tuple[int, int]:
        """The offset and position of the last entry, or of the segment's beginning if there is none."""
        if not self.size:
            return self.base_offset, 0
        relative_offset, position = _ENTRY.unpack_from(self._data(), self.size - 8)
        return self.base_offset + relative_offset, position

    def truncate_to(self, offset: int) -> None:
        """Drop the entries for `offset` and later."""
        self.truncate_entries(self._first_after(offset - 1))

    def _first_after(self, offset: int) -> int:
        """The index of the first entry with a larger offset."""
        relative_offset = offset - self.base_offset
        if relative_offset < 0:
            return 0
        # Non-negative big-endian numbers sort like their bytes.
        wanted = _RELATIVE_OFFSET.pack(min(relative_offset, _MAX_RELATIVE_OFFSET))
        data = self._data()
        low, high = 0, self.size >> 3
        while low < high:
            middle = (low + high) >> 1
            start = middle << 3
            if data[start : start + 4] <= wanted:
                low = middle + 1
            else:
                high = middle
        return low
