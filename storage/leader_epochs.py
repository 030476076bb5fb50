"""Where each leader epoch began in a partition's log. Replicas use this to find where their logs diverge.

Entries ascend in both epoch and offset. They follow from the batches in the log, which carry their leader's epoch. The
file `leader-epoch-checkpoint` saves reading the log for them.
"""

import os
from bisect import bisect_right

import structlog

from barnabas.storage.checkpoints import LEADER_EPOCH_CHECKPOINT, EpochEntry, format_epochs
from barnabas.storage.filesystem import FileSystem

logger = structlog.get_logger()

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochs:
    def __init__(self, folder: str, file_system: FileSystem, entries: list[EpochEntry]) -> None:
        self.path = self.path_in(folder)
        self.entries = entries
        self._file_system = file_system
        # The path of the file, if it changed since the last sync.
        self.unsynced: list[str] = []

    @staticmethod
    def path_in(folder: str) -> str:
        return os.path.join(folder, LEADER_EPOCH_CHECKPOINT)

    @property
    def latest_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """The batches from `start_offset` on have this epoch. Removes entries that contradict this."""
        if self.entries and epoch == self.latest_epoch and start_offset >= self.entries[-1].start_offset:
            return
        kept = [entry for entry in self.entries if entry.epoch < epoch and entry.start_offset < start_offset]
        self.replace([*kept, EpochEntry(epoch, start_offset)])

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry:
        """The largest known epoch up to this one, and the offset after its last record.

        (-1, -1) if this epoch is not known to have started.
        """
        latest = self.latest_epoch
        if epoch == NO_EPOCH or epoch > latest:
            return EpochEntry(NO_EPOCH, NO_OFFSET)
        if epoch == latest:
            return EpochEntry(epoch, log_end_offset)
        higher = bisect_right(self.entries, epoch, key=lambda entry: entry.epoch)
        return EpochEntry(self.entries[higher - 1].epoch if higher else epoch, self.entries[higher].start_offset)

    def epoch_of(self, offset: int) -> int:
        """The epoch of the batch at this offset."""
        after = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[after - 1].epoch if after else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """The log now ends before `end_offset`."""
        kept = [entry for entry in self.entries if entry.start_offset < end_offset]
        if len(kept) != len(self.entries):
            self._forget_others(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now starts at `start_offset`: the epoch of that offset counts from there."""
        after = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if after:
            kept = [EpochEntry(self.entries[after - 1].epoch, start_offset), *self.entries[after:]]
            if kept != self.entries:
                self._forget_others(kept)

    def clear(self) -> None:
        """The log is empty now."""
        self._forget_others([])

    def _forget_others(self, kept: list[EpochEntry]) -> None:
        """The records are gone, so these entries must go, too, even if a full disk does not take the file.

        Then the next change writes it. Whoever opens the log before that leaves out entries outside of it.
        """
        self.entries = kept
        try:
            self.replace(kept)
        except OSError as error:
            logger.warning("leader epochs could not be written", path=self.path, error=str(error))

    def replace(self, entries: list[EpochEntry]) -> None:
        # Not synced: after a crash of the machine, recovery scans the log and restores the epochs.
        self._file_system.replace_file(self.path, format_epochs(entries), sync=False)
        self.entries = entries
        self.unsynced = [self.path]
