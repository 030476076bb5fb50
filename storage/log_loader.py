"""Opening a partition's folder.

After a clean shutdown nothing is scanned: the names and sizes of the files, the last few headers and one producer
snapshot are enough. After a crash, the segments from the recovery point on are checked batch by batch
(barnabas.storage.recovery).
"""

import os
import uuid
from collections.abc import Iterable
from typing import NamedTuple

import structlog

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.batch_scan import scan_headers
from barnabas.storage.checkpoints import EpochEntry, read_epochs
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import CorruptFile
from barnabas.storage.file_names import (
    CLEANED,
    DELETED,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP,
    TEMPORARY,
    offset_file,
    parse_offset_file,
)
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.leader_epochs import NO_EPOCH, LeaderEpochs
from barnabas.storage.log import Log
from barnabas.storage.open_files import Handle, OpenFiles
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.properties import read_topic_id
from barnabas.storage.recovery import rebuild_producer_state, recover_segment
from barnabas.storage.segment import Segment
from barnabas.storage.segments import Segments
from barnabas.storage.snapshots import Snapshots

logger = structlog.get_logger(__name__)


class KnownOffsets(NamedTuple):
    """A log's offsets in the data directory's checkpoint files."""

    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    # None: the log was never compacted.
    first_dirty_offset: int | None = None


def open_log(
    folder: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    open_files: OpenFiles,
    *,
    known: KnownOffsets,
    clean: bool,
    now_ms: int,
) -> Log:
    """Open the log in an existing folder. `clean`: the last run ended with a clean shutdown."""
    file_system = open_files.file_system
    files = _tidy_up(folder, file_system, _list_files(folder))
    segments = _find_segments(folder, files, open_files, now_ms, known.log_start_offset)
    snapshots = Snapshots(folder, file_system, files.get(SNAPSHOT_SUFFIX, ()))
    log_start_offset = max(known.log_start_offset, segments.first.base_offset)
    doubtful = [] if clean else _doubtful(segments, known.recovery_point)
    trusted = [segment for segment in segments if segment not in doubtful]
    stored_epochs = _read_epochs(folder)
    # A crash of the machine may leave the file empty: it is replaced without a sync.
    is_lost = stored_epochs is None or (not stored_epochs and not clean)
    epochs = _epochs_in(trusted) if is_lost else list(stored_epochs or ())

    if clean:
        _rebuild_missing_indexes(segments, trusted, snapshots, config)
        end_offset = segments.active.read_next_offset()
        state = rebuild_producer_state(segments, snapshots, end_offset)
        recovery_point = end_offset
    else:
        recovery_point = known.recovery_point
        # Compaction leaves gaps, but only in synced data.
        gaps_end = max(recovery_point, known.first_dirty_offset or 0)
        end_offset, state = _recover(topic_partition, segments, doubtful, snapshots, config, gaps_end, epochs)
        recovery_point = min(recovery_point, end_offset)
    snapshots.delete_strays({segment.base_offset for segment in segments})
    leader_epochs = LeaderEpochs(folder, file_system, epochs)
    if epochs != stored_epochs:
        leader_epochs.replace(epochs)

    high_watermark = min(max(known.high_watermark, log_start_offset), end_offset)
    state.forget_replicated_transactions(high_watermark)
    log = Log(
        topic_partition=topic_partition,
        topic_id=_read_topic_id(folder),
        folder=folder,
        config=config,
        open_files=open_files,
        segments=segments,
        producer_state=state,
        snapshots=snapshots,
        leader_epochs=leader_epochs,
        log_start_offset=log_start_offset,
        end_offset=end_offset,
        recovery_point=recovery_point,
        high_watermark=high_watermark,
    )
    if log_start_offset > end_offset:
        # Records up to here were deleted, and those after it were lost.
        log.truncate_fully_and_start_at(log_start_offset, now_ms).run()
    leader_epochs.truncate_from_end(log.end_offset)
    leader_epochs.truncate_from_start(log.log_start_offset)
    log.last_flush_ms = now_ms
    log.finished = [segment for segment in doubtful if segment in log.segments]
    if known.first_dirty_offset is not None and known.first_dirty_offset <= log.end_offset:
        log.first_dirty_offset = known.first_dirty_offset
    return log


# -- the files in the folder

# The files of a folder by suffix, each with its offset and size.
_Files = dict[str, dict[int, int]]


def _list_files(folder: str) -> _Files:
    files: _Files = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            parsed = parse_offset_file(entry.name)
            if parsed is not None:
                offset, suffix = parsed
                files.setdefault(suffix, {})[offset] = entry.stat().st_size
    return files


def _tidy_up(folder: str, file_system: FileSystem, files: _Files) -> _Files:
    """Finish what a crash interrupted: deletions, and the swapping in of compacted segments."""
    leftovers = [suffix for suffix in files if suffix.endswith((DELETED, CLEANED, TEMPORARY))]
    for suffix in leftovers:
        for offset in files.pop(suffix):
            file_system.unlink(offset_file(folder, offset, suffix))
    if not any(suffix.endswith(SWAP) for suffix in files):
        return files

    for base_offset, size in files.get(LOG_SUFFIX + SWAP, {}).items():
        # The replacement is complete, because its log is renamed last. Delete the segments it replaces, then rename it.
        end_offset = _end_offset(file_system, offset_file(folder, base_offset, LOG_SUFFIX + SWAP), base_offset, size)
        for suffix in SEGMENT_SUFFIXES:
            for replaced in [offset for offset in files.get(suffix, {}) if base_offset <= offset < end_offset]:
                file_system.unlink(offset_file(folder, replaced, suffix))
        # Renames may reach the disk in any order, and both names must never exist together.
        file_system.fsync_directory(folder)
        for suffix in SEGMENT_SUFFIXES:
            if base_offset in files.get(suffix + SWAP, {}):
                swapped = offset_file(folder, base_offset, suffix + SWAP)
                file_system.rename(swapped, offset_file(folder, base_offset, suffix))
    file_system.fsync_directory(folder)
    files = _list_files(folder)
    for suffix in [suffix for suffix in files if suffix.endswith(SWAP)]:
        for offset in files.pop(suffix):
            file_system.unlink(offset_file(folder, offset, suffix))
    return files


def _end_offset(file_system: FileSystem, path: str, base_offset: int, size: int) -> int:
    """The offset after the last batch of a file. An empty replacement still replaces the segment with its name."""
    end_offset = base_offset + 1
    for _, header in scan_headers(Handle(file_system, path), 0, size):
        end_offset = header.next_offset
    return end_offset


def _find_segments(folder: str, files: _Files, open_files: OpenFiles, now_ms: int, start_offset: int) -> Segments:
    base_offsets = files.get(LOG_SUFFIX, {})
    for suffix in SEGMENT_SUFFIXES:
        for orphan in [offset for offset in files.get(suffix, {}) if offset not in base_offsets]:
            open_files.file_system.unlink(offset_file(folder, orphan, suffix))
    if not base_offsets:
        return Segments([Segment.create(folder, start_offset, open_files, now_ms)])
    return Segments(
        Segment(
            folder,
            base_offset,
            open_files,
            {suffix: files[suffix][base_offset] for suffix in SEGMENT_SUFFIXES if base_offset in files.get(suffix, ())},
            created_ms=now_ms,
        )
        for base_offset in base_offsets
    )


def _read_epochs(folder: str) -> list[EpochEntry] | None:
    """The leader epochs in the checkpoint file; None if it is damaged."""
    try:
        return read_epochs(LeaderEpochs.path_in(folder))
    except CorruptFile as error:
        logger.warning("leader epochs lost", error=str(error))
        return None


def _epochs_in(segments: Iterable[Segment]) -> list[EpochEntry]:
    """The leader epochs according to the batches."""
    epochs: list[EpochEntry] = []
    for segment in segments:
        for _, header in segment.headers():
            if header.partition_leader_epoch > (epochs[-1].epoch if epochs else NO_EPOCH):
                epochs.append(EpochEntry(header.partition_leader_epoch, header.base_offset))
    return epochs


def _read_topic_id(folder: str) -> uuid.UUID | None:
    try:
        return read_topic_id(folder)
    except CorruptFile as error:
        logger.warning("topic id lost", error=str(error))
        return None


# -- recovery


def _doubtful(segments: Segments, recovery_point: int) -> list[Segment]:
    """The segments that a crash may have damaged.

    This includes the segment that ends at the recovery point. Its records are on disk, but its indexes were completed
    when the next segment began, which may have been later.
    """
    return segments.from_offset(max(recovery_point - 1, 0))


def _rebuild_missing_indexes(
    segments: Segments, trusted: Iterable[Segment], snapshots: Snapshots, config: LogConfig
) -> None:
    for segment in trusted:
        # Indexes of inactive segments are checked when they are read. Checking them here would take too long.
        if not segment.indexes_are_sound or (segment is segments.active and not segment.lookup_indexes_fit()):
            logger.warning("index rebuilt", segment=segment.path)
            state = rebuild_producer_state(segments, snapshots, segment.base_offset)
            recover_segment(segment, config.index_interval_bytes, state, [], segment.base_offset)
            if segment is not segments.active:
                segment.become_inactive()
                segment.sync_indexes()  # recovery will not check this segment again after a crash


def _recover(
    topic_partition: TopicPartition,
    segments: Segments,
    doubtful: list[Segment],
    snapshots: Snapshots,
    config: LogConfig,
    gaps_end: int,
    epochs: list[EpochEntry],
) -> tuple[int, ProducerState]:
    """Check the doubtful segments, and drop everything from the first invalid batch on.

    A gap between segments means lost records, unless it ends at `gaps_end` or before, or the topic is compacted.
    Returns the new end offset of the log, and the producer state there. The epochs are updated in place.
    """
    first = doubtful[0]
    sound = [segment for segment in segments if segment not in doubtful]
    _rebuild_missing_indexes(segments, sound, snapshots, config)
    snapshots.delete_after(first.base_offset)
    state = rebuild_producer_state(segments, snapshots, first.base_offset)
    epochs[:] = [entry for entry in epochs if entry.start_offset < first.base_offset]
    end_offset = first.base_offset
    for number, segment in enumerate(doubtful):
        size = segment.size
        gap = segment.base_offset > max(end_offset, gaps_end) and number > 0 and not config.compact
        if segment.base_offset < end_offset or gap:
            _drop(topic_partition, segments, doubtful[number:])
            break
        if number > 0:
            snapshots.take(segment.base_offset, state)
        end_offset = recover_segment(segment, config.index_interval_bytes, state, epochs, end_offset)
        if segment.size < size:
            logger.warning("segment cut", segment=segment.path, size=segment.size, lost_bytes=size - segment.size)
            _drop(topic_partition, segments, doubtful[number + 1 :])
            break
    for segment in segments:
        if segment is not segments.active and segment in doubtful:
            segment.become_inactive()
    return end_offset, state


def _drop(topic_partition: TopicPartition, segments: Segments, doomed: Iterable[Segment]) -> None:
    for segment in doomed:
        logger.warning("segment dropped", partition=str(topic_partition), base_offset=segment.base_offset)
        segments.remove(segment)
        segment.unlink()
