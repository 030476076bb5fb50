"""A data directory: the logs of many partitions, the files that say how far each is safe, and a lock.

One process uses it at a time. When it is closed in order, `.kafka_cleanshutdown` says so as the very last thing; it is
taken away when the directory is opened, so that whoever comes after a crash does not find it.
"""

import contextlib
import fcntl
import os
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from storage.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    read_offsets,
    write_offsets,
)
from storage.config import LogConfig
from storage.errors import CorruptFile, DirectoryLocked, LogFailure, WrongDirectory
from storage.filesystem import FileSystem
from storage.flush import PendingDeletion, PendingFlush
from storage.log import Log
from storage.log_loader import KnownOffsets, open_log
from storage.open_files import OpenFiles
from storage.properties import CLEAN_SHUTDOWN, MetaProperties, encode_id, write_clean_shutdown, write_topic_id
from storage.topic_partition import DELETED_SUFFIX, TopicPartition

logger = structlog.get_logger(__name__)

LOCK_FILE: Final = ".lock"

_SYNCED_AT_ONCE: Final = 32


class CheckpointFiles:
    """The checkpoint files of a directory. Threads write them one at a time, and nothing older over something newer."""

    def __init__(self, file_system: FileSystem, folder: str) -> None:
        self._file_system = file_system
        self._folder = folder
        self._lock = threading.Lock()
        self._taken = 0
        self._written = 0

    def next_number(self) -> int:
        self._taken += 1
        return self._taken

    def write(self, number: int, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        with self._lock:
            if number > self._written:
                for name in offsets:
                    write_offsets(self._file_system, os.path.join(self._folder, name), offsets[name])
                self._written = number


class PendingCheckpoint:
    """The offsets of all logs at one moment, to be written on any thread."""

    def __init__(self, files: CheckpointFiles, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        self._files = files
        self._number = files.next_number()
        self._offsets = offsets

    def write(self) -> None:
        """When this returns, these offsets are on disk, or later ones."""
        self._files.write(self._number, self._offsets)

    def write_copy(self, folder: str, file_system: FileSystem) -> None:
        """Write these offsets to the checkpoint files of another folder."""
        for name, offsets in self._offsets.items():
            write_offsets(file_system, os.path.join(folder, name), offsets)


class PendingFolderDeletion:
    """The folder of a partition that was deleted, to be removed on any thread."""

    def __init__(self, file_system: FileSystem, path: str) -> None:
        self.path = path
        self._file_system = file_system

    def run(self) -> None:
        self._file_system.fsync_directory(os.path.dirname(self.path))
        self._file_system.remove_tree(self.path)


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
        max_open_files: int = 4096,
    ) -> None:
        """Open a directory, made if need be, and all logs in it. `config_of` gives the settings of a topic.

        A new directory gets the given cluster id, or one of its own. One that has another raises WrongDirectory; one
        that is in use, DirectoryLocked.
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
            os.close(self._lock)
            raise

    def _read_properties(self, node_id: int, cluster_id: str | None) -> MetaProperties:
        properties = MetaProperties.read(self.path)
        if properties is None:
            properties = MetaProperties(cluster_id or encode_id(uuid.uuid4()), node_id, uuid.uuid4())
            properties.write(self.path, self._file_system)
        if properties.node_id != node_id:
            raise WrongDirectory(f"{self.path} is the data of node {properties.node_id}, not {node_id}")
        if cluster_id is not None and properties.cluster_id != cluster_id:
            raise WrongDirectory(f"{self.path} is of cluster {properties.cluster_id}, not {cluster_id}")
        return properties

    def _take_clean_mark(self) -> bool:
        try:
            self._file_system.unlink(os.path.join(self.path, CLEAN_SHUTDOWN))
        except FileNotFoundError:
            return False
        self._file_system.fsync_directory(self.path)
        return True

    def _open_logs(self, config_of: Callable[[str], LogConfig], now_ms: int) -> None:
        recovery_points = self._read_checkpoint(RECOVERY_POINT_CHECKPOINT)
        log_start_offsets = self._read_checkpoint(LOG_START_OFFSET_CHECKPOINT)
        high_watermarks = self._read_checkpoint(HIGH_WATERMARK_CHECKPOINT)
        first_dirty_offsets = self._read_checkpoint(CLEANER_OFFSET_CHECKPOINT)
        with os.scandir(self.path) as entries:
            folders = sorted(entry.name for entry in entries if entry.is_dir())
        for name in folders:
            folder = os.path.join(self.path, name)
            if name.endswith(DELETED_SUFFIX):
                self._file_system.remove_tree(folder)
                continue
            topic_partition = TopicPartition.of_folder(name)
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

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """A damaged checkpoint is as good as none: it costs a longer recovery, or brings deleted records back."""
        try:
            return read_offsets(os.path.join(self.path, name))
        except CorruptFile as error:
            logger.warning("checkpoint lost", error=str(error))
            return {}

    # -- partitions

    def create_log(self, topic_partition: TopicPartition, topic_id: uuid.UUID, config: LogConfig, now_ms: int) -> Log:
        """The log of a new partition; the one that is there, if there is one.

        That one may have been left without its topic's id by a crash, and gets it now.
        """
        log = self.logs.get(topic_partition)
        if log is not None:
            if log.topic_id is None:
                write_topic_id(log.folder, topic_id, self._file_system, sync=False)
                log.topic_id = topic_id
            return log
        folder = os.path.join(self.path, str(topic_partition))
        try:
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
        """Take a partition out of the directory. What readers hold of it stays readable."""
        log = self.logs.pop(topic_partition)
        folder = os.path.join(self.path, topic_partition.deleted_folder())
        log.drop_files()
        self._file_system.rename(log.folder, folder)
        return PendingFolderDeletion(self._file_system, folder)

    def set_aside(self, topic_partition: TopicPartition) -> None:
        """Keep the folder of a partition that nobody knows, under a name by which it is not opened again."""
        log = self.logs.pop(topic_partition)
        log.drop_files()
        self._file_system.rename(log.folder, os.path.join(self.path, topic_partition.stray_folder()))

    def truncate_log(self, topic_partition: TopicPartition, offset: int, now_ms: int) -> PendingDeletion:
        """Cut a log. What the checkpoints say of it goes down first: what follows the cut is new."""
        log = self.logs[topic_partition]
        if log.lower_known_offsets(offset):
            self.start_checkpoint().write()
        return log.truncate_to(offset, now_ms)

    def truncate_log_fully(self, topic_partition: TopicPartition, offset: int, now_ms: int) -> PendingDeletion:
        """Forget all records of a log, which goes on at `offset`."""
        log = self.logs[topic_partition]
        if log.lower_known_offsets(offset):
            self.start_checkpoint().write()
        return log.truncate_fully_and_start_at(offset, now_ms)

    # -- checkpoints and the end

    def start_checkpoint(self) -> PendingCheckpoint:
        """What is to be written down from time to time of how far each log is safe, committed and deleted."""
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
        """Stop in order: bring every log to disk and say so. If one fails, the next start is as after a crash."""
        try:
            clean = self._flush_all()
            self.start_checkpoint().write()
            if clean:
                write_clean_shutdown(self.path, broker_epoch, self._file_system)
        finally:
            self.abandon()

    def _flush_all(self) -> bool:
        """Bring every log to disk, and say whether that worked for all.

        Many are synced at a time: that takes a disk hardly longer than one.
        """
        clean = True
        logs = list(self.logs.values())
        with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
            for start in range(0, len(logs), _SYNCED_AT_ONCE):
                some = logs[start : start + _SYNCED_AT_ONCE]
                try:
                    flushes = [log.start_close() for log in some]
                    for _ in pool.map(PendingFlush.sync, flushes):
                        pass
                    for log, flush in zip(some, flushes, strict=True):
                        log.finish_flush(flush, log.last_flush_ms)
                except (LogFailure, OSError) as error:
                    logger.error("a log could not be closed in order", error=str(error))
                    clean = False
        return clean

    def abandon(self) -> None:
        """Let go of the directory as it is, as a crash would."""
        for log in self.logs.values():
            log.drop_files()
        self.logs.clear()
        os.close(self._lock)


def lock_directory(folder: str) -> int:
    """Lock a directory against other processes, Apache Kafka's among them, and against a second use in this one.

    The lock goes when the descriptor that is given back is closed. DirectoryLocked if somebody else has it.

    Kafka takes a POSIX lock, which a process does not hold against itself; flock does that.
    """
    fd = os.open(os.path.join(folder, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise DirectoryLocked(f"{folder} is in use by another process") from None
    return fd
