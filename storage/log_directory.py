"""A data directory: the logs of many partitions, their checkpoint files, and a lock.

One process uses it at a time. A clean shutdown writes `.kafka_cleanshutdown` as its very last step. Opening the
directory removes that file, so it is absent after a crash.
"""

import contextlib
import fcntl
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    read_offsets,
    write_offsets,
)
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import CorruptFile, DirectoryLocked, LogFailure, WrongDirectory
from barnabas.storage.file_names import TEMPORARY
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.flush import PendingDeletion, PendingFlush
from barnabas.storage.log import Log
from barnabas.storage.log_loader import KnownOffsets, open_log
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.partition_folder import (
    DELETED_SUFFIX,
    STRAY_SUFFIX,
    deleted_folder,
    partition_of_folder,
    stray_folder,
)
from barnabas.storage.properties import CLEAN_SHUTDOWN, MetaProperties, encode_id, write_clean_shutdown, write_topic_id

logger = structlog.get_logger(__name__)

LOCK_FILE: Final = ".lock"
# Written and deleted again, to see whether the disk has room for a request's records.
_TRIAL_FILE: Final = "trial" + TEMPORARY
_TRIAL_BYTES: Final = 1024 * 1024

_SYNCED_AT_ONCE: Final = 32


class CheckpointFiles:
    """The checkpoint files of a directory. Threads write them one at a time, and never replace newer data with
    older."""

    def __init__(self, file_system: FileSystem, folder: str) -> None:
        self._file_system = file_system
        self._folder = folder
        self._lock = threading.Lock()
        self._taken = 0
        self._written = 0
        # The partitions in the latest checkpoint, and those that the files may name, now or when it is written.
        self._latest: Set[TopicPartition] = frozenset()
        self._named: Set[TopicPartition] = frozenset()

    def read(self, name: str) -> dict[TopicPartition, int]:
        """A damaged checkpoint counts as missing. That makes recovery slower, or brings deleted records back."""
        try:
            offsets = read_offsets(os.path.join(self._folder, name))
        except CorruptFile as error:
            logger.warning("checkpoint lost", error=str(error))
            return {}
        self._latest |= offsets.keys()
        return offsets

    def take(self, partitions: Iterable[TopicPartition]) -> int:
        """The number of a new checkpoint with these partitions."""
        self._forget_replaced()
        self._latest = frozenset(partitions)
        self._named |= self._latest
        self._taken += 1
        return self._taken

    def may_name(self, partition: TopicPartition) -> bool:
        """Whether a start after a crash may find offsets of this partition."""
        self._forget_replaced()
        return partition in self._named

    def _forget_replaced(self) -> None:
        """Once the latest checkpoint is written, no older one is written any more."""
        if self._written == self._taken:
            self._named = self._latest

    def write(self, number: int, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        with self._lock:
            if number > self._written:
                for name in offsets:
                    write_offsets(self._file_system, os.path.join(self._folder, name), offsets[name])
                self._written = number


class PendingCheckpoint:
    """The offsets of all logs at one moment. Any thread may write them."""

    def __init__(self, files: CheckpointFiles, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        self._files = files
        self._number = files.take(offsets[RECOVERY_POINT_CHECKPOINT])
        self._offsets = offsets

    def write(self) -> None:
        """When this returns, these or later offsets are on disk."""
        self._files.write(self._number, self._offsets)

    def write_copy(self, folder: str, file_system: FileSystem) -> None:
        """Write these offsets to the checkpoint files of another folder."""
        for name, offsets in self._offsets.items():
            write_offsets(file_system, os.path.join(folder, name), offsets)


class PendingFolderDeletion:
    """The folder of a deleted partition. Any thread may remove it."""

    def __init__(self, file_system: FileSystem, path: str) -> None:
        self.path = path
        self._file_system = file_system

    def run(self) -> None:
        self._file_system.fsync_directory(os.path.dirname(self.path))
        self._file_system.remove_tree(self.path)


def has_partitions(path: str) -> bool:
    with os.scandir(path) as entries:
        return any(entry.is_dir() and partition_of_folder(entry.name) is not None for entry in entries)


class LogDirectory:
    def __init__(
        self,
        path: str,
        *,
        node_id: int,
        config_of: Callable[[str], LogConfig],
        now_ms: int,
        cluster_id: str | None = None,
        file_system: FileSystem | None = None,
        max_open_files: int | None = None,
    ) -> None:
        """Open a directory, created if necessary, and all logs in it. `config_of` returns the settings of a topic.

        A new directory gets the given cluster id, or a new one. Raises WrongDirectory if the directory has another
        cluster id, and DirectoryLocked if it is in use.
        """
        self.path = os.path.abspath(path)
        self.logs: dict[TopicPartition, Log] = {}
        self._file_system = file_system or FileSystem()
        self._open_files = OpenFiles(self._file_system, max_open_files)
        self._checkpoints = CheckpointFiles(self._file_system, self.path)
        os.makedirs(self.path, exist_ok=True)
        self._lock = lock_directory(self.path)
        try:
            self.properties = self._read_properties(node_id, cluster_id)
            self.was_clean = self._take_clean_mark()
            self._open_logs(config_of, now_ms)
        except BaseException:
            self._file_system.close(self._lock)
            raise

    def _read_properties(self, node_id: int, cluster_id: str | None) -> MetaProperties:
        properties = MetaProperties.read(self.path)
        if properties is None:
            properties = MetaProperties(cluster_id or encode_id(uuid.uuid4()), node_id, uuid.uuid4())
            properties.write(self.path, self._file_system)
        if properties.node_id != node_id:
            raise WrongDirectory(f"{self.path} belongs to node {properties.node_id}, not {node_id}")
        if cluster_id is not None and properties.cluster_id != cluster_id:
            raise WrongDirectory(f"{self.path} belongs to cluster {properties.cluster_id}, not {cluster_id}")
        return properties

    def _take_clean_mark(self) -> bool:
        try:
            self._file_system.unlink(os.path.join(self.path, CLEAN_SHUTDOWN))
        except FileNotFoundError:
            return False
        self._file_system.fsync_directory(self.path)
        return True

    def _open_logs(self, config_of: Callable[[str], LogConfig], now_ms: int) -> None:
        recovery_points = self._checkpoints.read(RECOVERY_POINT_CHECKPOINT)
        log_start_offsets = self._checkpoints.read(LOG_START_OFFSET_CHECKPOINT)
        high_watermarks = self._checkpoints.read(HIGH_WATERMARK_CHECKPOINT)
        first_dirty_offsets = self._checkpoints.read(CLEANER_OFFSET_CHECKPOINT)
        with os.scandir(self.path) as entries:
            folders = sorted(entry.name for entry in entries if entry.is_dir())
        strays = [name for name in folders if name.endswith(STRAY_SUFFIX)]
        if strays:
            logger.warning("folders that were set aside are still there", path=self.path, folders=strays[:10])
        for name in folders:
            folder = os.path.join(self.path, name)
            if name.endswith(DELETED_SUFFIX):
                self._file_system.remove_tree(folder)
                continue
            topic_partition = partition_of_folder(name)
            if topic_partition is not None:
                self.logs[topic_partition] = open_log(
                    folder,
                    topic_partition,
                    config_of(topic_partition.topic),
                    self._open_files,
                    known=KnownOffsets(
                        recovery_points.get(topic_partition, 0),
                        log_start_offsets.get(topic_partition, 0),
                        high_watermarks.get(topic_partition, 0),
                        first_dirty_offsets.get(topic_partition),
                    ),
                    clean=self.was_clean,
                    now_ms=now_ms,
                )

    # -- partitions

    def try_disk(self) -> None:
        """Write something to the disk, on any thread; OSError if it cannot be written."""
        path = os.path.join(self.path, _TRIAL_FILE)
        try:
            self._file_system.write_file(path, bytes(_TRIAL_BYTES), sync=True)
        finally:
            with contextlib.suppress(OSError):
                self._file_system.unlink(path)

    def create_log(self, topic_partition: TopicPartition, topic_id: uuid.UUID, config: LogConfig, now_ms: int) -> Log:
        """Create the log of a new partition, or return the existing one.

        A crash may have left an existing log without its topic id; it gets it now.
        """
        log = self.logs.get(topic_partition)
        if log is not None:
            if log.topic_id is None:
                try:
                    write_topic_id(log.folder, topic_id, self._file_system, sync=False)
                except OSError as error:
                    raise LogFailure(f"{topic_partition} could not get its topic id: {error}") from None
                log.topic_id = topic_id
            return log
        folder = os.path.join(self.path, str(topic_partition))
        try:
            if self._checkpoints.may_name(topic_partition):
                # The offsets of an earlier log of this name: after a crash they would be taken for those of this one.
                self.start_checkpoint().write()
            self._file_system.mkdir(folder)
            write_topic_id(folder, topic_id, self._file_system, sync=False)
            log = open_log(
                folder, topic_partition, config, self._open_files, known=KnownOffsets(), clean=True, now_ms=now_ms
            )
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file_system.remove_tree(folder)
            raise LogFailure(f"{topic_partition} could not be created: {error}") from None
        log.sync_creation_with_next_flush()
        self.logs[topic_partition] = log
        return log

    def delete_log(self, topic_partition: TopicPartition) -> PendingFolderDeletion:
        """Remove a partition from the directory. Slices that readers hold stay readable."""
        log = self.logs.pop(topic_partition)
        folder = os.path.join(self.path, deleted_folder(topic_partition))
        log.drop_files()
        self._file_system.rename(log.folder, folder)
        return PendingFolderDeletion(self._file_system, folder)

    def set_aside(self, topic_partition: TopicPartition) -> None:
        """Keep the folder of an unknown partition, renamed so that it is not opened again."""
        log = self.logs.pop(topic_partition)
        log.drop_files()
        self._file_system.rename(log.folder, os.path.join(self.path, stray_folder(topic_partition)))

    def truncate_log(self, topic_partition: TopicPartition, offset: int, now_ms: int) -> PendingDeletion:
        """Truncate a log. Its checkpoints are lowered first, because new records will follow the cut."""
        log = self.logs[topic_partition]
        self._lower_known_offsets(log, offset)
        return log.truncate_to(offset, now_ms)

    def truncate_log_fully(self, topic_partition: TopicPartition, offset: int, now_ms: int) -> PendingDeletion:
        """Drop all records of a log, which continues at `offset`."""
        log = self.logs[topic_partition]
        self._lower_known_offsets(log, offset)
        return log.truncate_fully_and_start_at(offset, now_ms)

    def _lower_known_offsets(self, log: Log, offset: int) -> None:
        before = log.recovery_point, log.log_start_offset, log.high_watermark, log.first_dirty_offset
        if log.lower_known_offsets(offset):
            try:
                self.start_checkpoint().write()
            except OSError:
                # The log will not be truncated, and the next attempt must write them.
                log.recovery_point, log.log_start_offset, log.high_watermark, log.first_dirty_offset = before
                raise

    # -- checkpoints and shutdown

    def start_checkpoint(self) -> PendingCheckpoint:
        """The offsets up to which each log is synced, committed and deleted, to be written regularly."""
        return PendingCheckpoint(
            self._checkpoints,
            {
                RECOVERY_POINT_CHECKPOINT: {name: log.recovery_point for name, log in self.logs.items()},
                LOG_START_OFFSET_CHECKPOINT: {
                    name: log.log_start_offset
                    for name, log in self.logs.items()
                    if log.log_start_offset > log.segments.first.base_offset
                },
                HIGH_WATERMARK_CHECKPOINT: {name: log.high_watermark for name, log in self.logs.items()},
                CLEANER_OFFSET_CHECKPOINT: {
                    name: log.first_dirty_offset
                    for name, log in self.logs.items()
                    if log.first_dirty_offset is not None
                },
            },
        )

    def close(self, broker_epoch: int = -1) -> None:
        """Shut down cleanly: sync every log and mark that. If it fails, the next start recovers as after a crash."""
        try:
            clean = self._flush_all()
            self.start_checkpoint().write()
            if clean:
                write_clean_shutdown(self.path, broker_epoch, self._file_system)
        except OSError as error:
            logger.error("the data directory could not be shut down cleanly", path=self.path, error=str(error))
        finally:
            self.abandon()

    def _flush_all(self) -> bool:
        """Sync every log, and return whether all succeeded.

        Many are synced at the same time, which hardly takes longer than syncing one. Each may need a few open files.
        """
        clean = True
        logs = list(self.logs.values())
        at_once = max(1, min(_SYNCED_AT_ONCE, self._open_files.capacity // 8))
        with ThreadPoolExecutor(at_once) as pool:
            for start in range(0, len(logs), at_once):
                flushes: list[tuple[Log, PendingFlush]] = []
                for log in logs[start : start + at_once]:
                    try:
                        flushes.append((log, log.start_close()))
                    except Exception as error:
                        clean = _not_closed(log, error)
                for _ in pool.map(PendingFlush.sync, [flush for _, flush in flushes]):
                    pass
                for log, flush in flushes:
                    try:
                        log.finish_flush(flush, log.last_flush_ms)
                    except LogFailure as error:
                        clean = _not_closed(log, error)
        return clean

    def abandon(self) -> None:
        """Release the directory as it is, as a crash would."""
        for log in self.logs.values():
            log.drop_files()
        self.logs.clear()
        self._file_system.close(self._lock)


def lock_directory(folder: str) -> int:
    """Lock a directory against other processes, including Apache Kafka's, and against a second use in this one.

    Closing the returned descriptor releases the lock. Raises DirectoryLocked if the directory is already locked.

    Kafka takes a POSIX lock, which does not exclude the same process; flock does.
    """
    fd = os.open(os.path.join(folder, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise DirectoryLocked(f"{folder} is in use by another process") from None
    return fd


def _not_closed(log: Log, error: Exception) -> bool:
    logger.error("a log could not be shut down cleanly", partition=str(log.topic_partition), error=str(error))
    return False
