"""Checks a partition's folder: its segments in order, its snapshots, and its leader epochs."""

import os
from bisect import bisect_right
from typing import NamedTuple

from barnabas.protocol.records.batch import BatchHeader
from barnabas.storage.check.problem import Problem
from barnabas.storage.check.segment import SegmentCheck
from barnabas.storage.checkpoints import EpochEntry, read_epochs
from barnabas.storage.errors import CorruptFile
from barnabas.storage.file_names import LOG_SUFFIX, SNAPSHOT_SUFFIX, SWAP, offset_file, parse_offset_file
from barnabas.storage.leader_epochs import LeaderEpochs
from barnabas.storage.producer_snapshot import SnapshotEntry, decode_snapshot
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.properties import read_topic_id


class CheckedPartition(NamedTuple):
    problems: list[Problem]
    end_offset: int


def check_partition(folder: str) -> list[Problem]:
    """The problems of a partition that may be in use, or was in use when the process (not the machine) crashed."""
    return PartitionCheck(folder).run().problems


class PartitionCheck:
    def __init__(
        self,
        folder: str,
        *,
        stopped_in_order: bool = False,
        recovery_point: int | None = None,
        deep: bool = False,
        may_have_gaps: bool = True,
    ) -> None:
        """`recovery_point`: the next start checks everything from there on. None: it checks nothing.

        After a clean shutdown, the indexes of the active segment are complete too. Only compaction leaves gaps between
        the offsets of a log.
        """
        self._may_have_gaps = may_have_gaps
        self._folder = folder
        self._stopped_in_order = stopped_in_order
        self._recovery_point = recovery_point
        self._deep = deep
        self._problems: list[Problem] = []
        self._snapshots: dict[int, list[SnapshotEntry]] = {}
        self._epochs: list[EpochEntry] = []

    def run(self) -> CheckedPartition:
        self._check_topic_id()
        self._read_epochs()
        self._read_snapshots()
        segments = self._find_segments()
        first = segments[0].base_offset if segments else 0
        state = ProducerState.of_snapshot(self._snapshots.get(first, []))
        next_offset = first
        for number, segment in enumerate(segments):
            is_last = number == len(segments) - 1
            next_offset = self._check_segment(segment, next_offset, state, is_last=is_last)
            if not is_last and next_offset > segments[number + 1].base_offset:
                following = segments[number + 1]
                self._report(following.path, None, f"begins at offset {following.base_offset}, before {next_offset}")
            if self._stopped_in_order or not is_last:
                end = next_offset if is_last else segments[number + 1].base_offset
                self._check_snapshot(end, state)
        if self._epochs and self._epochs[-1].start_offset > next_offset:
            epoch, start_offset = self._epochs[-1]
            message = f"epoch {epoch} begins at offset {start_offset}, but the log ends at {next_offset}"
            self._report(LeaderEpochs.path_in(self._folder), None, message)
        return CheckedPartition(self._problems, next_offset)

    # -- the folder

    def _check_topic_id(self) -> None:
        try:
            read_topic_id(self._folder)
        except CorruptFile as error:
            self._report_file(error)

    def _find_segments(self) -> list[SegmentCheck]:
        """The segments that the next start would use. Those that a finished compaction replaces are left out."""
        found: dict[str, list[int]] = {LOG_SUFFIX: [], LOG_SUFFIX + SWAP: []}
        for name in os.listdir(self._folder):
            parsed = parse_offset_file(name)
            if parsed is not None and parsed[1] in found:
                found[parsed[1]].append(parsed[0])
        swaps = [self._segment(base_offset, SWAP) for base_offset in found[LOG_SUFFIX + SWAP]]
        replaced = [range(swap.base_offset, self._end_offset(swap.base_offset)) for swap in swaps]
        segments = [
            self._segment(base_offset, "")
            for base_offset in found[LOG_SUFFIX]
            if not any(base_offset in offsets for offsets in replaced)
        ]
        return sorted(segments + swaps, key=lambda segment: segment.base_offset)

    def _segment(self, base_offset: int, suffix: str) -> SegmentCheck:
        return SegmentCheck(self._folder, base_offset, suffix, deep=self._deep)

    def _end_offset(self, base_offset: int) -> int:
        """The end offset of a compacted segment that is not in its place yet."""
        end_offset = base_offset + 1
        for header in self._segment(base_offset, SWAP).walk(base_offset, ProducerState()):
            end_offset = header.next_offset
        return end_offset

    # -- segments

    def _check_segment(self, segment: SegmentCheck, min_offset: int, state: ProducerState, *, is_last: bool) -> int:
        next_offset = max(min_offset, segment.base_offset)
        wrong_epoch = False
        if segment.base_offset > min_offset:
            self._report_gap(segment.path, min_offset, segment.base_offset)
        for header in segment.walk(next_offset, state):
            if header.base_offset > next_offset:
                self._report_gap(segment.path, next_offset, header.base_offset)
            next_offset = header.next_offset
            if not wrong_epoch and not self._has_right_epoch(header):
                wrong_epoch = True
                message = f"the batch at offset {header.base_offset} has epoch {header.partition_leader_epoch}"
                self._report(LeaderEpochs.path_in(self._folder), None, f"{message}, but the file has another one")
        if not self._is_doubtful(next_offset, is_last):
            segment.check_indexes(complete=segment.is_whole and (self._stopped_in_order or not is_last))
        self._problems += segment.problems
        return next_offset

    def _report_gap(self, path: str, end: int, start: int) -> None:
        if not self._may_have_gaps:
            self._report(path, None, f"offset {start} follows offset {end - 1}; the offsets between them are missing")

    def _is_doubtful(self, end_offset: int, is_last: bool) -> bool:
        """Whether the next start will check the segment."""
        return self._recovery_point is not None and (is_last or end_offset > self._recovery_point)

    # -- epochs

    def _read_epochs(self) -> None:
        path = LeaderEpochs.path_in(self._folder)
        try:
            self._epochs = read_epochs(path)
        except CorruptFile as error:
            self._report_file(error)

    def _has_right_epoch(self, header: BatchHeader) -> bool:
        after = bisect_right(self._epochs, header.base_offset, key=lambda entry: entry.start_offset)
        # Records before the first entry were deleted, or their epochs are unknown.
        if after == 0 or self._is_doubtful(header.next_offset, is_last=False):
            return True
        return self._epochs[after - 1].epoch == header.partition_leader_epoch

    # -- snapshots

    def _read_snapshots(self) -> None:
        for name in sorted(os.listdir(self._folder)):
            parsed = parse_offset_file(name)
            if parsed is None or parsed[1] != SNAPSHOT_SUFFIX:
                continue
            path = os.path.join(self._folder, name)
            try:
                with open(path, "rb") as file:
                    self._snapshots[parsed[0]] = decode_snapshot(file.read())
            except CorruptFile as error:
                if not self._is_doubtful(parsed[0], is_last=False):
                    self._report(path, None, str(error))
                continue
            for entry in self._snapshots[parsed[0]]:
                if entry.last_offset >= parsed[0]:
                    message = f"producer {entry.producer_id} has last offset {entry.last_offset}"
                    self._report(path, None, f"{message}, which is after the snapshot")

    def _check_snapshot(self, offset: int, state: ProducerState) -> None:
        """Compare the snapshot at this offset, if there is one, with the log up to there.

        It may have more producers, because their records were deleted, or fewer, because producers expire. For the same
        producer it may have a later batch, which compaction removed, but not an earlier one.
        """
        known = state.producers
        for entry in self._snapshots.get(offset, []):
            producer = known.get(entry.producer_id)
            if producer is None or not producer.batches or self._is_doubtful(offset, is_last=False):
                continue
            last_offset = producer.batches[-1].last_offset
            if entry.producer_epoch < producer.producer_epoch or entry.last_offset < last_offset:
                self._report(
                    offset_file(self._folder, offset, SNAPSHOT_SUFFIX),
                    None,
                    f"producer {entry.producer_id} had epoch {producer.producer_epoch} and offset {last_offset}, "
                    f"not {entry.producer_epoch} and {entry.last_offset}",
                )

    def _report(self, path: str, position: int | None, message: str) -> None:
        self._problems.append(Problem(path, position, message))

    def _report_file(self, error: CorruptFile) -> None:
        """Report an error whose message starts with the file's path."""
        path, _, message = str(error).partition(": ")
        self._report(path, None, message)
