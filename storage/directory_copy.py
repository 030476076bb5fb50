"""Copies a data directory in use, as a clean shutdown at this moment would leave it, and restores such copies.

Complete segments never change, so their files are linked instead of copied. Only the active segments and the indexes
are copied. Nothing is synced: a copy survives a crash of this process, but perhaps not one of the machine.
"""

import os
import shutil
from contextlib import suppress
from typing import Final

from barnabas.storage.checkpoints import LEADER_EPOCH_CHECKPOINT, format_epochs
from barnabas.storage.file_names import LOG_SUFFIX, SNAPSHOT_SUFFIX, offset_file, parse_offset_file
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.producer_snapshot import encode_snapshot
from barnabas.storage.properties import META_PROPERTIES, write_clean_shutdown, write_topic_id


class UnsyncedFileSystem(FileSystem):
    """A file system that never syncs, for data that need not survive a crash of the machine."""

    def fsync(self, fd: int) -> None:
        pass

    def fsync_directory(self, path: str) -> None:
        pass


_UNSYNCED: Final = UnsyncedFileSystem()


def copy_directory(directory: LogDirectory, target: str) -> None:
    """Copy all logs to `target`, which must not exist yet. Runs on the logs' own thread, without a break."""
    os.makedirs(target)
    shutil.copyfile(os.path.join(directory.path, META_PROPERTIES), os.path.join(target, META_PROPERTIES))
    for log in directory.logs.values():
        _copy_log(log, os.path.join(target, os.path.basename(log.folder)))
    directory.start_checkpoint().write_copy(target, _UNSYNCED)
    write_clean_shutdown(target, -1, _UNSYNCED)


def _copy_log(log: Log, target: str) -> None:
    os.mkdir(target)
    active = log.segments.active
    active.finish_time_index()
    for segment in log.segments:
        (_copy if segment is active else _link)(segment.path, offset_file(target, segment.base_offset, LOG_SUFFIX))
        for index in segment.indexes:
            contents = index.contents()
            if contents or (segment.size and index.EXISTS_EMPTY):
                name = os.path.basename(index.path).split(".")[1]
                _UNSYNCED.write_file(offset_file(target, segment.base_offset, f".{name}"), contents, sync=False)
    for name in os.listdir(log.folder):
        parsed = parse_offset_file(name)
        if parsed is not None and parsed[1] == SNAPSHOT_SUFFIX:
            _copy(os.path.join(log.folder, name), os.path.join(target, name))
    latest = encode_snapshot(log.producer_state.snapshot())
    _UNSYNCED.write_file(offset_file(target, log.end_offset, SNAPSHOT_SUFFIX), latest, sync=False)
    if log.leader_epochs.entries:
        epochs = format_epochs(log.leader_epochs.entries)
        _UNSYNCED.write_file(os.path.join(target, LEADER_EPOCH_CHECKPOINT), epochs, sync=False)
    if log.topic_id is not None:
        write_topic_id(target, log.topic_id, _UNSYNCED, sync=False)


def copy_of_copy(source: str, target: str) -> None:
    """Restore a copy into the folder `target`, for use. The copy does not change."""
    os.makedirs(target, exist_ok=True)
    with os.scandir(source) as entries:
        for entry in entries:
            goal = os.path.join(target, entry.name)
            if entry.is_dir():
                _use_log(entry.path, goal)
            else:
                _copy(entry.path, goal)


def _use_log(source: str, target: str) -> None:
    os.mkdir(target)
    names = sorted(os.listdir(source))
    active = max((name for name in names if name.endswith(LOG_SUFFIX)), default=None)
    for name in names:
        complete = name.endswith(LOG_SUFFIX) and name != active
        (_link if complete else _copy)(os.path.join(source, name), os.path.join(target, name))


def _link(source: str, target: str) -> None:
    with suppress(OSError):  # the file system has no links
        os.link(source, target)
        return
    _copy(source, target)


def _copy(source: str, target: str) -> None:
    shutil.copyfile(source, target)
