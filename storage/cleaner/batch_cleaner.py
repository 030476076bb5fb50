"""Decides what remains of a batch."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.protocol.records.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
)
from barnabas.protocol.records.builder import assemble_batch
from barnabas.protocol.records.compression import CompressionType, compression_type, decompress
from barnabas.protocol.records.control import read_end_transaction_marker
from barnabas.protocol.records.record import int64
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.plan import CleaningPlan
from barnabas.storage.cleaner.record_scan import ScannedKeys, record_bounds, scan_keys, shift_timestamp, timestamp_delta
from barnabas.storage.cleaner.transactions import CleanedTransactions
from barnabas.storage.config import MAX_INT64
from barnabas.storage.indexes.transaction_index import AbortedTransaction


class SourceBatch(NamedTuple):
    """A batch in a part of a file, known to be complete and undamaged."""

    data: bytes
    position: int
    header: BatchHeader

    @property
    def view(self) -> memoryview:
        return memoryview(self.data)[self.position : self.position + self.header.size]

    def records(self) -> tuple[bytes, int, int]:
        """The uncompressed records: the bytes, where the first record begins, and where the last one ends."""
        header = self.header
        if not header.attributes & COMPRESSION_MASK:
            return self.data, self.position + HEADER_SIZE, self.position + header.size
        data = decompress(header.compression, self.view[HEADER_SIZE:])
        return data, 0, len(data)

    def scan_keys(self) -> ScannedKeys:
        data, start, limit = self.records()
        return scan_keys(data, start, limit, self.header.record_count, self.header.base_offset)


class KeptBatch(NamedTuple):
    data: memoryview | bytearray
    max_timestamp: int
    record_count: int
    # Part of the batch was removed or rewritten.
    is_changed: bool


class BatchCleaner:
    """Takes the batches of a log in order."""

    def __init__(
        self,
        plan: CleaningPlan,
        offset_map: OffsetMap,
        aborted: Sequence[AbortedTransaction],
        on_aborted: Callable[[AbortedTransaction], None],
    ) -> None:
        """`on_aborted` receives the transactions that belong in the index of the segment being written."""
        self._plan = plan
        self._map = offset_map
        self._transactions = CleanedTransactions(aborted)
        self._on_aborted = on_aborted

    def clean(self, batch: SourceBatch) -> KeptBatch | None:
        """What remains of a batch; None if nothing does."""
        header = batch.header
        if header.is_control:
            kept = self._clean_control(batch)
        elif self._transactions.on_data(header):
            kept = None
        else:
            kept = self._clean_data(batch)
        if kept is None and self._must_keep_header(header):
            # A marker's record holds what recovery needs to know about the producer.
            return _whole(batch) if header.is_control else _emptied(batch)
        return kept

    def _clean_control(self, batch: SourceBatch) -> KeptBatch | None:
        header = batch.header
        is_obsolete, aborted = self._transactions.on_marker(header, read_end_transaction_marker(batch.view, header))
        if aborted is not None:
            self._on_aborted(aborted)
        if header.record_count == 0 or (is_obsolete and self._is_past_delete_horizon(header)):
            return None
        if is_obsolete and not header.has_delete_horizon:
            return _with_delete_horizon(batch, range(header.record_count), self._delete_horizon)
        return _whole(batch)

    def _clean_data(self, batch: SourceBatch) -> KeptBatch | None:
        header = batch.header
        base_offset = header.base_offset
        if base_offset > self._map.latest_offset:
            return _whole(batch)
        if base_offset in self._map.plain_batches:
            # Every key of this batch is in the map, so the offsets alone determine what remains.
            last = self._map.last_between(base_offset, base_offset + header.last_offset_delta)
            if not last:
                return None
            if len(last) == header.record_count:
                return _whole(batch)
            return _with_fewer_records(batch, [offset - base_offset for offset in last])
        kept, has_tombstones = self._select(batch)
        if not kept:
            return None
        if has_tombstones and not header.has_delete_horizon:
            return _with_delete_horizon(batch, kept, self._delete_horizon)
        return _whole(batch) if len(kept) == header.record_count else _with_fewer_records(batch, kept)

    def _select(self, batch: SourceBatch) -> tuple[Sequence[int], bool]:
        """The indexes of the records to keep, and whether there are tombstones among them."""
        header = batch.header
        keys, offsets, tombstones = batch.scan_keys()
        records = enumerate(zip(map(self._map.offsets.get, keys), offsets, strict=True))
        kept = [place for place, (last, offset) in records if last is None or last <= offset]
        if None in keys:
            kept = [place for place in kept if keys[place] is not None]
        if tombstones and self._is_past_delete_horizon(header):
            kept = [place for place in kept if place not in tombstones]
        return kept, bool(tombstones) and not set(tombstones).isdisjoint(kept)

    def _must_keep_header(self, header: BatchHeader) -> bool:
        """Whether the batch's header must be kept although its records are not.

        The last batch of a producer that is still known determines its next sequence number. If there is none, its last
        marker determines its epoch. The very last batch determines the offset at which the log continues.
        """
        if header.next_offset == self._plan.first_uncleanable_offset:
            return True
        if header.producer_id == NO_PRODUCER_ID:
            return False
        last = self._plan.last_records.get(header.producer_id)
        if last is None:
            return False
        if last.last_data_offset is not None:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    @property
    def _delete_horizon(self) -> int:
        return min(self._plan.now_ms + self._plan.delete_retention_ms, MAX_INT64)

    def _is_past_delete_horizon(self, header: BatchHeader) -> bool:
        return header.has_delete_horizon and header.base_timestamp <= self._plan.now_ms


def _whole(batch: SourceBatch) -> KeptBatch:
    return KeptBatch(batch.view, batch.header.max_timestamp, batch.header.record_count, is_changed=False)


def _with_fewer_records(batch: SourceBatch, kept: Sequence[int]) -> KeptBatch:
    header = batch.header
    data, start, limit = batch.records()
    bounds = record_bounds(data, start, limit, header.record_count)
    records = b"".join([data[bounds[place] : bounds[place + 1]] for place in kept])
    return _rebuilt(header, records, len(kept), _max_timestamp(header, data, bounds, kept))


def _with_delete_horizon(batch: SourceBatch, kept: Sequence[int], delete_horizon: int) -> KeptBatch:
    """The horizon replaces the base timestamp, so the records' timestamp deltas are adjusted."""
    header = batch.header
    data, start, limit = batch.records()
    bounds = record_bounds(data, start, limit, header.record_count)
    shift = header.base_timestamp - delete_horizon
    records = b"".join([shift_timestamp(data, bounds[place], bounds[place + 1], shift) for place in kept])
    max_timestamp = _max_timestamp(header, data, bounds, kept)
    header = header._replace(attributes=header.attributes | DELETE_HORIZON_FLAG, base_timestamp=delete_horizon)
    return _rebuilt(header, records, len(kept), max_timestamp)


def _max_timestamp(header: BatchHeader, data: bytes, bounds: Sequence[int], kept: Sequence[int]) -> int:
    if header.is_log_append_time:
        return header.max_timestamp
    base_timestamp = header.base_timestamp
    return max([int64(base_timestamp + timestamp_delta(data, bounds[place])) for place in kept])


def _rebuilt(header: BatchHeader, records: bytes, count: int, max_timestamp: int) -> KeptBatch:
    header = header._replace(record_count=count, max_timestamp=max_timestamp)
    return KeptBatch(
        assemble_batch(header, records, compression_type(header.compression)), max_timestamp, count, is_changed=True
    )


def _emptied(batch: SourceBatch) -> KeptBatch:
    """Only the batch's header, with its offsets, producer and sequence."""
    header = batch.header
    if header.record_count == 0:
        return _whole(batch)
    header = header._replace(
        attributes=header.attributes & ~DELETE_HORIZON_FLAG, base_timestamp=NO_TIMESTAMP, record_count=0
    )
    return KeptBatch(assemble_batch(header, b"", CompressionType.NONE), header.max_timestamp, 0, is_changed=True)
