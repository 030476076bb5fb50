"""A partition that follows its leader in one leader epoch: what a fetcher asks of it."""

from __future__ import annotations

from typing import Protocol

import structlog

from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.truncation import truncation_offset
from barnabas.broker.replica.worker import Worker
from barnabas.protocol.records.batch import validate_batch
from barnabas.storage.flush import PendingDeletion
from barnabas.storage.log_directory import LogDirectory

logger = structlog.get_logger()


class Disk(Protocol):
    @property
    def is_failing(self) -> bool:
        """Whether appends fail."""


class Follower:
    """Appends what the leader sends, and truncates what the leader does not have.

    The high watermark comes from the leader, bounded by this log's own end, and only rises: what was committed stays
    so, even if a new leader has yet to find that out.
    """

    __slots__ = (
        "_directory",
        "_disk",
        "_worker",
        "index",
        "leader_epoch",
        "leader_id",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(self, partition: Partition, directory: LogDirectory, worker: Worker, disk: Disk) -> None:
        self.partition = partition
        self.topic = partition.topic
        self.topic_id = partition.topic_id
        self.index = partition.index
        self.leader_id = partition.leader_id
        self.leader_epoch = partition.leader_epoch
        self._directory = directory
        self._worker = worker
        self._disk = disk

    @property
    def log_end_offset(self) -> int:
        return self.partition.log.end_offset

    @property
    def last_epoch(self) -> int:
        return self.partition.log.leader_epochs.latest_epoch

    @property
    def log_start_offset(self) -> int:
        return self.partition.log.log_start_offset

    @property
    def is_ready(self) -> bool:
        """Whether to fetch more. The next fetch tells the leader that everything so far is safe here.

        Where `flush.messages` asks for it, that means on disk.
        """
        return not self.partition.waits_for_disk and not self._disk.is_failing

    def append_fetched(self, records: memoryview, high_watermark: int, log_start_offset: int) -> None:
        """Append what the leader sent, which may be nothing, and record how far it is committed there."""
        log = self.partition.log
        begins_earlier = bool(records) and log.end_offset == log.log_start_offset and self._begin_with(records)
        self.partition.append_fetched(records, high_watermark, log_start_offset)
        if begins_earlier:
            self._worker.run(self._directory.start_checkpoint().write)

    def _begin_with(self, records: memoryview) -> bool:
        """Let an empty log begin where its first batch does: the leader's log may start within that batch.

        It does after the first records of the batch were deleted. The leader's answer says so, which deletes them here.
        Returns whether the log begins earlier now, so that its start has to be written again.
        """
        log = self.partition.log
        header = validate_batch(records)
        if not header.base_offset < log.end_offset <= header.last_offset:
            return False
        name, now_ms = log.topic_partition, self.partition.clock.now_ms()
        self._remove(self._directory.truncate_log_fully(name, header.base_offset, now_ms))
        return True

    def truncate_to_leader(self, epoch: int, end_offset: int) -> None:
        """The logs diverge: the leader's `epoch` ends at `end_offset`."""
        log = self.partition.log
        self.truncate_to(truncation_offset(log.leader_epochs, log.end_offset, epoch, end_offset))

    def truncate_to(self, offset: int) -> None:
        """The leader has nothing from `offset` on that this log has."""
        log = self.partition.log
        how = logger.warning if offset < log.high_watermark else logger.info
        how(
            "log truncated to its leader's",
            partition=str(log.topic_partition),
            offset=offset,
            end_offset=log.end_offset,
            high_watermark=log.high_watermark,
        )
        now_ms, cut_from = self.partition.clock.now_ms(), log.end_offset
        self._remove(self._directory.truncate_log(log.topic_partition, offset, now_ms))
        if cut_from > offset:
            self.partition.note_role(cut_from)

    def restart_at(self, offset: int) -> None:
        """Drop all records: the leader's log starts at `offset`, after the end of this one."""
        name = self.partition.log.topic_partition
        logger.warning("log restarted where its leader's starts", partition=str(name), offset=offset)
        self._remove(self._directory.truncate_log_fully(name, offset, self.partition.clock.now_ms()))

    def _remove(self, deletion: PendingDeletion) -> None:
        self.partition.log_was_cut()
        if deletion.paths:
            self._worker.run(deletion.run)
