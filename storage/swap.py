"""A compacted segment on its way into a log.

    .cleaned    its files are written, and synced; after a crash they are deleted
    .swap       it will take the place of the segments it was made of: after a crash, whoever opens the folder deletes
                those that are left of them, and gives it its name
    .deleted    the old segments; after a crash they are deleted

Names may reach the disk in any order, so the folder is synced before the old segments go, and again before the new one
gets its name. Syncing takes long and is done on another thread. Meanwhile the log goes on.
"""

import contextlib
from collections.abc import Sequence

from storage.file_names import CLEANED, SWAP
from storage.filesystem import FileSystem
from storage.segment import Segment


class PendingSwap:
    """After `sync`, on whatever thread, it goes back to `Log.replace_segments`, unless it was cancelled."""

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
