"""A partition's log: segments, the producers that write to them, and the epochs of their leaders.

    log start offset <= last stable offset <= high watermark <= log end offset

Records from the log start offset to the log end offset are in the log. The high watermark is set by whoever replicates
the log; the last stable offset follows from it and from the transactions under way.

A log belongs to one thread. What takes long (syncing, deleting files) is handed out as an object that touches nothing
of the log and may be worked off elsewhere (storage.flush). The time is always handed in.
"""

import os
import random
import uuid
from collections.abc import Sequence
from typing import Final

from protocol.records.batch import NO_PRODUCER_ID, NO_TIMESTAMP, assign_position
from protocol.records.errors import RecordsError
from storage.aborted_lookup import aborted_in
from storage.admissions import Admissions
from storage.config import MAX_INT64, LogConfig, TimestampType
from storage.errors import LogFailure, OffsetOutOfRange, StorageError
from storage.file_names import CLEANED, DELETED, SWAP
from storage.flush import PendingDeletion, PendingFlush
from storage.follower import append_as_follower
from storage.indexes.transaction_index import AbortedTransaction
from storage.leader_epochs import LeaderEpochs
from storage.open_files import Handle, OpenFiles
from storage.producer_state import AppendOrigin, ProducerState
from storage.properties import PARTITION_METADATA
from storage.recovery import rebuild_producer_state
from storage.segment import MAX_RELATIVE_OFFSET, FileSlice, Segment
from storage.segments import Segments
from storage.snapshots import Snapshots
from storage.swap import PendingSwap
from storage.time_lookup import FoundOffset, find_in_segment
from storage.topic_partition import TopicPartition
from storage.validation import check_client_batch, check_one_batch, rewrite, rewrites
from storage.write import AppendResult, PendingWrite, Refusal, new_append_result

_CLIENT: Final = AppendOrigin.CLIENT


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
        """Use `storage.log_loader.open_log` instead."""
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.folder = folder
        self.segments = segments
        self.producer_state = producer_state
        self.leader_epochs = leader_epochs
        self.log_start_offset = log_start_offset
        self.end_offset = end_offset
        # Up to here the log is on disk for sure, so that recovery need not look at it.
        self.recovery_point = recovery_point
        self.high_watermark = high_watermark
        # Who may begin a transaction; None if nobody asks for that.
        self.admissions: Admissions | None = None
        # Up to here the log has been compacted. None: it never was.
        self.first_dirty_offset: int | None = None
        self.last_flush_ms = 0
        # How often records were cut off from the end.
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
        self._swap: PendingSwap | None = None
        # The position of the last upper bound that a reader was held to: it is asked for again and again.
        self._known_bound: tuple[Segment, int, int] | None = None
        self.config = config

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._rewrites = rewrites(config)
        jitter = random.randrange(min(config.segment_jitter_ms, config.max_segment_ms) or 1)
        self._max_segment_ms = config.max_segment_ms - jitter

    @property
    def failed(self) -> bool:
        """Whether a disk failed in a way after which only a restart can say what is on it."""
        return self._failure is not None

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
        # What began the transaction may have been deleted meanwhile.
        return max(first_unstable_offset, self.log_start_offset)

    def update_high_watermark(self, offset: int) -> None:
        """What lies below is committed. The caller vouches for it; it never exceeds the log's end."""
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
        """Append record sets as the partition's leader, and say for each where it went or why it did not.

        Each is one batch. They are written together, in one go where they go into one segment. Offset and leader epoch
        are set in the buffers themselves, which must not change before this returns. If writing fails, the log is as it
        was before, and every set of that write gets a LogFailure.
        """
        config = self._config
        results: list[AppendResult | Refusal] = []
        write = PendingWrite(self, leader_epoch)
        room, roll_after, last_allowed = self.roll_limits(now_ms)
        log_append_time = now_ms if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME else NO_TIMESTAMP
        for records in record_sets:
            try:
                if self._failure is not None:
                    raise self._failure
                header = check_one_batch(records)
                if origin is _CLIENT:
                    check_client_batch(records, header, config, now_ms)
                if self._rewrites:
                    records, header = rewrite(records, header, config, now_ms)
                elif records.readonly:
                    records = memoryview(bytearray(records))
                size = len(records)
                last_offset_delta = header[6]
                max_timestamp = header[8]
                if (
                    write.size + size > room
                    or max_timestamp > roll_after
                    or write.next_offset + last_offset_delta > last_allowed
                ):
                    write.finish(results)
                    if self.segments.active.size:
                        self.roll(now_ms)
                    room, roll_after, last_allowed = self.roll_limits(now_ms)
                if header[9] != NO_PRODUCER_ID:
                    duplicate = write.add_producer(records, header, origin, transaction_version)
                    if duplicate is not None:
                        results.append(duplicate)
                        continue
                base_offset = write.next_offset
                assign_position(records, base_offset, header[1], leader_epoch)
                last_offset = base_offset + last_offset_delta
                write.add(records, (last_offset, max_timestamp, size))
                results.append(new_append_result(AppendResult, (base_offset, last_offset, log_append_time, False)))
            except (RecordsError, StorageError) as error:
                results.append(error)
            except OSError as error:
                results.append(LogFailure(f"{self.topic_partition}: {error}"))
        write.finish(results)
        return results

    def append_as_follower(self, records: memoryview, *, now_ms: int) -> None:
        """Append batches as they are, offsets and all, as they came from the partition's leader.

        If one of them is refused, those before it are in the log.
        """
        append_as_follower(self, records, now_ms)

    def roll_limits(self, now_ms: int) -> tuple[int, int, int]:
        """What still goes into the active segment: bytes, the latest timestamp, and the last offset.

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
            # Without timestamps the segment's age goes by the clock.
            roll_after = MAX_INT64 if now_ms - segment.created_ms <= max_age else -2
        if segment.indexes_full(config.segment_index_bytes):
            room = 0
        return room, roll_after, segment.base_offset + MAX_RELATIVE_OFFSET

    def roll(self, now_ms: int, at: int | None = None) -> None:
        """Begin a new segment at the log's end (or further on, where a leader's log goes on after a gap).

        OSError leaves the old segment the active one.
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
        """A stretch of one segment that begins with the batch of `offset`; None if there is nothing to read.

        Batches that reach to `upper_bound` are left out. The stretch may end within a batch, except that the first one
        is whole: if it is larger than `max_bytes`, it is all there is, or nothing without `min_one_message`.
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
            # Compaction may have left nothing at the end of this segment.
            segment = self.segments.after(segment)
        return None

    def _bound(self, segment: Segment, upper_bound: int) -> int:
        """The position in the segment up to which all batches end before `upper_bound`."""
        following = self.segments.after(segment)
        if following is not None and upper_bound >= following.base_offset:
            return segment.size
        known = self._known_bound
        if known is not None and known[0] is segment and known[1] == upper_bound:
            return known[2]
        found = segment.locate(upper_bound)
        position = segment.size if found is None else found.position
        self._known_bound = (segment, upper_bound, position)
        return position

    def aborted_transactions(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that a reader of [first_offset, end_offset) must know."""
        return aborted_in(self.segments, first_offset, end_offset)

    def find_by_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record that is not earlier than `timestamp`."""
        for segment in self.segments:
            if segment.max_timestamp >= timestamp:
                start = max(segment.time_index.lookup(timestamp), self.log_start_offset)
                found = find_in_segment(segment, start, timestamp, self.log_start_offset)
                if found is not None:
                    return found
        return None

    def find_max_timestamp(self) -> FoundOffset | None:
        """The first record with the latest timestamp in the log."""
        latest = max(self.segments, key=lambda segment: segment.max_timestamp)
        if latest.max_timestamp < 0:
            return None
        return find_in_segment(latest, latest.offset_of_max_timestamp, latest.max_timestamp, self.log_start_offset)

    # -- giving up records

    def increment_log_start_offset(self, offset: int) -> None:
        """DeleteRecords: nobody shall read below `offset` any more."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(f"{self.topic_partition}: offset {offset} is past {self.high_watermark}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)

    def delete_segments(self, doomed: Sequence[Segment], now_ms: int) -> PendingDeletion:
        """Take the first segments out of the log.

        Their files are renamed at once, and deleted by whoever runs the result. If that is all of them, the log goes on
        with an empty one.
        """
        if len(doomed) == len(self.segments):
            self.roll(now_ms)
        paths = self._remove(doomed)
        self.log_start_offset = max(self.log_start_offset, self.segments.first.base_offset)
        self.leader_epochs.truncate_from_start(self.log_start_offset)
        # The snapshot of the first segment that is left says what went before, and stays.
        self._snapshots.delete_up_to(self.segments.first.base_offset - 1)
        return PendingDeletion(self._file_system, self.folder, paths)

    def start_swap(self, base_offset: int, sizes: dict[str, int], old: Sequence[Segment]) -> PendingSwap:
        """Begin to put a compacted segment in the place of those it was made of.

        Its files are complete and synced and end in `.cleaned`; `sizes` are theirs. `sync` the result on any thread,
        then call `replace_segments`. It is cancelled if the log loses records before that.
        """
        new = Segment(self.folder, base_offset, self._open_files, sizes, old[0].created_ms, suffix=CLEANED)
        swap = PendingSwap(self._file_system, new, old)
        swap.start()
        self._swap = swap
        return swap

    def replace_segments(self, swap: PendingSwap) -> PendingDeletion:
        """Let the compacted segment take its place. When the old ones have been deleted, call `finish_swap`.

        If an old one cannot be renamed, all can still be read, the next start will have the new one instead, and until
        then the log takes no more records.
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
        """Give the compacted segment its name: nothing is left that it could be mixed up with."""
        if self.in_use and self.segments.floor(swap.new.base_offset) is swap.new:
            swap.new.rename(SWAP, "")
            self._folder_changed = True

    def cancel_swap(self) -> None:
        if self._swap is not None:
            self._swap.cancel()
            self._swap = None

    def truncate_to(self, offset: int, now_ms: int) -> PendingDeletion:
        """Cut off the batch that holds `offset`, and all after it.

        Use `LogDirectory.truncate_log` instead, so that what is on disk says so, too.
        """
        if offset >= self.end_offset:
            return PendingDeletion(self._file_system, self.folder, [])
        if offset <= self.log_start_offset:
            # Nothing that may be read would be left.
            return self.truncate_fully_and_start_at(offset, now_ms)
        self._forget_position()
        doomed = [segment for segment in self.segments if segment.base_offset > offset]
        paths = self._remove(doomed)
        self.segments.active.truncate_to(offset)
        # What is cut off must not come back after a crash, between what was kept and what is appended next.
        self._file_system.fsync(self.segments.active.handle.fd)
        self._file_system.fsync_directory(self.folder)
        end_offset = self.segments.active.read_next_offset()
        if end_offset < self.log_start_offset:
            # The batch began with deleted records. Their offsets are not used again.
            paths += self.truncate_fully_and_start_at(self.log_start_offset, now_ms).paths
        else:
            self._end_at(end_offset)
        return PendingDeletion(self._file_system, self.folder, paths)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> PendingDeletion:
        """Forget all records; the log goes on at `offset`."""
        self._forget_position()
        # They go before the new one comes, which may have the name of one of them.
        paths = self._remove(list(self.segments))
        self.segments.add(Segment.create(self.folder, offset, self._open_files, now_ms))
        self.leader_epochs.replace([])
        self._snapshots.delete_up_to(offset)
        self._file_system.fsync_directory(self.folder)
        self._end_at(offset)
        self.log_start_offset = self.high_watermark = offset
        return PendingDeletion(self._file_system, self.folder, paths)

    def _remove(self, doomed: Sequence[Segment]) -> list[str]:
        self.cancel_swap()
        paths = []
        for segment in doomed:
            self.segments.remove(segment)
            segment.rename("", DELETED)
            paths += segment.drop()
        self._folder_changed = True
        self._known_bound = None
        return paths

    def _forget_position(self) -> None:
        """A flush that is under way may have synced what is being cut off now, and not what takes its place."""
        self.truncations += 1
        self._known_bound = None
        self.cancel_swap()

    def lower_known_offsets(self, offset: int) -> bool:
        """The log will be cut at `offset`. Say whether more was known to be synced, committed, deleted or compacted."""
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
        """Whether `flush.messages` or `flush.ms` ask for a flush, or a segment was rolled since the last one."""
        unflushed = self.end_offset - self.recovery_point
        return unflushed > 0 and (
            unflushed >= self._config.flush_messages
            or now_ms - self.last_flush_ms >= self._config.flush_ms
            or self.recovery_point < self.segments.active.base_offset
        )

    def start_flush(self) -> PendingFlush:
        """Begin to bring the log to disk as it is now: `sync` the result on any thread, then call `finish_flush`."""
        unflushed = self.segments.from_offset(self.recovery_point)
        segments = [segment for segment in self.segments if segment in unflushed or segment in self.finished]
        indexes = [index for segment in segments for index in segment.save_indexes()]
        paths = [index.path for index in indexes] + self._snapshots.unsynced + self.leader_epochs.unsynced
        folders = [self.folder] if paths or self._folder_changed else []
        if self._is_new:
            paths.append(os.path.join(self.folder, PARTITION_METADATA))
            folders.append(os.path.dirname(self.folder))
        handles = [segment.handle for segment in segments] + [Handle(self._file_system, path) for path in paths]
        # All files are open, so that nothing can fail any more before they are synced.
        self._folder_changed = self._is_new = False
        self.finished = []
        self._snapshots.unsynced = []
        self.leader_epochs.unsynced = []
        for index in indexes:
            index.synced = True
        return PendingFlush(self._file_system, handles, folders, self.end_offset, self.truncations)

    def finish_flush(self, pending: PendingFlush, now_ms: int) -> None:
        """Take note of what is on disk now.

        After a failed sync nobody knows what is: the kernel may have dropped what it could not write. The log then
        takes no more records, and no later sync makes up for it.
        """
        if pending.error is not None:
            self._failure = LogFailure(f"{self.topic_partition}: could not be synced: {pending.error}")
        if self._failure is not None:
            raise self._failure
        self.last_flush_ms = now_ms
        if pending.generation == self.truncations:
            self.recovery_point = max(self.recovery_point, pending.end_offset)

    def sync_creation_with_next_flush(self) -> None:
        """The folder was made just now."""
        self._is_new = True

    def start_close(self) -> PendingFlush:
        """The last flush, after which nothing needs to be scanned when the log is opened again."""
        self._snapshots.take(self.end_offset, self.producer_state)
        self.segments.active.finish_time_index()
        return self.start_flush()

    def drop_files(self) -> None:
        """Close all files as they are. The log is not to be used any more."""
        self.in_use = False
        if self._swap is not None:
            # Its files are in the hands of whoever opens the folder next.
            self._swap.cancelled = True
        for segment in self.segments:
            segment.drop()
