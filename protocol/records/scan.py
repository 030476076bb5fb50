"""Scanning the records of a batch in pieces, without trusting its header.

A kilobyte can decompress to gigabytes and claim two billion records, so scanning a batch in one go could block a thread
for long. A scan reads the first fields of each record and skips the rest. It decompresses in stages, each from the
beginning and sixteen times as far as the one before, and no further than the records reach:

    while not scan.finished:
        if scan.room_needed:
            scan.decompress()
        else:
            ... scan.next_records(1000) ...
"""

from typing import Final

from barnabas.protocol.records.batch import RECORDS_POSITION, BatchHeader
from barnabas.protocol.records.compression import MAX_DECOMPRESSED_BYTES, decompress_prefix
from barnabas.protocol.records.errors import InvalidRecords
from barnabas.protocol.records.record import read_varint

# The sizes of the decompression stages.
FIRST_ROOM: Final = 64 * 1024
_ROOMS: Final = (FIRST_ROOM, 1 << 20, 1 << 24)

# The maximum size of the fields up to the key length.
_HEAD_SIZE: Final = 41
# Indexing bytes is faster than indexing a memoryview, so a scan copies this much at a time.
_WINDOW_SIZE: Final = 8192

# Offset delta, timestamp delta, and whether there is a key.
ScannedRecord = tuple[int, int, bool]


class RecordScan:
    def __init__(self, batch: memoryview, header: BatchHeader, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> None:
        """Rejects records of more than `max_bytes` in total."""
        self._codec = header.compression
        self._compressed = batch[RECORDS_POSITION : header.size]
        # The uncompressed records so far, and whether they are complete.
        self._plain = memoryview(b"") if self._codec else self._compressed
        self._is_all = not self._codec
        self._room = 0
        self._position = 0
        self._left = header.record_count
        self._max_bytes = max_bytes
        self.finished = False

    @property
    def room_needed(self) -> int:
        """How many bytes must be decompressed before the scan can continue; 0 if it can."""
        if self._is_all or self.finished:
            return 0
        # After the last record, one byte tells whether anything follows.
        wanted = self._position + (_HEAD_SIZE if self._left else 1)
        if wanted <= len(self._plain):
            return 0
        for room in _ROOMS:
            if room >= wanted and room > self._room:
                return min(room, self._max_bytes)
        return self._max_bytes

    def decompress(self) -> None:
        room = self.room_needed
        if self._room == room:
            raise InvalidRecords(f"the records take more than {room} bytes")
        self._room = room
        self._plain, self._is_all = decompress_prefix(self._codec, self._compressed, room)

    def next_records(self, count: int) -> list[ScannedRecord]:
        """Up to `count` of the next records. Fewer at the end, and where more must be decompressed."""
        found: list[ScannedRecord] = []
        while self._left and len(found) < count and not self.room_needed:
            window = bytes(self._plain[self._position : self._position + _WINDOW_SIZE])
            known = len(self._plain) - self._position
            limit = known if self._is_all else self._max_bytes - self._position
            is_last = self._is_all and len(window) == known
            before = len(found)
            self._position += _scan(window, limit, is_last, min(count - before, self._left), found)
            self._left -= len(found) - before
        if not self._left and not self.room_needed:
            if self._position != len(self._plain):
                raise InvalidRecords(f"{len(self._plain) - self._position} bytes follow the last record")
            self.finished = True
        return found


def _scan(window: bytes, limit: int, is_last: bool, count: int, found: list[ScannedRecord]) -> int:
    """Collect up to `count` records whose first fields lie in the window, and return where the next one begins.

    No record may extend beyond `limit`, which may lie after the window.
    """
    stop = len(window) if is_last else len(window) - _HEAD_SIZE + 1
    position = 0
    try:
        while count and position < stop:
            byte = window[position]
            if byte < 0x80:
                length = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                length, position = read_varint(window, position)
            end = position + length
            if length < 0 or end > limit:
                raise InvalidRecords(f"a record of {length} bytes where {limit - position} follow")
            byte = window[position + 1]
            if byte < 0x80:
                timestamp_delta = (byte >> 1) ^ -(byte & 1)
                position += 2
            else:
                timestamp_delta, position = read_varint(window, position + 1)
            byte = window[position]
            if byte < 0x80:
                offset_delta = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                offset_delta, position = read_varint(window, position)
            byte = window[position]
            if byte < 0x80:
                key_length = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                key_length, position = read_varint(window, position)
            # At least the value length and the header count follow the key.
            if position + max(key_length, 0) + 2 > end:
                raise InvalidRecords(f"a record of {length} bytes is too short for its fields")
            found.append((offset_delta, timestamp_delta, key_length >= 0))
            position = end
            count -= 1
        if count and is_last:
            raise InvalidRecords("the batch has fewer records than it claims")
    except IndexError:
        raise InvalidRecords("a record is cut short") from None
    return position
