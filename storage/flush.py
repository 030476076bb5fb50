"""File operations that a log lets another thread do.

Each of these objects has everything it needs and does not touch the log.
"""

import contextlib
from collections.abc import Sequence

from barnabas.storage.filesystem import FileSystem
from barnabas.storage.open_files import Handle


class PendingFlush:
    """The files to sync so that the log is on disk up to `end_offset`.

    Call `sync` on any thread, then pass the object to `Log.finish_flush`, even if the sync failed.
    """

    def __init__(
        self,
        file_system: FileSystem,
        handles: Sequence[Handle],
        folders: Sequence[str],
        end_offset: int,
        generation: int,
    ) -> None:
        self.end_offset = end_offset
        # How often the log had been truncated before.
        self.generation = generation
        self.error: Exception | None = None
        self._file_system = file_system
        self._handles = handles
        # Synced too, because files in it were created, renamed or deleted.
        self._folders = folders

    def sync(self) -> None:
        try:
            for handle in self._handles:
                handle.fsync()
            for folder in self._folders:
                self._file_system.fsync_directory(folder)
        except Exception as error:
            self.error = error


class PendingDeletion:
    """Files that no longer belong to a log, to be deleted later."""

    def __init__(self, file_system: FileSystem, folder: str, paths: Sequence[str]) -> None:
        self.paths = paths
        self._file_system = file_system
        self._folder = folder

    def run(self) -> None:
        if not self.paths:
            return
        try:
            # Their replacement must be durable before they are deleted.
            self._file_system.fsync_directory(self._folder)
        except FileNotFoundError:
            return  # the whole folder has been deleted meanwhile
        for path in self.paths:
            with contextlib.suppress(FileNotFoundError):
                self._file_system.unlink(path)
