"""The producer snapshots in a partition's folder."""

import contextlib
from bisect import bisect_right, insort
from collections.abc import Collection, Iterable

from barnabas.storage.errors import CorruptFile
from barnabas.storage.file_names import SNAPSHOT_SUFFIX, offset_file
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.producer_snapshot import decode_snapshot, encode_snapshot
from barnabas.storage.producer_state import ProducerState


class Snapshots:
    """There is one for the base offset of every segment except the first, and one for the log's end after a clean stop.

    Only the latest is needed. The older ones are used when the log is truncated, or when the latest is damaged.
    """

    def __init__(self, folder: str, file_system: FileSystem, offsets: Iterable[int]) -> None:
        self._folder = folder
        self._file_system = file_system
        self.offsets = sorted(offsets)
        # The paths of snapshots that are not synced yet.
        self.unsynced: list[str] = []

    def path(self, offset: int) -> str:
        return offset_file(self._folder, offset, SNAPSHOT_SUFFIX)

    def take(self, offset: int, state: ProducerState) -> None:
        """Write the state of the log before `offset`. Not synced: the checksum reveals a torn snapshot."""
        self._file_system.write_file(self.path(offset), encode_snapshot(state.snapshot()), sync=False)
        if offset not in self.offsets:
            insort(self.offsets, offset)
        self.unsynced.append(self.path(offset))

    def load_latest(self, up_to: int) -> tuple[int, ProducerState] | None:
        """The latest undamaged snapshot up to `up_to`, with its offset. Damaged ones are deleted."""
        for offset in reversed(self.offsets[: bisect_right(self.offsets, up_to)]):
            try:
                with open(self.path(offset), "rb") as file:
                    return offset, ProducerState.of_snapshot(decode_snapshot(file.read()))
            except (CorruptFile, FileNotFoundError):
                self._delete(offset)
        return None

    def delete_after(self, offset: int) -> None:
        for later in self.offsets[bisect_right(self.offsets, offset) :]:
            self._delete(later)

    def delete_up_to(self, offset: int) -> None:
        for earlier in self.offsets[: bisect_right(self.offsets, offset)]:
            self._delete(earlier)

    def delete_strays(self, base_offsets: Collection[int]) -> None:
        """Delete leftovers of earlier shutdowns: all but the latest snapshot and those at segments' base offsets."""
        for offset in self.offsets[:-1]:
            if offset not in base_offsets:
                self._delete(offset)

    def delete(self, offset: int) -> None:
        """Delete the snapshot at this offset, if there is one."""
        if offset in self.offsets:
            self._delete(offset)

    def _delete(self, offset: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._file_system.unlink(self.path(offset))
        self.offsets.remove(offset)
        self.unsynced = [path for path in self.unsynced if path != self.path(offset)]
