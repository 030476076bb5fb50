"""A partition's log: its segments, producers and leader epochs.

    log start offset <= last stable offset <= high watermark <= log end offset

Records from the log start offset to the log end offset are in the log. Replication sets the high watermark; the last
stable offset follows from it and from the open transactions.

A log belongs to one thread. Slow work (syncing, deleting files) is returned as an object that does not touch the log
and may run elsewhere (barnabas.storage.flush). The current time is always passed in.
"""

import os
import random
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from barnabas.protocol.records.batch import (
    BATCH_LENGTH_FIELD,
    LAST_OFFSET_DELTA_FIELD,
    MAX_TIMESTAMP_FIELD,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PRODUCER_ID_FIELD,
    BatchHeader,
    assign_position,
)
from barnabas.protocol.records.errors import RecordsError
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.aborted_lookup import aborted_in
from barnabas.storage.admissions import Admissions
from barnabas.storage.config import MAX_INT64, LogConfig, TimestampType
from barnabas.storage.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    LogFailure,
    OffsetOutOfRange,
    OutOfOrderSequence,
    StorageError,
)
from barnabas.storage.file_names import CLEANED, DELETED, SWAP
from barnabas.storage.flush import PendingDeletion, PendingFlush
from barnabas.storage.follower import append_as_follower
from barnabas.storage.indexes.transaction_index import AbortedTransaction
from barnabas.storage.inspection import ROOM_AT_ONCE, UNITS, Inspection
from barnabas.storage.leader_epochs import LeaderEpochs
from barnabas.storage.open_files import Handle, OpenFiles
from barnabas.storage.producer_state import AppendOrigin, ProducerState
from barnabas.storage.properties import PARTITION_METADATA
from barnabas.storage.recovery import rebuild_producer_state
from barnabas.storage.segment import MAX_RELATIVE_OFFSET, FileSlice, Segment
from barnabas.storage.segments import Segments
from barnabas.storage.snapshots import Snapshots
from barnabas.storage.swap import PendingSwap
from barnabas.storage.validation import (
    check_client_batch,
    check_one_batch,
    latest_allowed_in,
    looks_into_all,
    rewrites,
    stamp,
)
from barnabas.storage.write import AppendResult, PendingWrite, Refusal, new_append_result

_CLIENT: Final = AppendOrigin.CLIENT
# What a producer learns that sends batches again, or not in order.
_REPEATS: Final = (OutOfOrderSequence, InvalidProducerEpoch, InvalidTransactionState)
# Rolling a segment creates and writes several files.
_ROLLS_AT_ONCE: Final = 4
# Flushing a segment writes its indexes first.
_FLUSHED_AT_ONCE: Final = 50


class Log:
    def __init__(
        self,
        *,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID | None,
        folder: str,
        config: LogConfig,
        open_files: OpenFiles,
        segments: Segments,
        producer_state: ProducerState,
        snapshots: Snapshots,
        leader_epochs: LeaderEpochs,
        log_start_offset: int,
        end_offset: int,
        recovery_point: int,
        high_watermark: int,
    ) -> None:
        """Use `barnabas.storage.log_loader.open_log` instead."""
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.folder = folder
        self.segments = segments
        self.producer_state = producer_state
        self.leader_epochs = leader_epochs
        self.log_start_offset = log_start_offset
        self.end_offset = end_offset
        # The log is synced up to here, so recovery need not check it.
        self.recovery_point = recovery_point
        self.high_watermark = high_watermark
        # Which producers may start a transaction; None if that is not checked.
        self.admissions: Admissions | None = None
        # Called with the reason when a write to the disk fails.
        self.on_disk_failure: Callable[[str], None] | None = None
        # Called with a producer's batch that repeats one, leaves a gap or is fenced: rarely.
        self.on_repeat: Callable[[BatchHeader, AppendResult | Refusal, int], None] | None = None
        # The log is compacted up to here. None: it never was.
        self.first_dirty_offset: int | None = None
        self.last_flush_ms = 0
        # How often the log was truncated.
        self.truncations = 0
        self.in_use = True
        self._open_files = open_files
        self._file_system = open_files.file_system
        self._snapshots = snapshots
        # Segments whose indexes were finished or rebuilt since the last flush, perhaps after their records were synced.
        self.finished: list[Segment] = []
        self._folder_changed = True
        self._is_new = False
        self._failure: LogFailure | None = None
        # Of the next batch to append, if that takes long.
        self.inspection: Inspection | None = None
        self._swap: PendingSwap | None = None
        # The position of a reader's last upper bound. The same one is often needed again.
        self._known_bound: tuple[Segment, int, int] | None = None
        self.config = config

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._rewrites = rewrites(config)
        self._looks_into_all = looks_into_all(config)
        self._latest_allowed_in = latest_allowed_in(config)
        jitter = random.randrange(min(config.segment_jitter_ms, config.max_segment_ms) or 1)
        self._max_segment_ms = config.max_segment_ms - jitter

    @property
    def failed(self) -> bool:
        """Whether the disk failed such that only a restart can tell what is on it."""
        return self._failure is not None

    def fail(self, error: Exception) -> None:
        """Accept no more records, because the files may differ from the log's state. A restart reads them again."""
        self._failure = LogFailure(f"{self.topic_partition}: {type(error).__name__}: {error}")

    def disk_failure(self, error: OSError) -> LogFailure:
        """The result for appends whose write failed."""
        if self.on_disk_failure is not None:
            self.on_disk_failure(str(error))
        return LogFailure(f"{self.topic_partition}: {error}")

    def raise_if_failed(self) -> None:
        if self._failure is not None:
            raise self._failure

    @property
    def size(self) -> int:
        return self.segments.size

    @property
    def last_stable_offset(self) -> int:
        first_unstable_offset = self.producer_state.first_unstable_offset
        if first_unstable_offset is None or first_unstable_offset > self.high_watermark:
            return self.high_watermark
        # The start of the transaction may have been deleted meanwhile.
        return max(first_unstable_offset, self.log_start_offset)

    def update_high_watermark(self, offset: int) -> None:
        """Everything below is committed. The caller is responsible for that. It never exceeds the log's end."""
        self.high_watermark = min(offset, self.end_offset)
        self.producer_state.forget_replicated_transactions(self.high_watermark)

    # -- appending

    def append(
        self,
        record_sets: Sequence[memoryview],
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
    ) -> list[AppendResult | Refusal]:
        """Append record sets as the partition's leader, and return for each its offsets or an error.

        Each set is one batch. Sets in the same segment are written together. Offset and leader epoch are set in the
        buffers themselves, which must not change before this returns. If a write fails, the log is as it was before
        that write, and every set of the write gets a LogFailure.

        There are fewer results than sets if clients' batches need too many new segments, or if inspecting one of them
        takes too long. Pass the rest again; in the second case, finish `inspection` first, on any thread.
        """
        config = self._config
        results: list[AppendResult | Refusal] = []
        write = PendingWrite(self, leader_epoch)
        units = UNITS
        rolls = 0
        max_bytes = config.max_message_bytes if origin is _CLIENT else MAX_INT64
        segment_bytes = config.segment_bytes
        latest = now_ms + self._latest_allowed_in
        room, roll_after, last_allowed = self.roll_limits(now_ms)
        log_append_time = now_ms if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME else NO_TIMESTAMP
        for records in record_sets:
            try:
                if self._failure is not None:
                    raise self._failure
                header = check_one_batch(records, max_bytes)
                look = origin is _CLIENT and (
                    check_client_batch(records, header, segment_bytes, latest) or self._looks_into_all
                )
                if look or self._rewrites:
                    inspection = self.inspection
                    if inspection is None or inspection.batch is not records:
                        inspection = Inspection(records, header, config, now_ms, scan=look)
                    if origin is _CLIENT:
                        units = inspection.advance(units, ROOM_AT_ONCE)
                    else:
                        inspection.advance(MAX_INT64)
                    if not inspection.finished:
                        self.inspection = inspection
                        break
                    self.inspection = None
                    records, header = stamp(*inspection.result, config, now_ms)
                if records.readonly:
                    records = memoryview(bytearray(records))
                size = len(records)
                last_offset_delta = header[LAST_OFFSET_DELTA_FIELD]
                max_timestamp = header[MAX_TIMESTAMP_FIELD]
                if (
                    write.size + size > room
                    or max_timestamp > roll_after
                    or write.next_offset + last_offset_delta > last_allowed
                ):
                    write.finish(results)
                    if self.segments.active.size:
                        rolls += 1
                        if rolls > _ROLLS_AT_ONCE and origin is _CLIENT:
                            break
                        self.roll(now_ms)
                    room, roll_after, last_allowed = self.roll_limits(now_ms)
                if header[PRODUCER_ID_FIELD] != NO_PRODUCER_ID:
                    duplicate = write.add_producer(records, header, origin, transaction_version)
                    if duplicate is not None:
                        results.append(duplicate)
                        self._tell_repeat(header, duplicate, now_ms)
                        continue
                base_offset = write.next_offset
                assign_position(records, base_offset, header[BATCH_LENGTH_FIELD], leader_epoch)
                last_offset = base_offset + last_offset_delta
                write.add(records, (last_offset, max_timestamp, size))
                results.append(new_append_result(AppendResult, (base_offset, last_offset, log_append_time, False)))
            except (RecordsError, StorageError) as error:
                results.append(error)
                if isinstance(error, _REPEATS) and origin is _CLIENT:
                    self._tell_repeat(header, error, now_ms)
            except OSError as error:
                results.append(self.disk_failure(error))
        write.finish(results)
        return results

    def _tell_repeat(self, header: BatchHeader, result: AppendResult | Refusal, now_ms: int) -> None:
        if self.on_repeat is not None:
            self.on_repeat(header, result, now_ms)

    def append_as_follower(self, records: memoryview, *, now_ms: int) -> None:
        """Append batches from the partition's leader as they are, with their offsets.

        If one of them is refused, those before it are in the log.
        """
        append_as_follower(self, records, now_ms)

    def roll_limits(self, now_ms: int) -> tuple[int, int, int]:
        """The limits of the active segment: remaining bytes, latest timestamp and last offset.

        A batch beyond any of them goes into a new segment, unless this one is empty.
        """
        config = self._config
        segment = self.segments.active
        room = config.segment_bytes - segment.size
        max_age = self._max_segment_ms
        first_timestamp = segment.first_timestamp
        if first_timestamp is None:
            roll_after = MAX_INT64
        elif first_timestamp >= 0:
            roll_after = first_timestamp + max_age
        else:
            # Without timestamps, the clock determines the segment's age.
            roll_after = MAX_INT64 if now_ms - segment.created_ms <= max_age else -2
        if segment.indexes_full(config.segment_index_bytes):
            room = 0
        return room, roll_after, segment.base_offset + MAX_RELATIVE_OFFSET

    def roll(self, now_ms: int, at: int | None = None) -> None:
        """Start a new segment at the log's end (or later, if a leader's log continues after a gap).

        After an OSError the old segment is still the active one.
        """
        base_offset = self.end_offset if at is None else at
        old = self.segments.active
        if old.size == 0 and old.base_offset == base_offset:
            return
        old.become_inactive()
        self._snapshots.take(base_offset, self.producer_state)
        self.segments.add(Segment.create(self.folder, base_offset, self._open_files, now_ms))
        self.finished.append(old)
        self._folder_changed = True
        self.config = self._config

    def assign_leader_epoch(self, epoch: int) -> None:
        """This broker leads the partition in this epoch, from the log's end on."""
        self.leader_epochs.assign(epoch, self.end_offset)

    # -- reading

    def read(self, offset: int, max_bytes: int, *, upper_bound: int, min_one_message: bool = True) -> FileSlice | None:
        """A slice of one segment that begins with the batch of `offset`; None if there is nothing to read.

        Batches that reach `upper_bound` are left out. The slice may end within a batch, but the first batch is always
        complete: if it is larger than `max_bytes`, it is returned alone, or not at all without `min_one_message`.
        """
        if not self.log_start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(
                f"{self.topic_partition}: offset {offset} is not within {self.log_start_offset} to {self.end_offset}"
            )
        if offset >= upper_bound:
            return None
        segment: Segment | None = self.segments.floor(offset)
        while segment is not None:
            found = segment.locate(offset)
            if found is not None:
                end = segment.size if upper_bound >= self.end_offset else self._bound(segment, upper_bound)
                size = min(max_bytes, end - found.position)
                if size < found.size:
                    if found.size > end - found.position or not min_one_message:
                        return None
                    size = found.size
                return FileSlice(segment.handle, found.position, size)
            # Compaction may have left no records at the end of this segment.
            segment = self.segments.after(segment)
        return None

    def _bound(self, segment: Segment, upper_bound: int) -> int:
        """The position in the segment up to which all batches end before `upper_bound`."""
        following = self.segments.after(segment)
        if following is not None and upper_bound >= following.base_offset:
            return segment.size
        if self._known_bound is not None:
            known_segment, known_bound, position = self._known_bound
            if known_segment is segment and known_bound == upper_bound:
                return position
        found = segment.locate(upper_bound)
        position = segment.size if found is None else found.position
        self._known_bound = (segment, upper_bound, position)
        return position

    def aborted_transactions(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that a reader of [first_offset, end_offset) must know."""
        return aborted_in(self.segments, first_offset, end_offset)

    # -- giving up records

    def increment_log_start_offset(self, offset: int) -> None:
        """DeleteRecords: records below `offset` must not be read any more."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(f"{self.topic_partition}: offset {offset} is past {self.high_watermark}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)

    def delete_segments(self, doomed: Sequence[Segment], now_ms: int) -> PendingDeletion:
        """Remove the first segments from the log.

        Their files are renamed now, and deleted when the caller runs the result. If no segment is left, the log
        continues with an empty one.
        """
        if len(doomed) == len(self.segments):
            self.roll(now_ms)
        paths = self._remove(doomed)
        self.log_start_offset = max(self.log_start_offset, self.segments.first.base_offset)
        self.leader_epochs.truncate_from_start(self.log_start_offset)
        # The snapshot at the first remaining segment describes the earlier records, and stays.
        self._snapshots.delete_up_to(self.segments.first.base_offset - 1)
        return PendingDeletion(self._file_system, self.folder, paths)

    def start_swap(self, base_offset: int, sizes: dict[str, int], old: Sequence[Segment]) -> PendingSwap:
        """Start to replace segments with the compacted segment that was made from them.

        Its files are complete and synced and end in `.cleaned`; `sizes` are their sizes. `sync` the result on any
        thread, then call `replace_segments`. The swap is cancelled if the log loses records before that.
        """
        new = Segment(self.folder, base_offset, self._open_files, sizes, old[0].created_ms, suffix=CLEANED)
        swap = PendingSwap(self._file_system, new, old)
        swap.start()
        self._swap = swap
        return swap

    def replace_segments(self, swap: PendingSwap) -> PendingDeletion:
        """Put the compacted segment in its place. When the old ones have been deleted, call `finish_swap`.

        If an old one cannot be renamed, everything can still be read, but the log accepts no more records until the
        next start, which will use the new segment.
        """
        self._swap = None
        try:
            if swap.error is not None:
                raise swap.error
            for segment in swap.old:
                segment.rename("", DELETED)
        except OSError as error:
            self._failure = LogFailure(f"{self.topic_partition}: could not be compacted: {error}")
            raise self._failure from None
        paths = []
        for segment in swap.old:
            self.segments.remove(segment)
            paths += segment.drop()
            if segment.base_offset != swap.new.base_offset:
                self._snapshots.delete(segment.base_offset)
        self.segments.add(swap.new)
        self._folder_changed = True
        self._known_bound = None
        return PendingDeletion(self._file_system, self.folder, paths)

    def finish_swap(self, swap: PendingSwap) -> None:
        """Give the compacted segment its final name, now that the old segments are gone."""
        if self.in_use and self.segments.floor(swap.new.base_offset) is swap.new:
            swap.new.rename(SWAP, "")
            self._folder_changed = True

    def cancel_swap(self) -> None:
        if self._swap is not None:
            self._swap.cancel()
            self._swap = None

    def truncate_to(self, offset: int, now_ms: int) -> PendingDeletion:
        """Remove the batch that holds `offset`, and everything after it.

        Use `LogDirectory.truncate_log` instead, which updates the checkpoints too.
        """
        if offset >= self.end_offset:
            # Nobody else knows an epoch in which this broker led and wrote nothing.
            self.leader_epochs.truncate_from_end(self.end_offset)
            return PendingDeletion(self._file_system, self.folder, [])
        if offset <= self.log_start_offset:
            # No readable record would be left.
            return self.truncate_fully_and_start_at(offset, now_ms)
        self._forget_position()
        doomed = [segment for segment in self.segments if segment.base_offset > offset]
        # The last one first: if the process is killed meanwhile, what is left has no hole.
        paths = self._remove(doomed[::-1])
        self.segments.active.truncate_to(offset)
        # After a crash, removed records must not reappear between the kept ones and those appended next.
        self._file_system.fsync(self.segments.active.handle.fd)
        self._file_system.fsync_directory(self.folder)
        end_offset = self.segments.active.read_next_offset()
        if end_offset < self.log_start_offset:
            # The batch began with deleted records. Their offsets are not reused.
            paths += self.truncate_fully_and_start_at(self.log_start_offset, now_ms).paths
        else:
            self._end_at(end_offset)
        return PendingDeletion(self._file_system, self.folder, paths)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> PendingDeletion:
        """Drop all records; the log continues at `offset`."""
        self._forget_position()
        # A log has a segment at any time: what may fail on a full disk comes first. A segment of this name is emptied,
        # which takes no space.
        start = next((segment for segment in self.segments if segment.base_offset == offset), None)
        if start is None:
            start = Segment.create(self.folder, offset, self._open_files, now_ms)
            self.segments.add(start)
        else:
            start.truncate_to(offset)
            start.created_ms = now_ms
            self._file_system.fsync(start.handle.fd)
        paths = self._remove([segment for segment in self.segments if segment is not start])
        self.leader_epochs.clear()
        self._snapshots.delete_up_to(offset)
        self._file_system.fsync_directory(self.folder)
        self._end_at(offset)
        self.log_start_offset = self.high_watermark = offset
        return PendingDeletion(self._file_system, self.folder, paths)

    def _remove(self, doomed: Sequence[Segment]) -> list[str]:
        self.cancel_swap()
        self._folder_changed = True
        self._known_bound = None
        paths = []
        for segment in doomed:
            try:
                segment.rename("", DELETED)
            except OSError:
                # A longer name may need space on a full disk. A deletion needs none.
                segment.unlink()
            else:
                paths += segment.drop()
            self.segments.remove(segment)
        return paths

    def _forget_position(self) -> None:
        """A flush in progress may have synced what is being removed now, but not what replaces it."""
        self.truncations += 1
        self._known_bound = None
        self.cancel_swap()

    def lower_known_offsets(self, offset: int) -> bool:
        """The log will be truncated at `offset`: lower larger known offsets. Returns whether there were any."""
        lower = offset < max(self.recovery_point, self.high_watermark, self.log_start_offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        if self.first_dirty_offset is not None and offset < self.first_dirty_offset:
            self.first_dirty_offset = offset
            lower = True
        return lower

    def _end_at(self, offset: int) -> None:
        self.end_offset = offset
        self.lower_known_offsets(offset)
        self.leader_epochs.truncate_from_end(offset)
        self._snapshots.delete_after(offset)
        self.producer_state = rebuild_producer_state(self.segments, self._snapshots, offset)
        self.producer_state.forget_replicated_transactions(self.high_watermark)
        self._folder_changed = True

    # -- flushing

    def flush_due(self, now_ms: int) -> bool:
        """Whether `flush.messages` or `flush.ms` require a flush, or a segment was rolled since the last one."""
        unflushed = self.end_offset - self.recovery_point
        return unflushed > 0 and (
            unflushed >= self._config.flush_messages
            or now_ms - self.last_flush_ms >= self._config.flush_ms
            or self.recovery_point < self.segments.active.base_offset
        )

    def start_flush(self, at_most: int = _FLUSHED_AT_ONCE) -> PendingFlush:
        """Start to flush the log as it is now: `sync` the result on any thread, then call `finish_flush`.

        If very many segments are not on disk yet, only the first ones are flushed.
        """
        unflushed = self.segments.from_offset(self.recovery_point)
        later = unflushed[at_most:]
        end_offset = later[0].base_offset if later else self.end_offset
        finished = [segment for segment in self.finished if self.segments.floor(segment.base_offset) is segment]
        chosen = {*unflushed[:at_most], *(segment for segment in finished if segment.base_offset < end_offset)}
        segments = sorted(chosen, key=lambda segment: segment.base_offset)
        indexes = [index for segment in segments for index in segment.save_indexes()]
        paths = [index.path for index in indexes] + self._snapshots.unsynced + self.leader_epochs.unsynced
        folders = [self.folder] if paths or self._folder_changed else []
        if self._is_new:
            paths.append(os.path.join(self.folder, PARTITION_METADATA))
            folders.append(os.path.dirname(self.folder))
        handles = [segment.handle for segment in segments] + [Handle(self._file_system, path) for path in paths]
        # All files are open, so nothing can fail before they are synced.
        self._folder_changed = self._is_new = False
        self.finished = [segment for segment in finished if segment not in chosen]
        self._snapshots.unsynced = []
        self.leader_epochs.unsynced = []
        for index in indexes:
            index.synced = True
        return PendingFlush(self._file_system, handles, folders, end_offset, self.truncations)

    def finish_flush(self, pending: PendingFlush, now_ms: int) -> None:
        """Record what is on disk now.

        After a failed sync that is unknown: the kernel may have dropped what it could not write. The log then accepts
        no more records, and a later sync does not change that.
        """
        if pending.error is not None:
            self._failure = LogFailure(f"{self.topic_partition}: could not be synced: {pending.error}")
        if self._failure is not None:
            raise self._failure
        self.last_flush_ms = now_ms
        if pending.generation == self.truncations:
            self.recovery_point = max(self.recovery_point, pending.end_offset)

    def sync_creation_with_next_flush(self) -> None:
        """The folder was just created."""
        self._is_new = True

    def start_close(self) -> PendingFlush:
        """The last flush. After it, opening the log again needs no scan."""
        self._snapshots.take(self.end_offset, self.producer_state)
        self.segments.active.finish_time_index()
        return self.start_flush(at_most=len(self.segments))

    def drop_files(self) -> None:
        """Close all files as they are. The log must not be used any more."""
        self.in_use = False
        if self._swap is not None:
            # Opening the folder again will take care of its files.
            self._swap.cancelled = True
        for segment in self.segments:
            segment.drop()
