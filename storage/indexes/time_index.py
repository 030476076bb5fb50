"""The time index of a segment, `.timeindex`: the offset at which to begin looking for a time.

An entry has 12 bytes: a timestamp (int64) and an offset relative to the segment's base offset (int32). It says that up
to this offset no record is later than this timestamp. Timestamps ascend from entry to entry.
"""

import struct
from typing import Final

from barnabas.storage.indexes.index_file import IndexFile

_ENTRY: Final = struct.Struct(">qi")
_TIMESTAMP: Final = struct.Struct(">q")


class TimeIndex(IndexFile):
    ENTRY_SIZE = 12

    __slots__ = ()

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless the last one already covers it."""
        if timestamp > self.last()[0]:
            self._append_entry(_ENTRY.pack(timestamp, offset - self.base_offset))

    def last(self) -> tuple[int, int]:
        """The timestamp and offset of the last entry; (-1, the segment's base offset) if there is none."""
        if not self.size:
            return -1, self.base_offset
        timestamp, relative_offset = _ENTRY.unpack_from(self._data(), self.size - 12)
        return timestamp, self.base_offset + relative_offset

    def lookup(self, timestamp: int) -> int:
        """The largest known offset before which all records are earlier than `timestamp`."""
        if timestamp < 0:
            return self.base_offset
        wanted = _TIMESTAMP.pack(timestamp)
        data = self._data()
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) >> 1
            start = middle * 12
            if data[start : start + 8] < wanted:
                low = middle + 1
            else:
                high = middle
        return self.base_offset + int(_ENTRY.unpack_from(data, (low - 1) * 12)[1]) if low else self.base_offset

    def truncate_to(self, offset: int) -> None:
        """Drop the entries for `offset` and later."""
        data = self._data()
        entries = self.entries
        while entries and self.base_offset + _ENTRY.unpack_from(data, (entries - 1) * 12)[1] >= offset:
            entries -= 1
        self.truncate_entries(entries)
