"""A partition that this broker leads: its log, what is being appended to it, and who waits for news of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import structlog

from broker.clock import Clock, Timer
from broker.controller.topic_names import is_internal
from protocol.errors import ErrorCode
from storage.admissions import Admissions
from storage.config import MAX_INT64 as NEVER
from storage.errors import LogFailure
from storage.flush import PendingFlush
from storage.log import Log
from storage.producer_state import AppendOrigin
from storage.write import AppendResult, Refusal

logger = structlog.get_logger()


class Worker(Protocol):
    def run(self, work: Callable[[], Any], done: Callable[[Any], None] | None = None) -> None:
        """Do `work` where it may block, and tell its end on the loop."""


class Host(Protocol):
    """What a partition needs of the broker that has it."""

    clock: Clock

    @property
    def worker(self) -> Worker: ...

    def append_soon(self, partition: Partition) -> None:
        """Have `append_queued` called at the end of this turn of the loop."""


class Waiter(Protocol):
    """Somebody who waits for records."""

    def on_news(self, size: int) -> None:
        """About so many bytes more can be read now; with 0, something else happened that is worth another look."""


class Appender(Protocol):
    """Somebody who appends records."""

    def appended(self, partition: Partition, place: Any, result: AppendResult | Refusal) -> None:
        """The records that were given with `place` are committed, or refused."""


_Append = tuple[memoryview, Appender, Any]  # the records, who appends them, and under which place
_Marker = tuple[_Append, int]  # the end of a transaction, and the transaction version that it follows


class _Written(NamedTuple):
    """Appends that were written together, how far they reach, and what became of each."""

    appends: Sequence[_Append]
    results: Sequence[AppendResult | Refusal]
    end_offset: int
    size: int


class Partition:
    __slots__ = (
        "_commit_waits",
        "_flush_timer",
        "_flushing",
        "_host",
        "_in_sync_replicas",
        "_queued",
        "_queued_markers",
        "_replica_count",
        "_unflushed",
        "admissions",
        "deleted",
        "index",
        "is_internal",
        "leader_epoch",
        "log",
        "topic",
        "topic_id",
        "waiters",
    )

    def __init__(self, host: Host, topic: str, topic_id: bytes, index: int, log: Log) -> None:
        self._host = host
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.is_internal = is_internal(topic)
        self.log = log
        self.admissions = log.admissions = Admissions()
        self.leader_epoch = 0
        self._replica_count = 1
        self._in_sync_replicas = 1
        self.deleted = False
        self.waiters: dict[Waiter, None] = {}
        self._queued: list[_Append] = []
        self._queued_markers: list[_Marker] = []
        self._flushing = False
        self._flush_timer: Timer | None = None
        self._commit_waits: list[tuple[int, Callable[[LogFailure | None], None]]] = []  # in the order of their offsets
        self._unflushed: list[_Written] = []  # written, but to be answered only when they are on disk

    def lead(self, leader_epoch: int, replicas: int, in_sync_replicas: int) -> None:
        """Lead in this epoch. With one replica, all that it has is committed, except what waits to be on disk."""
        if leader_epoch > self.log.leader_epochs.latest_epoch:
            self.log.assign_leader_epoch(leader_epoch)
        self.leader_epoch = leader_epoch
        self._replica_count = replicas
        self._in_sync_replicas = in_sync_replicas
        if not self._unflushed:
            self.log.update_high_watermark(self.log.end_offset)

    def has_enough_replicas(self) -> bool:
        """Whether what is appended with acks=all is safe: more replicas than there are cannot be asked for."""
        return self._in_sync_replicas >= min(self.log.config.min_insync_replicas, self._replica_count)

    def check_leader_epoch(self, epoch: int) -> ErrorCode:
        """What a client gets that believes in this leader epoch; -1 is one that does not care."""
        if epoch in (-1, self.leader_epoch):
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

    # --- appending ---

    def append_soon(self, records: memoryview, appender: Appender, place: Any) -> None:
        """Append with whatever else arrives in this turn of the loop. `records` must stay as they are till then."""
        if not self._queued and not self._queued_markers:
            self._host.append_soon(self)
        self._queued.append((records, appender, place))

    def append_marker_soon(self, batch: memoryview, transaction_version: int, appender: Appender, place: Any) -> None:
        """Append the end of a transaction, behind all that clients have queued in this turn of the loop.

        What was admitted to the transaction before its end is written before its marker: none is left behind it.
        """
        if not self._queued and not self._queued_markers:
            self._host.append_soon(self)
        self._queued_markers.append(((batch, appender, place), transaction_version))

    def append_queued(self, now_ms: int) -> None:
        appends, self._queued = self._queued, []
        if appends:
            self._append(appends, now_ms, AppendOrigin.CLIENT)
        if self._queued_markers:
            markers, self._queued_markers = self._queued_markers, []
            for version, group in groupby(markers, key=itemgetter(1)):
                self._append([append for append, _ in group], now_ms, AppendOrigin.COORDINATOR, version)

    def _append(
        self, appends: Sequence[_Append], now_ms: int, origin: AppendOrigin, transaction_version: int = 0
    ) -> None:
        """Append all of them in one write."""
        log = self.log
        if self.deleted:
            self._tell(appends, [LogFailure(f"{log.topic_partition} has been deleted")] * len(appends))
            return
        record_sets = [append[0] for append in appends]
        results = log.append(
            record_sets,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            transaction_version=transaction_version,
        )
        self._written(_Written(appends, results, log.end_offset, sum(map(len, record_sets))), now_ms)

    def _written(self, written: _Written, now_ms: int) -> None:
        """Commit what was written, at once or when it is on disk, as the settings ask."""
        log = self.log
        if log.flush_due(now_ms):
            if log.end_offset - log.recovery_point >= log.config.flush_messages:
                self._unflushed.append(written)
                self.flush()
                return
            self.flush()
        elif log.config.flush_ms != NEVER and self._flush_timer is None:
            self._flush_later()
        self._commit(written)

    def append_now(self, records: memoryview, now_ms: int) -> AppendResult | Refusal:
        """Append what a coordinator has decided. `when_committed` tells when it is."""
        log = self.log
        (result,) = log.append(
            [records], leader_epoch=self.leader_epoch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
        )
        self._written(_Written((), (), log.end_offset, len(records)), now_ms)
        return result

    def when_committed(self, offset: int, done: Callable[[LogFailure | None], None]) -> None:
        """Call back when all below `offset` is committed; with the failure, if it cannot be."""
        if self.log.high_watermark >= offset:
            done(None)
        else:
            self._commit_waits.append((offset, done))

    def _commit(self, written: _Written) -> None:
        """Let consumers see what was appended, and tell those who appended it."""
        if written.end_offset > self.log.high_watermark:
            self.log.update_high_watermark(written.end_offset)
            if self.waiters:
                self.news(written.size)
        self._tell(written.appends, written.results)
        while self._commit_waits and self._commit_waits[0][0] <= self.log.high_watermark:
            self._commit_waits.pop(0)[1](None)

    def _tell(self, appends: Sequence[_Append], results: Sequence[AppendResult | Refusal]) -> None:
        for (_, appender, place), result in zip(appends, results, strict=True):
            appender.appended(self, place, result)

    def news(self, size: int) -> None:
        for waiter in list(self.waiters):
            waiter.on_news(size)

    # --- syncing ---

    def flush(self) -> None:
        """Bring the log to disk, off the loop. Appends that must be on disk first are answered when they are."""
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self._flushing or self.deleted:
            return
        try:
            pending = self.log.start_flush()
        except OSError as error:
            self._sync_failed(LogFailure(f"{self.log.topic_partition}: {error}"))
            return
        self._flushing = True
        self._host.worker.run(pending.sync, lambda _: self._flushed(pending))

    def _flush_later(self) -> None:
        self._flush_timer = self._host.clock.call_later(self.log.config.flush_ms / 1000, self.flush)

    def _flushed(self, pending: PendingFlush) -> None:
        self._flushing = False
        if self.deleted:
            return
        log, now_ms = self.log, self._host.clock.now_ms()
        try:
            log.finish_flush(pending, now_ms)
        except LogFailure as failure:
            self._sync_failed(failure)
            return
        while self._unflushed and self._unflushed[0].end_offset <= pending.end_offset:
            self._commit(self._unflushed.pop(0))
        # Whoever asked for a flush meanwhile was not heard: one segment more was rolled, or `flush.ms` were over.
        if self._unflushed or log.flush_due(now_ms):
            self.flush()
        elif log.config.flush_ms != NEVER and self._flush_timer is None and log.end_offset > log.recovery_point:
            self._flush_later()

    def _sync_failed(self, failure: LogFailure) -> None:
        logger.error("syncing failed", partition=str(self.log.topic_partition), error=str(failure))
        self._give_up(failure)

    def _give_up(self, failure: LogFailure) -> None:
        """What is not on disk yet will never be: tell all who wait for it."""
        unflushed, self._unflushed = self._unflushed, []
        for appends, results, _, _ in unflushed:
            self._tell(appends, [failure if isinstance(result, AppendResult) else result for result in results])
        waits, self._commit_waits = self._commit_waits, []
        for _, done in waits:
            done(failure)

    # --- the end ---

    def delete(self) -> None:
        """This partition is no more. Whoever waits for it takes another look, and finds that."""
        self.deleted = True
        self._give_up(LogFailure(f"{self.log.topic_partition} has been deleted"))
        self.news(0)
