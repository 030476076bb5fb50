"""The aborted transactions of a segment, `.txnindex`: those whose abort marker is in it.

An entry has 34 bytes: version int16 = 0, producer id, first offset, last offset (the marker's) and the last stable
offset after the abort (int64 each). There is no file as long as there are no entries.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.storage.errors import CorruptFile
from barnabas.storage.indexes.index_file import IndexFile

_ENTRY: Final = struct.Struct(">hqqqq")
_LAST_OFFSET: Final = struct.Struct(">q")
_LAST_OFFSET_POSITION: Final = 18
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex(IndexFile):
    ENTRY_SIZE = 34
    EXISTS_EMPTY = False

    __slots__ = ()

    def append(self, aborted: AbortedTransaction) -> None:
        self._append_entry(_ENTRY.pack(_VERSION, *aborted))

    def last_offset(self) -> int | None:
        """The offset of the last marker; None if there is none, or if an entry is damaged."""
        if not self.size:
            return None
        version, _, _, last_offset, _ = _ENTRY.unpack_from(self._data(), self.size - self.ENTRY_SIZE)
        return last_offset if version == _VERSION else None

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return self._from(0)

    def _from(self, entry: int) -> Iterator[AbortedTransaction]:
        data = self._data() if self.size else b""
        for position in range(entry * self.ENTRY_SIZE, self.size, self.ENTRY_SIZE):
            version, *fields = _ENTRY.unpack_from(data, position)
            if version != _VERSION:
                raise CorruptFile(f"{self.path}: version {version} at byte {position}")
            yield AbortedTransaction(*fields)

    def collect(self, first_offset: int, end_offset: int, into: list[AbortedTransaction]) -> bool:
        """Collect the aborted transactions that overlap [first_offset, end_offset).

        Returns True if later segments cannot have more of them, because a last stable offset was already past the end.
        """
        for aborted in self._from(self._first_ending_at(first_offset)):
            if aborted.first_offset < end_offset:
                into.append(aborted)
            if aborted.last_stable_offset >= end_offset:
                return True
        return False

    def _first_ending_at(self, offset: int) -> int:
        """The index of the first entry whose marker is at `offset` or later. Entries are ordered by marker."""
        data = self._data() if self.size else b""
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) >> 1
            if _LAST_OFFSET.unpack_from(data, middle * self.ENTRY_SIZE + _LAST_OFFSET_POSITION)[0] < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker is at `offset` or later."""
        self.truncate_entries(self._first_ending_at(offset))
