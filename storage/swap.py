"""Swapping a compacted segment into a log.

    .cleaned    its files are written and synced; after a crash they are deleted
    .swap       it will replace its source segments: after a crash, opening the folder deletes those that are left and
                removes this suffix
    .deleted    the old segments; after a crash they are deleted

Renames may reach the disk in any order, so the folder is synced before the old segments are deleted, and again before
the new one gets its final name. Syncing is slow and happens on another thread. Meanwhile the log stays in use.
"""

import contextlib
from collections.abc import Sequence

from barnabas.storage.file_names import CLEANED, SWAP
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.segment import Segment


class PendingSwap:
    """Call `sync` on any thread, then pass the object to `Log.replace_segments`, unless it was cancelled."""

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
        """Delete the compacted segment. After a crash it would replace segments that have changed since."""
        self.cancelled = True
        # The other files mean nothing without the log, so delete it first.
        for path in self.new.drop():
            with contextlib.suppress(FileNotFoundError):
                self._file_system.unlink(path)
        self._file_system.fsync_directory(self.new.folder)
