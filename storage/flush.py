"""Work on files that a log hands out to be done on another thread.

Each of these objects holds all that it needs and touches nothing of the log.
"""

import contextlib
from collections.abc import Sequence

from storage.filesystem import FileSystem
from storage.open_files import Handle


class PendingFlush:
    """What must be synced so that the log is on disk up to `end_offset`.

    After `sync`, on whatever thread, it goes back to `Log.finish_flush`, also if it failed.
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
        # How often the log had been truncated.
        self.generation = generation
        self.error: OSError | None = None
        self._file_system = file_system
        self._handles = handles
        # To be synced too, since files in it were created, renamed or deleted.
        self._folders = folders

    def sync(self) -> None:
        try:
            for handle in self._handles:
                handle.fsync()
            for folder in self._folders:
                self._file_system.fsync_directory(folder)
        except OSError as error:
            self.error = error


class PendingDeletion:
    """Files that no longer belong to a log, to be deleted when there is time."""

    def __init__(self, file_system: FileSystem, folder: str, paths: Sequence[str]) -> None:
        self.paths = paths
        self._file_system = file_system
        self._folder = folder

    def run(self) -> None:
        if not self.paths:
            return
        try:
            # Whatever took their place must be there for sure before they go.
            self._file_system.fsync_directory(self._folder)
        except FileNotFoundError:
            return  # the whole folder has been deleted meanwhile
        for path in self.paths:
            with contextlib.suppress(FileNotFoundError):
                self._file_system.unlink(path)
