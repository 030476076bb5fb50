"""A partition on this broker: its log, its role, what is being appended to it, and who waits for news of it.

What a leader appends is first *written* (and on disk, where `flush.messages` asks for that): its offsets are known,
and acks=1 is answered. Later it is *committed*: every replica in sync has it, the high watermark has passed it, and
acks=all is answered. With one replica both happen at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import structlog

from barnabas.broker.clock import Clock, Timer, elapsed_ms
from barnabas.broker.controller.topic_names import is_internal
from barnabas.broker.replica.commit_waits import CommitWait, CommitWaits, Done
from barnabas.broker.replica.errors import NotLeader
from barnabas.broker.replica.leadership import Leadership
from barnabas.broker.replica.moments import Moments, Repeat, RoleChange
from barnabas.broker.replica.surroundings import Appender, Host, Waiter
from barnabas.broker.replica.traffic import TopicTraffic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import BatchHeader
from barnabas.protocol.records.errors import InvalidRecords
from barnabas.storage.admissions import Admissions
from barnabas.storage.config import MAX_INT64 as NEVER
from barnabas.storage.errors import InvalidProducerEpoch, LogFailure, OutOfOrderSequence, StorageError
from barnabas.storage.flush import PendingFlush
from barnabas.storage.log import Log
from barnabas.storage.producer_state import AppendOrigin
from barnabas.storage.write import AppendResult, Refusal

logger = structlog.get_logger()


_Append = tuple[memoryview, Appender, Any]  # the records, who appends them, and the appender's `place` for them
_Marker = tuple[_Append, int]  # the end of a transaction, and the transaction version that it follows


# What appends cost, in bytes: each batch takes as long as this many bytes more. A turn of the loop may cost MAX_COST.
_BATCH_COST: Final = 16 * 1024
MAX_COST: Final = 8 * 1024 * 1024


# How many readers are woken at once; if there are more, the others are woken in the next turns of the loop.
_TOLD_AT_ONCE: Final = 100


class _Written(NamedTuple):
    """Appends that were written together, how far they reach, and the outcome of each."""

    appends: Sequence[_Append]
    results: Sequence[AppendResult | Refusal]
    end_offset: int
    size: int


_REPEATS: Final[dict[type, str]] = {OutOfOrderSequence: "gap", InvalidProducerEpoch: "fenced"}

NO_LEADER: Final = -1
NO_EPOCH: Final = -1


class Partition:
    """Leads in `leader_epoch` while `leadership` is not None. Otherwise it follows `leader_id`, or has no role (-1)."""

    __slots__ = (
        "_commits",
        "_deletions",
        "_flush_timer",
        "_flushing",
        "_host",
        "_is_due",
        "_own_end",
        "_queued",
        "_queued_markers",
        "_unflushed",
        "admissions",
        "append_waiters",
        "deleted",
        "index",
        "is_internal",
        "leader_epoch",
        "leader_id",
        "leadership",
        "log",
        "topic",
        "topic_id",
        "traffic",
        "waiters",
    )

    def __init__(self, host: Host, topic: str, topic_id: bytes, index: int, log: Log) -> None:
        self._host = host
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.is_internal = is_internal(topic)
        self.log = log
        log.on_disk_failure = self._disk_failed
        log.on_repeat = self._repeated
        self.admissions = log.admissions = Admissions()
        self.leadership: Leadership | None = None
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.deleted = False
        self.traffic = TopicTraffic()
        self.waiters: dict[Waiter, None] = {}  # for what is committed
        self.append_waiters: dict[Waiter, None] = {}  # for what is written: the followers
        self._queued: list[_Append] = []
        self._is_due = False  # whether `append_queued` will be called
        self._queued_markers: list[_Marker] = []
        self._flushing = False
        self._flush_timer: Timer | None = None
        self._commits = CommitWaits()
        self._deletions = CommitWaits()  # of records, which followers have to delete too
        self._unflushed: list[_Written] = []  # written, but to be answered only when they are on disk
        # How far this replica counts for the high watermark: where its log ends, without what is not on disk yet.
        self._own_end = 0

    @property
    def clock(self) -> Clock:
        return self._host.clock

    # --- the role ---

    def lead(
        self, leader_epoch: int, partition_epoch: int = 0, replicas: Sequence[int] = (), isr: Sequence[int] = ()
    ) -> None:
        """Lead in this epoch, or learn about other replicas in it. Without replicas, this broker has the only one.

        Appends that wait for their commit continue to wait if this broker led before: they are in its log.
        """
        broker_id, now_ms = self._host.broker_id, elapsed_ms(self._host.clock)
        replicas = replicas or (broker_id,)
        if self.leadership is not None and leader_epoch == self.leader_epoch:
            self.leadership.update(partition_epoch, replicas, isr or replicas, now_ms)
        else:
            log = self.log
            if leader_epoch > log.leader_epochs.latest_epoch:
                log.assign_leader_epoch(leader_epoch)
            self.leadership = Leadership(
                broker_id, leader_epoch, log.end_offset, partition_epoch, replicas, isr or replicas, now_ms
            )
            self.leader_id = broker_id
            self.leader_epoch = leader_epoch
            self.note_role()
            self.look_again()
        if not self._unflushed:
            self._own_end = self.log.end_offset
        self.advance()

    def follow(self, leader_id: int, leader_epoch: int) -> None:
        """Follow this leader; with -1, nobody for now. Nothing is appended for clients any more."""
        changed = leader_epoch != self.leader_epoch or leader_id != self.leader_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        if changed:
            self.note_role()
        if self.leadership is not None:
            self.leadership = None
            self.log.inspection = None
            self.admissions = self.log.admissions = Admissions()  # transactions continue elsewhere
            self._give_up(NotLeader(f"{self.log.topic_partition} is led by another broker now"))
        self.look_again()

    def note_role(self, cut_from: int | None = None) -> None:
        leadership = self.leadership if self.leader_id == self._host.broker_id else None
        if leadership is not None and len(leadership.replicas) == 1:
            return  # nobody else could lead it
        isr = () if leadership is None else tuple(leadership.isr)
        self.moments.roles.append(
            RoleChange(
                self._host.clock.now_ms(),
                self.topic,
                self.index,
                self.leader_id,
                self.leader_epoch,
                isr,
                self.log.end_offset,
                cut_from,
            )
        )

    def has_enough_replicas(self) -> bool:
        """Whether what is appended with acks=all is safe. No more replicas are required than there are."""
        leadership = self.leadership
        if leadership is None:
            return False
        wanted = self.log.config.min_insync_replicas
        return len(leadership.isr) >= wanted or len(leadership.isr) >= len(leadership.replicas)

    @property
    def is_behind_its_epoch(self) -> bool:
        """Whether this leader does not know yet how much of the log at its election is committed."""
        leadership = self.leadership
        return leadership is not None and leadership.epoch_start_offset > self.log.high_watermark

    def check_leader_epoch(self, epoch: int) -> ErrorCode:
        """The error for a client that expects this leader epoch; -1 stands for no expectation."""
        if epoch in (-1, self.leader_epoch):
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

    # --- appending ---

    def append_soon(self, records: memoryview, appender: Appender, place: Any) -> None:
        """Append with whatever else arrives in this turn of the loop. `records` must stay as they are till then."""
        if not self._is_due:
            self._is_due = True
            self._host.append_soon(self)
        self._queued.append((records, appender, place))

    def append_marker_soon(self, batch: memoryview, transaction_version: int, appender: Appender, place: Any) -> None:
        """Append the end of a transaction, after everything that clients have queued in this turn of the loop.

        What was admitted to the transaction before its end is written before its marker.
        """
        if not self._is_due:
            self._is_due = True
            self._host.append_soon(self)
        self._queued_markers.append(((batch, appender, place), transaction_version))

    def append_queued(self, now_ms: int) -> int:
        """Append what is queued, or as much of it as a turn of the loop allows. Returns what that cost."""
        self._is_due = False
        cost = 0
        appends, self._queued = self._queued, []
        if appends:
            cost = self._append(appends, now_ms, AppendOrigin.CLIENT)
        if self._queued_markers and not self._queued:
            markers, self._queued_markers = self._queued_markers, []
            for version, group in groupby(markers, key=itemgetter(1)):
                cost += self._append([append for append, _ in group], now_ms, AppendOrigin.COORDINATOR, version)
        return cost

    def _append(
        self, appends: Sequence[_Append], now_ms: int, origin: AppendOrigin, transaction_version: int = 0
    ) -> int:
        """Append all of them in one write. Returns what that cost."""
        log = self.log
        if self.leadership is None:
            log.inspection = None
            self._tell(appends, [self._not_leading()] * len(appends))
            return len(appends) * _BATCH_COST
        record_sets = [append[0] for append in appends]
        size = sum(map(len, record_sets))
        cost = size + len(appends) * _BATCH_COST
        if cost > MAX_COST and origin is AppendOrigin.CLIENT:
            count = _affordable(record_sets)
            self._leave(appends[count:])
            self._host.append_soon(self)
            appends, record_sets = appends[:count], record_sets[:count]
            size = sum(map(len, record_sets))
        before = log.end_offset
        try:
            results = log.append(
                record_sets,
                leader_epoch=self.leader_epoch,
                now_ms=now_ms,
                origin=origin,
                transaction_version=transaction_version,
            )
        except Exception as error:  # this is unexpected: these appends fail, and other partitions continue
            self._host.set_aside.add("append", str(log.topic_partition), error)
            self._tell(appends, [StorageError(f"{log.topic_partition}: the append failed")] * len(appends))
            return cost
        if len(results) < len(appends):
            self._leave(appends[len(results) :])
            appends, size = appends[: len(results)], sum(map(len, record_sets[: len(results)]))
            if log.inspection is not None:
                self._host.long_work.add(log.inspection, self._inspected)
            else:  # several segments were rolled, which is enough for this turn
                self._host.append_soon(self)
                cost = MAX_COST
        traffic = self.traffic
        traffic.produces += len(appends)
        traffic.messages_in += log.end_offset - before
        if log.end_offset != before:
            traffic.bytes_in += size
        self._written(_Written(appends, results, log.end_offset, size), now_ms)
        return cost

    def _repeated(self, header: BatchHeader, result: AppendResult | Refusal, now_ms: int) -> None:
        """A producer sent a batch again, left a gap, or is fenced."""
        if isinstance(result, AppendResult):
            kind, words = "duplicate", f"it is in the log already, at offset {result.base_offset}"
        else:
            kind, words = _REPEATS.get(type(result), "state"), str(result)
        self.moments.repeats.append(
            Repeat(
                now_ms,
                self.topic,
                self.index,
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.record_count,
                kind,
                words,
            )
        )

    @property
    def moments(self) -> Moments:
        return self._host.moments

    def _not_leading(self) -> LogFailure:
        name = self.log.topic_partition
        return LogFailure(f"{name} has been deleted") if self.deleted else NotLeader(f"{name} is not led here")

    def _leave(self, appends: Sequence[_Append]) -> None:
        """Put appends back at the head of the queue. The caller makes sure that they are appended later, once."""
        self._is_due = True
        self._queued[:0] = appends

    def _inspected(self, error: Exception | None) -> None:
        """The batch at the head of the queue has been inspected. What is behind it waited, as in Kafka."""
        if error is not None and self.log.inspection is not None:
            logger.error("inspection failed", partition=str(self.log.topic_partition), exc_info=error)
            self.log.inspection.refuse(InvalidRecords(f"the batch could not be inspected: {error}"))
        self._host.append_soon(self)

    def _written(self, written: _Written, now_ms: int) -> None:
        """Count what was written as this replica's own, at once or when it is on disk, as the settings ask."""
        if self.append_waiters:
            self._tell_news(self.append_waiters, written.size)
        log = self.log
        if log.flush_due(now_ms):
            if log.end_offset - log.recovery_point >= log.config.flush_messages:
                self._unflushed.append(written)
                self.flush()
                return
            self.flush()
        elif log.config.flush_ms != NEVER and self._flush_timer is None:
            self._flush_later()
        self._settle(written)

    def append_now(self, records: memoryview, now_ms: int) -> AppendResult | Refusal:
        """Append what a coordinator has decided. `when_committed` says when it is committed."""
        log = self.log
        if self.leadership is None:
            return self._not_leading()
        before = log.end_offset
        (result,) = log.append(
            [records], leader_epoch=self.leader_epoch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
        )
        traffic = self.traffic
        traffic.produces += 1
        traffic.messages_in += log.end_offset - before
        traffic.bytes_in += len(records)
        self._written(_Written((), (), log.end_offset, len(records)), now_ms)
        return result

    def when_committed(self, offset: int, done: Done) -> CommitWait | None:
        """Call back when all below `offset` is committed; with the failure, if this broker cannot find out.

        None if it is already committed.
        """
        if self.log.high_watermark >= offset:
            done(None)
            return None
        if self.leadership is None:
            done(self._not_leading())
            return None
        return self._commits.add(offset, done)

    def _settle(self, written: _Written) -> None:
        """What was written counts from now on, and its appenders are notified."""
        self._own_end = written.end_offset
        self._move_high_watermark(written.size)
        self._tell(written.appends, written.results)
        if self._commits.waits:
            self._commits.tell(self.log.high_watermark)

    def advance(self) -> None:
        """Move the high watermark as far as the replicas allow, after something changed about them."""
        self._move_high_watermark(-1)
        if self._commits.waits:
            self._commits.tell(self.log.high_watermark)

    def _move_high_watermark(self, size: int) -> None:
        """Let consumers see what is committed now: about this many bytes, if that is known (otherwise -1)."""
        leadership = self.leadership
        if leadership is None:
            return
        offset = self._own_end
        if offset <= self.log.high_watermark:
            return  # nothing is committed that this replica does not have
        if leadership.followers:
            host = self._host
            offset = leadership.high_watermark(offset, elapsed_ms(host.clock), host.max_lag_ms, host.is_alive)
            size = -1
        log = self.log
        before = log.high_watermark
        if offset > before:
            log.update_high_watermark(offset)
            if self.waiters:
                self.news(self._size_between(before, offset) if size < 0 else size)

    def _size_between(self, start: int, end: int) -> int:
        """About how many bytes are between two offsets, at least one; exact only within one segment."""
        try:
            found = self.log.read(max(start, self.log.log_start_offset), MAX_COST, upper_bound=end)
        except (StorageError, OSError):
            return 1
        return 1 if found is None else found.size

    def _tell(self, appends: Sequence[_Append], results: Sequence[AppendResult | Refusal]) -> None:
        for (_, appender, place), result in zip(appends, results, strict=True):
            appender.appended(self, place, result)

    def news(self, size: int) -> None:
        """More is committed. With 0, something else happened that is worth another check."""
        self._tell_news(self.waiters, size)

    def look_again(self) -> None:
        """The role has changed: waiting requests may get another answer now."""
        if self.waiters:
            self._tell_news(self.waiters, 0)
        if self.append_waiters:
            self._tell_news(self.append_waiters, 0)

    def _tell_news(self, waiting: dict[Waiter, None], size: int) -> None:
        waiters = list(waiting)
        for waiter in waiters[:_TOLD_AT_ONCE]:
            waiter.on_news(size)
        if len(waiters) > _TOLD_AT_ONCE:
            rest = self._tell_in_turns(waiting, waiters[_TOLD_AT_ONCE:], size)
            self._host.in_turns(f"news of {self.log.topic_partition}", rest)

    def _tell_in_turns(self, waiting: dict[Waiter, None], waiters: Sequence[Waiter], size: int) -> Iterator[None]:
        for waiter in waiters:
            if waiter in waiting:
                waiter.on_news(size)
            yield

    # --- syncing ---

    def flush(self) -> None:
        """Flush the log to disk, off the loop. Appends that must be on disk first are answered when they are."""
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self._flushing or self.deleted:
            return
        try:
            pending = self.log.start_flush()
        except Exception as error:
            self._sync_failed(LogFailure(f"{self.log.topic_partition}: {error}"))
            return
        self._flushing = True
        self._host.worker.run(pending.sync, lambda outcome: self._flushed(pending, outcome))

    def _flush_later(self) -> None:
        self._flush_timer = self._host.clock.call_later(self.log.config.flush_ms / 1000, self.flush)

    def _flushed(self, pending: PendingFlush, outcome: Exception | None) -> None:
        self._flushing = False
        if self.deleted:
            return
        if outcome is not None:
            pending.error = outcome
        log, now_ms = self.log, self._host.clock.now_ms()
        try:
            log.finish_flush(pending, now_ms)
        except LogFailure as failure:
            self._sync_failed(failure)
            return
        # Not up to where the sync came: the log may have been cut and have gone on meanwhile.
        while self._unflushed and self._unflushed[0].end_offset <= log.recovery_point:
            self._settle(self._unflushed.pop(0))
        if self.leadership is None and not self._unflushed:
            self._host.is_on_disk(self)
        # A flush that became due meanwhile was not started: another segment was rolled, or `flush.ms` passed.
        if self._unflushed or log.flush_due(now_ms):
            self.flush()
        elif log.config.flush_ms != NEVER and self._flush_timer is None and log.end_offset > log.recovery_point:
            self._flush_later()

    def _sync_failed(self, failure: LogFailure) -> None:
        if self.log.failed:
            self._host.set_aside.add("log", str(self.log.topic_partition), str(failure))
            self._disk_failed(str(failure))
        else:
            logger.error("syncing failed", partition=str(self.log.topic_partition), error=str(failure))
        self._give_up(failure)

    def _disk_failed(self, reason: str) -> None:
        if self.is_replicated:  # otherwise nobody else could lead
            self._host.disk_failed(reason)

    # --- following ---

    @property
    def waits_for_disk(self) -> bool:
        return bool(self._unflushed)

    def append_fetched(self, records: memoryview, high_watermark: int, log_start_offset: int) -> None:
        """Append what the leader sent, which may be nothing, and record how far it is committed and deleted there."""
        log = self.log
        if records:
            now_ms = self._host.clock.now_ms()
            log.append_as_follower(records, now_ms=now_ms)
            self.traffic.replication_bytes_in += len(records)
            self._written(_Written((), (), log.end_offset, len(records)), now_ms)
        before, offset = log.high_watermark, min(high_watermark, log.end_offset)
        if offset > before:
            log.update_high_watermark(offset)
            if self.waiters:
                self.news(self._size_between(before, offset))
        log_start_offset = min(log_start_offset, log.high_watermark)
        if log_start_offset > log.log_start_offset:
            log.increment_log_start_offset(log_start_offset)

    def log_was_cut(self) -> None:
        """The log was truncated: readers may have been past its new end."""
        self._unflushed = []
        self.look_again()

    # --- being followed ---

    @property
    def is_replicated(self) -> bool:
        """Whether another broker has it too."""
        return self.leader_id != NO_LEADER if self.leadership is None else bool(self.leadership.followers)

    def has_follower(self, broker_id: int) -> bool:
        return self.leadership is not None and broker_id in self.leadership.followers

    def follower_fetched(self, broker_id: int, offset: int, log_start_offset: int, broker_epoch: int) -> ErrorCode:
        """A follower has everything below `offset`. What it has may be committed now."""
        leadership = self.leadership
        follower = None if leadership is None else leadership.followers.get(broker_id)
        if follower is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if broker_epoch != NO_EPOCH and broker_epoch < follower.broker_epoch:  # a request from before it restarted
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        follower.fetched(offset, log_start_offset, self.log.end_offset, broker_epoch, elapsed_ms(self._host.clock))
        self.look_at_followers()
        return ErrorCode.NONE

    def look_at_followers(self) -> None:
        """What is committed, or deleted everywhere, may have changed: a follower has fetched, or is no longer alive."""
        self.advance()
        if self._deletions.waits:
            self._deletions.tell(self.low_watermark())

    def low_watermark(self) -> int:
        """The smallest log start offset of all live replicas: records below are gone everywhere."""
        leadership = self.leadership
        starts = [self.log.log_start_offset]
        if leadership is not None:
            for broker_id, follower in leadership.followers.items():
                if self._host.is_alive(broker_id):
                    starts.append(follower.log_start_offset)
        return min(starts)

    def when_deleted(self, offset: int, done: Done) -> CommitWait | None:
        """Call back when all live replicas have deleted what is below `offset`."""
        if self.low_watermark() >= offset:
            done(None)
            return None
        self._tell_news(self.append_waiters, 0)  # followers learn this from their fetches
        return self._deletions.add(offset, done)

    def _give_up(self, failure: LogFailure) -> None:
        """What is not on disk, or not committed, will not be here: tell everybody who waits for it."""
        unflushed, self._unflushed = self._unflushed, []
        for appends, results, _, _ in unflushed:
            self._tell(appends, [failure if isinstance(result, AppendResult) else result for result in results])
        self._commits.give_up(failure)
        self._deletions.give_up(failure)

    # --- the end ---

    def delete(self) -> None:
        """This partition is deleted. Those who wait for it check again, and find that out."""
        self.deleted = True
        self.leadership = None
        self.leader_id = NO_LEADER
        for kind in "append", "log":
            self._host.set_aside.remove(kind, str(self.log.topic_partition))
        self._give_up(LogFailure(f"{self.log.topic_partition} has been deleted"))
        self.look_again()


def _affordable(record_sets: Sequence[memoryview]) -> int:
    """How many of them, at least one, cost no more than a turn of the loop may."""
    cost = 0
    for count, records in enumerate(record_sets):
        cost += len(records) + _BATCH_COST
        if cost > MAX_COST:
            return max(count, 1)
    return len(record_sets)
