"""A share partition on the leader of its partition: gives records to members, and has written what becomes of them.

Its state is loaded from the share coordinator when a member first asks, and dropped when this broker stops leading, or
when the coordinator says that it is out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple

import structlog

from barnabas.broker.clock import Clock, Timer
from barnabas.broker.errors import error_code_of
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.surroundings import Waiter
from barnabas.broker.share.fetched import Located, aborted_batches, batches_of, covering
from barnabas.broker.share.in_flight import (
    Acknowledgement,
    Acquired,
    Acquisition,
    InFlight,
    Transition,
)
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.persister import ShareState
from barnabas.broker.share.settings import EARLIEST, LATEST, RecordSettings
from barnabas.broker.share.state_batches import StateBatch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import read_share_group_state as reading
from barnabas.protocol.messages import write_share_group_state as writing
from barnabas.storage.aborted_lookup import aborted_in_slice
from barnabas.storage.errors import StorageError
from barnabas.storage.segment import FileSlice

log = structlog.get_logger()

_NO_START: Final = -1

# What members are told where the share coordinator says something else.
_TOLD: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
# What is known here is out of date, or belongs to somebody else now.
_DROPPED_FOR: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

Done = Callable[[ErrorCode], None]
# The offset of the first record that is not older than a time; None if there is none.
FindByTime = Callable[[Partition, int], Coroutine[Any, Any, int | None]]


class Given(NamedTuple):
    """What a member gets: a slice of the log, and which of the records in it are its own."""

    records: FileSlice
    acquired: Sequence[Acquired]


class _Write(NamedTuple):
    batches: Sequence[StateBatch]
    transition: Transition | None
    done: Done


class SharePartition:
    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        state: ShareState,
        settings: RecordSettings,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        find_by_time: FindByTime,
        drop: Callable[[SharePartition], None],
    ) -> None:
        """`drop` is called when the state here does not count any more."""
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.error = ErrorCode.NONE  # why it was dropped
        self.in_flight: InFlight | None = None  # while it is being loaded
        self.waiters: dict[Waiter, None] = {}  # for records that come back
        self._state = state
        self._state_epoch = 0
        self._settings = settings
        self._clock = clock
        self._spawn = spawn
        self._find_by_time = find_by_time
        self._drop = drop
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._writes: list[_Write] = []
        self._is_writing = False
        spawn(self._load())

    # --- loading ---

    async def _load(self) -> None:
        data = reading.PartitionData(partition=self.key.partition, leader_epoch=self.leader_epoch)
        topic = reading.ReadStateData(topic_id=self.key.topic_id, partitions=[data])
        request = reading.ReadShareGroupStateRequest(group_id=self.key.group_id, topics=[topic])
        try:
            response = await self._state.read(request)
            result = response.results[0].partitions[0]
            if result.error_code:
                self.end(_told(ErrorCode(result.error_code)))
                return
            start_offset: int | None = result.start_offset
            if start_offset == _NO_START:
                start_offset = await self._first_offset()
            if start_offset is None:
                self.end(ErrorCode.OFFSET_NOT_AVAILABLE)
                return
            batches = [
                StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in result.state_batches
            ]
            loaded = InFlight(start_offset, batches)
        except (StorageError, OSError) as failure:
            self.end(error_code_of(failure))
            return
        except Exception:
            log.exception("a share partition could not be loaded", share_partition=self.key)
            self.end(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        if not self.error:
            self._state_epoch = result.state_epoch
            self.in_flight = loaded
            self.tell()

    async def _first_offset(self) -> int | None:
        """Where a group begins that has read nothing yet; None if no record is as young as it should be."""
        reset = self._settings.offset_reset(self.key.group_id, self._clock.now_ms())
        if reset == EARLIEST:
            return self.partition.log.log_start_offset
        if reset == LATEST:
            return self.partition.log.high_watermark
        return await self._find_by_time(self.partition, int(reset))

    def end(self, error: ErrorCode) -> None:
        """What is known here does not count any more."""
        if self.error:
            return
        self.error = error
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._drop(self)
        self.tell()

    # --- giving records ---

    @property
    def upper_bound(self) -> int:
        """Up to where records may be given."""
        replica_log = self.partition.log
        committed = self._settings.is_committed_only(self.key.group_id)
        return replica_log.last_stable_offset if committed else replica_log.high_watermark

    @property
    def can_acquire(self) -> bool:
        """Whether a member may get records, if there are some."""
        in_flight = self.in_flight
        return in_flight is not None and in_flight.can_acquire(self._settings.limits(self.key.group_id))

    def readable_bytes(self, max_bytes: int) -> int:
        """About how many bytes there are to give, up to a maximum."""
        in_flight = self.in_flight
        if in_flight is None or not self.can_acquire:
            return 0
        records = self._read(in_flight, max_bytes)
        return 0 if records is None else records.size

    def acquire(
        self, member: str, max_records: int, batch_size: int, is_exact: bool, max_bytes: int
    ) -> Given | ErrorCode | None:
        """Give records to a member; None if there are none now."""
        in_flight = self.in_flight
        if in_flight is None:
            return None
        group_id = self.key.group_id
        limits = self._settings.limits(group_id)
        deadline = self._clock.monotonic() + self._settings.lock_duration_ms(group_id) / 1000
        asked = Acquisition(member, max_records, batch_size, is_exact, deadline)
        in_flight.log_starts_at(self.partition.log.log_start_offset)
        try:
            while in_flight.can_acquire(limits):
                offset = in_flight.next_fetch_offset()
                records = self._read(in_flight, max_bytes)
                if records is None:
                    return None
                batches = batches_of(records, max(offset, in_flight.next_new) + max_records - 1)
                acquired = in_flight.acquire(asked, [each.offsets for each in batches], offset, limits)
                acquired = self._committed_only(in_flight, offset, records, batches, acquired)
                if acquired:
                    self._watch(deadline)
                    return Given(covering(records, batches, acquired[0].first, acquired[-1].last), acquired)
                if in_flight.next_fetch_offset() <= offset:
                    return None
        except (StorageError, OSError) as failure:
            return error_code_of(failure)
        return None

    def _read(self, in_flight: InFlight, max_bytes: int) -> FileSlice | None:
        replica_log = self.partition.log
        offset = in_flight.next_fetch_offset()
        if not replica_log.log_start_offset <= offset <= replica_log.end_offset:
            return None
        return replica_log.read(offset, max_bytes, upper_bound=self.upper_bound)

    def _committed_only(
        self,
        in_flight: InFlight,
        offset: int,
        records: FileSlice,
        batches: Sequence[Located],
        acquired: list[Acquired],
    ) -> list[Acquired]:
        """Without the records of aborted transactions, which are done with, if the group wants it so."""
        if not acquired or not self._settings.is_committed_only(self.key.group_id):
            return acquired
        aborted = aborted_in_slice(self.partition.log.segments, offset, records, self.upper_bound)
        for first, last in aborted_batches(records, batches, aborted) if aborted else ():
            acquired = in_flight.take_back(first, last, acquired)
        in_flight.move_start()
        return acquired

    # --- what becomes of them ---

    def acknowledge(self, member: str, acknowledgements: Sequence[Acknowledgement], done: Done) -> None:
        """`done` is called when it is written, or with the reason why it counts for nothing."""
        in_flight = self.in_flight
        if in_flight is None:
            done(self.error or ErrorCode.INVALID_RECORD_STATE)
            return
        group_id = self.key.group_id
        deadline = self._clock.monotonic() + self._settings.lock_duration_ms(group_id) / 1000
        decided = in_flight.acknowledge(member, acknowledgements, self._settings.limits(group_id), deadline)
        if isinstance(decided, ErrorCode):
            done(decided)
        else:
            self._begin(decided, done)

    def release(self, member: str, done: Done) -> None:
        """A member has gone: what it had is for others."""
        in_flight = self.in_flight
        if in_flight is None:
            done(ErrorCode.NONE)
        else:
            self._begin(in_flight.release(member, self._settings.limits(self.key.group_id)), done)

    def _begin(self, transition: Transition, done: Done) -> None:
        if transition.changes or self._is_writing:  # `done` comes after what was written before
            self._write(_Write(transition.batches, transition, done))
        else:
            done(ErrorCode.NONE)

    @property
    def has_more_to_write(self) -> bool:
        """Besides what is just being written."""
        return bool(self._writes)

    def when_written(self, done: Done) -> None:
        """Call back when everything that was decided so far is written."""
        self._write(_Write((), None, done))

    def _write(self, write: _Write) -> None:
        """One write at a time; what comes meanwhile goes together in the next one."""
        self._writes.append(write)
        if not self._is_writing:
            self._is_writing = True
            self._spawn(self._write_all())

    async def _write_all(self) -> None:
        try:
            while self._writes:
                writes, self._writes = self._writes, []
                try:
                    error = await self._write_some(writes)
                except Exception:  # nobody foresaw it: members still have what they had, and others go on
                    log.exception("a share partition could not be written", share_partition=self.key)
                    error = ErrorCode.UNKNOWN_SERVER_ERROR
                self._written(writes, error)
        finally:
            self._is_writing = False

    async def _write_some(self, writes: Sequence[_Write]) -> ErrorCode:
        in_flight = self.in_flight
        if in_flight is None or self.error:
            return self.error or ErrorCode.NOT_LEADER_OR_FOLLOWER
        transitions = [write.transition for write in writes if write.transition is not None]
        data = writing.PartitionData(
            partition=self.key.partition,
            state_epoch=self._state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=in_flight.start_offset,
            delivery_complete_count=in_flight.completed_with(transitions),
            state_batches=[
                writing.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
                for write in writes
                for first, last, state, count in write.batches
            ],
        )
        topic = writing.WriteStateData(topic_id=self.key.topic_id, partitions=[data])
        response = await self._state.write(
            writing.WriteShareGroupStateRequest(group_id=self.key.group_id, topics=[topic])
        )
        return _told(ErrorCode(response.results[0].partitions[0].error_code))

    def _written(self, writes: Sequence[_Write], error: ErrorCode) -> None:
        in_flight = self.in_flight
        for write in writes:
            if in_flight is not None and write.transition is not None:
                if error:
                    in_flight.roll_back(write.transition)
                else:
                    in_flight.complete(write.transition)
            write.done(error)
        if in_flight is not None:
            in_flight.move_start()
        if error in _DROPPED_FOR:
            self.end(error)
        elif not self.error:
            if error:
                self._watch(self._clock.monotonic())  # what ran out meanwhile
            self.tell()

    # --- time ---

    def _watch(self, deadline: float) -> None:
        """Look at what has run out at a time, or before."""
        if self._timer is not None:
            if self._timer_at <= deadline:
                return
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._clock.call_later(max(0.0, deadline - self._clock.monotonic()), self._ran_out)

    def _ran_out(self) -> None:
        self._timer = None
        in_flight = self.in_flight
        if in_flight is None or self.error:
            return
        released = in_flight.expire(self._clock.monotonic(), self._settings.limits(self.key.group_id))
        if released:
            self._write(_Write(released, None, _ignore))
            self.tell()
        deadline = in_flight.next_deadline()
        if deadline is not None:
            self._watch(deadline)

    def tell(self) -> None:
        """There may be records to give, or an error to tell."""
        for waiter in list(self.waiters):
            waiter.on_news(0)


def _told(error: ErrorCode) -> ErrorCode:
    return _TOLD.get(error, ErrorCode.UNKNOWN_SERVER_ERROR) if error else ErrorCode.NONE


def _ignore(error: ErrorCode) -> None:
    pass
