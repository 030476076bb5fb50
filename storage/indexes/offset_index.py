"""The offset index of a segment, `.index`: where in the file to begin looking for an offset.

An entry has 8 bytes: the offset relative to the segment's base offset (int32) and the position of a batch (int32). The
offset is the last one in that batch. Entries are sparse: one for about every `index.interval.bytes` of the log.
"""

import struct
from typing import Final

from storage.indexes.index_file import IndexFile

_ENTRY: Final = struct.Struct(">ii")
_RELATIVE_OFFSET: Final = struct.Struct(">i")
_MAX_RELATIVE_OFFSET: Final = 2**31 - 1


class OffsetIndex(IndexFile):
    ENTRY_SIZE = 8

    __slots__ = ()

    def append(self, offset: int, position: int) -> None:
        self._append_entry(_ENTRY.pack(offset - self.base_offset, position))

    def lookup(self, offset: int) -> int:
        """Where to begin looking for the batch that holds `offset`: as near before it as the index knows."""
        data = self._data()
        index = self._first_after(offset)
        return _ENTRY.unpack_from(data, (index - 1) * 8)[1] if index else 0

    def first_offset_from(self, position: int) -> int | None:
        """An offset that no batch before `position` reaches: the nearest that the index knows, if it knows one."""
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
        """The offset and position of the last entry; those of the segment's beginning if there is none."""
        if not self.size:
            return self.base_offset, 0
        relative_offset, position = _ENTRY.unpack_from(self._data(), self.size - 8)
        return self.base_offset + relative_offset, position

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and later."""
        self.truncate_entries(self._first_after(offset - 1))

    def _first_after(self, offset: int) -> int:
        """The number of the first entry whose offset is larger."""
        relative_offset = offset - self.base_offset
        if relative_offset < 0:
            return 0
        # Big-endian numbers that are not negative sort as their bytes do.
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
