"""Inspecting the records of a producer's batch when its header is not enough.

Most batches are not inspected. A batch is inspected if it goes to a compacted topic, which accepts no records without a
key; if its header suggests that a timestamp may be out of bounds; if it is compressed and claims so many records that
they must be counted, because each takes an offset; and if its topic stores batches with another codec.

A batch of a kilobyte may hold millions of records. So this is done in pieces, and an inspection touches only its batch:
it can be finished on another thread.
"""

from typing import Final

from barnabas.protocol.records.batch import NO_TIMESTAMP, RECORDS_POSITION, BatchHeader, read_header
from barnabas.protocol.records.builder import assemble_batch
from barnabas.protocol.records.compression import (
    MAX_DECOMPRESSED_BYTES,
    CompressionType,
    decompress_prefix,
)
from barnabas.protocol.records.errors import CorruptRecords, InvalidRecords, RecordsError
from barnabas.protocol.records.record import int64
from barnabas.protocol.records.scan import FIRST_ROOM, RecordScan, ScannedRecord
from barnabas.storage.config import COMPRESSION_TYPES, LogConfig, TimestampType
from barnabas.storage.errors import (
    AppendRefused,
    InvalidRecord,
    InvalidTimestamp,
    RecordBatchTooLarge,
    RecordError,
    RecordTooLarge,
)

# The size of a piece in units. A unit is reading one record, or decompressing this many bytes.
UNITS: Final = 1000
BYTES_PER_UNIT: Final = 256
# How much longer compressing may take: zstd at its highest level needs 3 ms for 64 KiB, and 0.1 ms for a few bytes.
_COMPRESSION_COST: Final = 4
_UNITS_PER_COMPRESSION: Final = 20
# How much may be decompressed while others wait.
ROOM_AT_ONCE: Final = FIRST_ROOM
# The maximum decompressed size per allowed byte of a batch. Kafka has no such limit; no real producer gets near it.
_MAX_RATIO: Final = 64
_MAX_BYTES_AT_LEAST: Final = 1 << 26
# The maximum number of invalid records that are reported to the producer.
_ERRORS_TOLD: Final = 16


class Inspection:
    def __init__(
        self, batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int, *, scan: bool = True
    ) -> None:
        """Without `scan`, only the codec is changed, if necessary."""
        self.batch = batch
        self.finished = False
        self._header = header
        self._config = config
        self._earliest = now_ms - config.message_timestamp_before_max_ms
        self._latest = now_ms + config.message_timestamp_after_max_ms
        self._checks_timestamps = config.message_timestamp_type is TimestampType.CREATE_TIME
        self._checks_keys = config.compact
        self._max_bytes = min(max(_MAX_RATIO * config.max_message_bytes, _MAX_BYTES_AT_LEAST), MAX_DECOMPRESSED_BYTES)
        self._scan = RecordScan(batch, header, self._max_bytes) if scan else None
        self._index = 0
        self._errors: list[RecordError] = []
        self._is_out_of_time = False
        self._refusal: RecordsError | AppendRefused | None = None
        self._result = batch

    @property
    def result(self) -> tuple[memoryview, BatchHeader]:
        """The batch as it will be stored, after the inspection is complete. Raises if it is invalid."""
        if self._refusal is not None:
            raise self._refusal
        return self._result, self._header

    def advance(self, units: int = UNITS, room: int = MAX_DECOMPRESSED_BYTES) -> int:
        """Do about `units` more, unless that would decompress more than `room` bytes. Returns the units left."""
        try:
            while not self.finished and units > 0:
                used = self._step(units, room)
                if not used:
                    break
                units -= used
        except (RecordsError, AppendRefused) as refusal:
            self.refuse(refusal)
        return units

    def refuse(self, refusal: RecordsError | AppendRefused) -> None:
        self._refusal = refusal
        self.finished = True

    def _step(self, units: int, room: int) -> int:
        """Returns the units it took: 0 if there is not enough room."""
        scan = self._scan
        if scan is None or scan.finished:
            return self._change_codec(room)
        needed = scan.room_needed
        if needed > room:
            return 0
        if needed:
            scan.decompress()
            return needed // BYTES_PER_UNIT
        records = scan.next_records(units)
        self._check(records)
        if scan.finished or len(self._errors) == _ERRORS_TOLD:
            self._refuse_records()
        return len(records) + 1

    def _check(self, records: list[ScannedRecord]) -> None:
        base_timestamp = self._header.base_timestamp
        is_compressed = self._header.compression != CompressionType.NONE
        earliest, latest = self._earliest, self._latest
        for index, (offset_delta, timestamp_delta, has_key) in enumerate(records, self._index):
            # Kafka checks offsets in compressed batches only.
            if offset_delta != index and is_compressed:
                raise InvalidRecords(f"record {index} has an offset delta of {offset_delta}")
            if not has_key and self._checks_keys:
                self._errors.append(RecordError(index, "a compacted topic accepts no records without a key"))
            elif self._checks_timestamps:
                timestamp = int64(base_timestamp + timestamp_delta)
                if not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
                    message = f"timestamp {timestamp} is not within {earliest} to {latest}"
                    self._errors.append(RecordError(index, message))
                    self._is_out_of_time = True
            if len(self._errors) == _ERRORS_TOLD:
                break
        self._index += len(records)

    def _refuse_records(self) -> None:
        if self._is_out_of_time:
            raise InvalidTimestamp("one or more records were rejected because of their timestamp", self._errors)
        if self._errors:
            raise InvalidRecord("one or more records were rejected because they have no key", self._errors)
        if self._checks_timestamps and self._header.max_timestamp > self._latest:
            raise InvalidTimestamp(f"max timestamp {self._header.max_timestamp} is later than {self._latest}")

    def _change_codec(self, room: int) -> int:
        config, header = self._config, self._header
        codec = COMPRESSION_TYPES[config.compression_type]
        if codec is None or codec == header.compression or header.is_control:
            self.finished = True
            return 1
        if len(self.batch) > room:
            return 0
        room = min(room, self._max_bytes)
        plain, is_all = self.batch[RECORDS_POSITION:], True
        if header.compression:
            plain, is_all = decompress_prefix(header.compression, plain, room)
        if not is_all:
            if room < self._max_bytes:
                return 0
            raise CorruptRecords(f"the records take more than {room} bytes")
        if codec is CompressionType.NONE:
            self._check_size(RECORDS_POSITION + len(plain))
        self._result = memoryview(assemble_batch(header, plain, codec, config.compression_level))
        self._check_size(len(self._result))
        self._header = read_header(self._result)
        self.finished = True
        return _UNITS_PER_COMPRESSION + _COMPRESSION_COST * len(plain) // BYTES_PER_UNIT

    def _check_size(self, size: int) -> None:
        if size > self._config.max_message_bytes:
            raise RecordTooLarge(f"a batch has {size} bytes, but only {self._config.max_message_bytes} are allowed")
        if size > self._config.segment_bytes:
            raise RecordBatchTooLarge(f"a batch has {size} bytes, but a segment only {self._config.segment_bytes}")
