"""Copies of a data directory: of one that is in use, as a clean stop at this moment would have left it, and of such a
copy again, for use.

Segments that are complete are never written to again, so their files are linked and not copied: a copy costs what the
active segments and the indexes cost. Nothing is synced: a copy survives this process, but perhaps not the machine.
"""

import os
import shutil
from contextlib import suppress
from typing import Final

from storage.checkpoints import LEADER_EPOCH_CHECKPOINT, format_epochs
from storage.file_names import LOG_SUFFIX, SNAPSHOT_SUFFIX, offset_file, parse_offset_file
from storage.filesystem import FileSystem
from storage.log import Log
from storage.log_directory import LogDirectory
from storage.producer_snapshot import encode_snapshot
from storage.properties import META_PROPERTIES, write_clean_shutdown, write_topic_id


class UnsyncedFileSystem(FileSystem):
    """One that leaves it to the system when something reaches the disk: for data that need not outlive the machine."""

    def fsync(self, fd: int) -> None:
        pass

    def fsync_directory(self, path: str) -> None:
        pass


_UNSYNCED: Final = UnsyncedFileSystem()


def copy_directory(directory: LogDirectory, target: str) -> None:
    """Copy all logs to `target`, which does not exist yet. On the thread that the logs belong to, in one go."""
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
    """Bring a copy into the folder `target`, to be used there. The copy stays as it is."""
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
    with suppress(OSError):  # a file system without links
        os.link(source, target)
        return
    _copy(source, target)


def _copy(source: str, target: str) -> None:
    shutil.copyfile(source, target)
