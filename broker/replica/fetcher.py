"""Following a leader: one connection, one Fetch at a time for all partitions that follow it.

What arrives is appended as it is in the receive buffer, many batches in one write; no record is touched. Each fetch
says how far the follower's log reaches and in which epoch its last batch was written. If the leader's log diverges from
there, the leader says so instead of sending records; the follower truncates its log (replica.truncation) and asks
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from barnabas.broker.clock import Clock
from barnabas.broker.interbroker.channel import Channel, ChannelError
from barnabas.broker.replica.follower_session import FollowerSession, Key, Wanted
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.records.errors import RecordsError
from barnabas.storage.errors import StorageError

log = structlog.get_logger()

FETCH_VERSION: Final = 17
LIST_OFFSETS_VERSION: Final = 8

# How many bytes are appended per turn of the loop. The answer stays where it is until the next request.
_APPENDED_AT_ONCE: Final = 1024 * 1024
_LATEST: Final = -1
_EARLIEST: Final = -2
# The controller has told only one of the two about a new leader epoch so far: that passes within milliseconds. Such a
# partition is tried again after a while that doubles each time, up to `replica.fetch.backoff.ms`.
_PASSING: Final = (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH)
_FIRST_PAUSE_MS: Final = 10
_SESSION_ERRORS: Final = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


class Followed(Protocol):
    """A partition that follows a leader."""

    topic: str
    topic_id: bytes
    index: int
    leader_epoch: int

    @property
    def log_end_offset(self) -> int: ...
    @property
    def last_epoch(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def is_ready(self) -> bool:
        """Whether to fetch more: the next fetch says that everything so far is safe."""

    def append_fetched(self, records: memoryview, high_watermark: int, log_start_offset: int) -> None:
        """Append what the leader sent, which may be nothing, and record how far it is committed there."""

    def truncate_to_leader(self, epoch: int, end_offset: int) -> None:
        """The logs diverge: the leader's `epoch` ends at `end_offset`."""

    def truncate_to(self, offset: int) -> None:
        """The leader's log ends at `offset`."""

    def restart_at(self, offset: int) -> None:
        """Drop all records: the leader's log starts at `offset`, after the end of this one."""


class FetchSettings(Protocol):
    """What a fetcher reads from the broker's settings, afresh each time."""

    @property
    def replica_fetch_max_bytes(self) -> int: ...
    @property
    def replica_fetch_response_max_bytes(self) -> int: ...
    @property
    def replica_fetch_min_bytes(self) -> int: ...
    @property
    def replica_fetch_wait_max_ms(self) -> int: ...
    @property
    def replica_fetch_backoff_ms(self) -> int: ...
    @property
    def replica_socket_timeout_ms(self) -> int: ...


class Fetcher:
    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        leader_id: int,
        channel: Channel,
        settings: FetchSettings,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.leader_id = leader_id
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._channel = channel
        self._settings = settings
        self._clock = clock
        self._loop = loop
        self._partitions: dict[Key, Followed] = {}
        self._paused: dict[Key, float] = {}  # partitions that failed, until when they wait
        self._short_pauses: dict[Key, int] = {}  # how long the last one was, in ms, where it should pass soon
        self._reported: dict[Key, str] = {}  # why partitions cannot follow, as logged
        self._news: dict[str, list[str]] = {}  # partitions by the reason, to be logged together
        self._session = FollowerSession()
        self._task: asyncio.Task[None] | None = None
        self._wake: asyncio.Future[None] | None = None

    @property
    def address(self) -> tuple[str, int]:
        return self._channel.host, self._channel.port

    def follow(self, partition: Followed) -> None:
        key = partition.topic_id, partition.index
        self._partitions[key] = partition
        self._paused.pop(key, None)
        self._short_pauses.pop(key, None)
        if self._task is None:
            self._task = self._loop.create_task(self._run())
        else:
            self.wake()

    def wake(self) -> None:
        """There may be something to fetch for a partition that was left out."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def forget(self, partition: Followed) -> None:
        """Stop following. An answer that is still on its way is not applied."""
        key = partition.topic_id, partition.index
        if self._partitions.get(key) is partition:
            del self._partitions[key]
            self._paused.pop(key, None)
            self._short_pauses.pop(key, None)
            self._reported.pop(key, None)

    @property
    def is_idle(self) -> bool:
        return not self._partitions

    def close(self) -> None:
        self._partitions.clear()
        if self._task is not None:
            self._task.cancel()
        self._channel.close()

    async def _run(self) -> None:
        reported = False
        while True:
            wanted = self._wanted()
            if not wanted:
                self._session.start_anew()
                await self._wait(self._until_next_try() if self._paused else None)
                continue
            try:
                await self._fetch(wanted)
                reported = False
            except ChannelError as error:
                self._session.start_anew()
                if not reported:
                    reported = True
                    log.warning("leader cannot be reached", leader=self.leader_id, error=str(error))
                await self._wait(self._settings.replica_fetch_backoff_ms)
            except Exception as error:  # this is unexpected, but a follower must not stop forever
                self._session.start_anew()
                log.error("following failed", leader=self.leader_id, exc_info=error)
                await self._wait(self._settings.replica_fetch_backoff_ms)

    async def _wait(self, ms: int | None) -> None:
        """Wait for some time, or until there is another partition to follow."""
        wake = self._wake = self._loop.create_future()
        timer = None
        if ms is not None:
            timer = self._clock.call_later(ms / 1000, lambda: None if wake.done() else wake.set_result(None))
        try:
            await wake
        finally:
            self._wake = None
            if timer is not None:
                timer.cancel()

    # --- a fetch ---

    def _wanted(self) -> dict[Key, Wanted]:
        if self._paused:
            now = self._clock.monotonic()
            self._paused = {key: until for key, until in self._paused.items() if until > now}
        max_bytes = self._settings.replica_fetch_max_bytes
        return {
            key: Wanted(
                partition.leader_epoch,
                partition.log_end_offset,
                partition.last_epoch,
                partition.log_start_offset,
                max_bytes,
            )
            for key, partition in self._partitions.items()
            if key not in self._paused and partition.is_ready
        }

    def _until_next_try(self) -> int:
        """Milliseconds until the first of the paused partitions is tried again."""
        return max(1, round(1000 * (min(self._paused.values()) - self._clock.monotonic())))

    async def _fetch(self, wanted: dict[Key, Wanted]) -> None:
        settings = self._settings
        max_wait_ms = settings.replica_fetch_wait_max_ms
        if self._paused:  # their turn comes with the next fetch
            max_wait_ms = min(max_wait_ms, self._until_next_try())
        topics, forgotten = self._session.request(wanted)
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=self._broker_id, replica_epoch=self._broker_epoch()),
            max_wait_ms=max_wait_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=self._session.session_id,
            session_epoch=self._session.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        timeout = settings.replica_socket_timeout_ms + settings.replica_fetch_wait_max_ms
        answer = await self._channel.request(ApiKey.FETCH, request, FETCH_VERSION, FetchResponse, timeout)
        if answer.error_code:
            self._session.start_anew()
            if answer.error_code not in _SESSION_ERRORS:
                raise ChannelError(f"the leader refuses to be followed: {ErrorCode(answer.error_code).name}")
            return
        self._session.answered(answer.session_id)
        try:
            await self._take_all(answer, wanted)
        finally:
            self._report()

    async def _take_all(self, answer: FetchResponse, wanted: dict[Key, Wanted]) -> None:
        out_of_range: list[Followed] = []
        size = 0
        for topic in answer.responses:
            for data in topic.partitions:
                key = topic.topic_id, data.partition_index
                partition = self._partitions.get(key)
                was = wanted.get(key)
                if (
                    partition is None
                    or was is None
                    or partition.leader_epoch != was.leader_epoch
                    or partition.log_end_offset != was.fetch_offset
                ):
                    # It already follows in another epoch, or no longer. A high watermark that is dropped here would
                    # never come again: within a session the leader only sends what it has not sent before.
                    self._session.repeat()
                    continue
                if self._take(key, partition, data) == ErrorCode.OFFSET_OUT_OF_RANGE:
                    out_of_range.append(partition)
                size += len(data.records or b"")  # type: ignore[arg-type]
                if size >= _APPENDED_AT_ONCE:
                    size = 0
                    await asyncio.sleep(0)
        for partition in out_of_range:
            await self._find_place(partition)

    def _take(self, key: Key, partition: Followed, data: PartitionData) -> int:
        if data.error_code:
            if data.error_code in _PASSING:
                self._pause_shortly(key, partition, ErrorCode(data.error_code).name)
            elif data.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
                self._pause(key, partition, ErrorCode(data.error_code).name)
            return data.error_code
        try:
            if data.diverging_epoch is not None:
                partition.truncate_to_leader(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            else:
                records = memoryview(data.records) if data.records else memoryview(b"")  # type: ignore[arg-type]
                partition.append_fetched(records, data.high_watermark, data.log_start_offset)
                if self._short_pauses:
                    self._short_pauses.pop(key, None)
                if self._reported:
                    self._reported.pop(key, None)
        except (StorageError, RecordsError, OSError) as error:
            self._pause(key, partition, str(error))
        except Exception as error:  # this is unexpected; the other partitions continue
            log.error("following failed", partition=f"{partition.topic}-{partition.index}", exc_info=error)
            self._pause(key, partition, f"{type(error).__name__}: {error}")
        return 0

    def _pause_shortly(self, key: Key, partition: Followed, reason: str) -> None:
        """Avoids a line in the log for each of a thousand partitions, unless the problem persists."""
        before = self._short_pauses.get(key)
        pause = self._short_pauses[key] = _FIRST_PAUSE_MS if before is None else 2 * before
        if pause < self._settings.replica_fetch_backoff_ms:
            self._paused[key] = self._clock.monotonic() + pause / 1000
        else:
            self._short_pauses[key] = self._settings.replica_fetch_backoff_ms
            self._pause(key, partition, reason)

    def _pause(self, key: Key, partition: Followed, reason: str) -> None:
        if self._reported.get(key) != reason:
            self._reported[key] = reason
            self._news.setdefault(reason, []).append(f"{partition.topic}-{partition.index}")
        self._paused[key] = self._clock.monotonic() + self._settings.replica_fetch_backoff_ms / 1000

    def _report(self) -> None:
        """Often thousands of partitions have the same problem at the same moment: one line for all of them."""
        news, self._news = self._news, {}
        for reason, names in news.items():
            log.warning(
                "partitions cannot follow their leader",
                leader=self.leader_id,
                reason=reason,
                count=len(names),
                partitions=names[:10],
            )

    # --- a log that ends outside the leader's ---

    async def _find_place(self, partition: Followed) -> None:
        """The leader has no such offset: its log ends before it, or starts after it."""
        key = partition.topic_id, partition.index
        epoch = partition.leader_epoch
        latest = await self._offset(partition, _LATEST)
        earliest = await self._offset(partition, _EARLIEST) if latest is not None else None
        if self._partitions.get(key) is not partition or partition.leader_epoch != epoch:
            return
        if latest is None or earliest is None:
            self._pause(key, partition, "the leader does not say where its log starts and ends")
        elif latest < partition.log_end_offset:
            # After an unclean election. The leader never had what this log has beyond the leader's end.
            partition.truncate_to(latest)
        elif earliest > partition.log_end_offset:
            partition.restart_at(earliest)
        else:  # the leader has that offset by now, or does not know the epoch of what is before it
            self._pause(key, partition, "the leader's log has moved")

    async def _offset(self, partition: Followed, timestamp: int) -> int | None:
        request = ListOffsetsRequest(
            replica_id=self._broker_id,
            topics=[
                ListOffsetsTopic(
                    name=partition.topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=partition.index,
                            current_leader_epoch=partition.leader_epoch,
                            timestamp=timestamp,
                        )
                    ],
                )
            ],
        )
        timeout = self._settings.replica_socket_timeout_ms
        answer = await self._channel.request(
            ApiKey.LIST_OFFSETS, request, LIST_OFFSETS_VERSION, ListOffsetsResponse, timeout
        )
        (found,) = answer.topics[0].partitions
        return None if found.error_code else found.offset
