"""A compacted segment on its way into a log.

Its files were written and synced under names that end in `.cleaned`. From `.swap` on they will take the place of the
segments that they were made of, whatever happens: a crash ends with them in place, for whoever opens the folder
finishes the work. That must be true on disk before the first of the old segments goes, so the folder is synced in
between, which takes long and is done on another thread. Meanwhile the log goes on.
"""

import contextlib
from collections.abc import Sequence

from storage.file_names import CLEANED, SWAP
from storage.filesystem import FileSystem
from storage.segment import Segment


class PendingSwap:
    """After `sync`, on whatever thread, it goes back to `Log.finish_swap`, unless it was cancelled."""

    def __init__(self, file_system: FileSystem, new: Segment, old: Sequence[Segment]) -> None:
        self.new = new
        self.old = old
        self.cancelled = False
        self.error: OSError | None = None
        self._file_system = file_system

    def start(self) -> None:
        self.new.rename(CLEANED, SWAP)

    def sync(self) -> None:
        try:
            self._file_system.fsync_directory(self.new.folder)
        except OSError as error:
            self.error = error

    def cancel(self) -> None:
        """Make the compacted segment go for good: after a crash it would replace what has changed since."""
        self.cancelled = True
        # Without the log the rest means nothing, so it goes first.
        for path in self.new.drop():
            with contextlib.suppress(FileNotFoundError):
                self._file_system.unlink(path)
        self._file_system.fsync_directory(self.new.folder)
