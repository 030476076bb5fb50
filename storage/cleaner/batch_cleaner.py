"""What stays of a batch."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from protocol.records.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
)
from protocol.records.builder import assemble_batch
from protocol.records.compression import CompressionType, compression_type, decompress
from protocol.records.control import read_end_transaction_marker
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.plan import CleaningPlan
from storage.cleaner.record_scan import ScannedKeys, record_bounds, scan_keys, shift_timestamp, timestamp_delta
from storage.cleaner.transactions import CleanedTransactions
from storage.indexes.transaction_index import AbortedTransaction


class SourceBatch(NamedTuple):
    """A batch in a stretch of a file, known to be whole and undamaged."""

    data: bytes
    position: int
    header: BatchHeader

    @property
    def view(self) -> memoryview:
        return memoryview(self.data)[self.position : self.position + self.header.size]

    def records(self) -> tuple[bytes, int, int]:
        """The records, uncompressed: bytes, where in them the first one begins, and where the last one ends."""
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
    # Something of the batch was removed or written anew.
    is_changed: bool


class BatchCleaner:
    """Fed with the batches of a log in their order."""

    def __init__(
        self,
        plan: CleaningPlan,
        offset_map: OffsetMap,
        aborted: Sequence[AbortedTransaction],
        on_aborted: Callable[[AbortedTransaction], None],
    ) -> None:
        """`on_aborted` gets the transactions that belong into the index of the segment that is being written."""
        self._plan = plan
        self._map = offset_map
        self._transactions = CleanedTransactions(aborted)
        self._on_aborted = on_aborted

    def clean(self, batch: SourceBatch) -> KeptBatch | None:
        """What stays of a batch; None if that is nothing at all."""
        header = batch.header
        if header.is_control:
            kept = self._clean_control(batch)
        elif self._transactions.on_data(header):
            kept = None
        else:
            kept = self._clean_data(batch)
        if kept is None and self._must_leave_a_trace(header):
            # Of a marker all that it says about its producer is in its record.
            return _whole(batch) if header.is_control else _emptied(batch)
        return kept

    def _clean_control(self, batch: SourceBatch) -> KeptBatch | None:
        header = batch.header
        needed_no_more, aborted = self._transactions.on_marker(header, read_end_transaction_marker(batch.view, header))
        if aborted is not None:
            self._on_aborted(aborted)
        if header.record_count == 0 or (needed_no_more and self._is_past_delete_horizon(header)):
            return None
        if needed_no_more and not header.has_delete_horizon:
            return _with_delete_horizon(batch, range(header.record_count), self._delete_horizon)
        return _whole(batch)

    def _clean_data(self, batch: SourceBatch) -> KeptBatch | None:
        header = batch.header
        base_offset = header.base_offset
        if base_offset > self._map.latest_offset:
            return _whole(batch)
        if base_offset in self._map.plain_batches:
            # Every key of this batch is in the map: the offsets alone say what stays.
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
        """The places of the records that stay, and whether tombstones are among them."""
        header = batch.header
        keys, offsets, tombstones = batch.scan_keys()
        records = enumerate(zip(map(self._map.offsets.get, keys), offsets, strict=True))
        kept = [place for place, (last, offset) in records if last is None or last <= offset]
        if None in keys:
            kept = [place for place in kept if keys[place] is not None]
        if tombstones and self._is_past_delete_horizon(header):
            kept = [place for place in kept if place not in tombstones]
        return kept, bool(tombstones) and not set(tombstones).isdisjoint(kept)

    def _must_leave_a_trace(self, header: BatchHeader) -> bool:
        """Whether the batch's header must stay though its records do not.

        The last batch of a producer that is still known says which sequence number comes next; where it has none, its
        last marker says which epoch it had. The last batch of all says at which offset the log goes on.
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
        return self._plan.now_ms + self._plan.delete_retention_ms

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
    """The horizon takes the place of the base timestamp, from which the records' own times are counted."""
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
    return header.base_timestamp + max([timestamp_delta(data, bounds[place]) for place in kept])


def _rebuilt(header: BatchHeader, records: bytes, count: int, max_timestamp: int) -> KeptBatch:
    header = header._replace(record_count=count, max_timestamp=max_timestamp)
    return KeptBatch(
        assemble_batch(header, records, compression_type(header.compression)), max_timestamp, count, is_changed=True
    )


def _emptied(batch: SourceBatch) -> KeptBatch:
    """The batch's header alone, with its offsets, its producer and its sequence."""
    header = batch.header
    if header.record_count == 0:
        return _whole(batch)
    header = header._replace(
        attributes=header.attributes & ~DELETE_HORIZON_FLAG, base_timestamp=NO_TIMESTAMP, record_count=0
    )
    return KeptBatch(assemble_batch(header, b"", CompressionType.NONE), header.max_timestamp, 0, is_changed=True)
