"""Changes of in-sync replicas, which the controller is asked for in AlterPartition.

Each partition has at most one change in flight (replica.leadership), and the broker one request: everything that is
requested meanwhile goes out together with the next. A change whose answer is lost or transient is requested again as it
is, because it may have been carried out; until the controller has answered, or has sent LeaderAndIsr, both the old and
the new ISR count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple

import structlog

from barnabas.broker.clock import Clock, Every, elapsed_ms
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.replica.leadership import IsrChange, Leadership
from barnabas.broker.replica.partition import Partition
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionRequest,
    PartitionResponse,
    TopicRequest,
)

logger = structlog.get_logger()

VERSION: Final = 3
_BACKOFF_SECONDS: Final = 0.05
_TIMEOUT_MS: Final = 30_000

AskController = Callable[[ApiKey, Any, int, type[Any], int], Awaitable[Any]]
"""Asks the current controller: API, message, version, the answer's type, milliseconds. ChannelError if none answers."""

_Key = tuple[bytes, int]


class _Asked(NamedTuple):
    partition: Partition
    leadership: Leadership
    change: IsrChange


class IsrChanges:
    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        partitions: Iterable[Partition],
        max_lag_ms: Callable[[], int],
        ask_controller: AskController | None,
        is_alive: Callable[[int], bool],
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`partitions` is iterated afresh at every check. Without `ask_controller`, ISRs stay as they are."""
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._partitions = partitions
        self._max_lag_ms = max_lag_ms
        self._ask_controller = ask_controller
        self._is_alive = is_alive
        self._clock = clock
        self._loop = loop
        self._asked: dict[_Key, _Asked] = {}  # to be sent with the next request
        self._task: asyncio.Task[None] | None = None
        self._pausing = False
        self._trouble = ""  # why the last request failed as a whole
        self.expands = self.shrinks = 0  # how many were asked for
        self._check = Every(clock, lambda: max_lag_ms() // 2, self.shrink)

    def start(self) -> None:
        self._check.start()

    def stop(self) -> None:
        self._check.cancel()
        if self._task is not None:
            self._task.cancel()

    @property
    def are_under_way(self) -> bool:
        """Whether a request is in flight, rather than waiting to be repeated."""
        return self._task is not None and not self._pausing

    # --- what to ask for ---

    def expand(self, partition: Partition, broker_id: int) -> None:
        """A follower has fetched: let it join if it has what every member of the ISR must have."""
        leadership = partition.leadership
        if (
            leadership is not None
            and self._ask_controller is not None
            and leadership.may_join(broker_id, partition.log.high_watermark)
            and self._is_alive(broker_id)
        ):
            self.expands += 1
            self._ask(partition, leadership, leadership.ask_to_expand(broker_id))

    def shrink(self) -> None:
        """Wait no longer for followers that have not caught up for too long: ask to remove them from the ISR."""
        if self._ask_controller is None:
            return
        now_ms, max_lag_ms = elapsed_ms(self._clock), self._max_lag_ms()
        for partition in self._partitions:
            leadership = partition.leadership
            if leadership is None or not leadership.followers:
                continue
            lagging = leadership.lagging(partition.log.end_offset, now_ms, max_lag_ms)
            if lagging:
                logger.info("replicas lag behind", partition=str(partition.log.topic_partition), replicas=lagging)
                self.shrinks += 1
                self._ask(partition, leadership, leadership.ask_to_shrink(lagging))
            elif partition.log.high_watermark < partition.log.end_offset:
                # A follower that had caught up, and fetches no more before it could join, no longer counts.
                partition.advance()

    def _ask(self, partition: Partition, leadership: Leadership, change: IsrChange) -> None:
        self._asked[partition.topic_id, partition.index] = _Asked(partition, leadership, change)
        if self._task is None:
            self._task = self._loop.create_task(self._send_all())

    # --- asking ---

    async def _send_all(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, {}
                again = await self._send({key: each for key, each in asked.items() if _still_wanted(each)})
                for key in again:
                    self._asked.setdefault(key, asked[key])
                if again:
                    await self._pause()
        finally:
            self._task = None

    async def _pause(self) -> None:
        over = self._loop.create_future()
        self._clock.call_later(_BACKOFF_SECONDS, lambda: None if over.done() else over.set_result(None))
        self._pausing = True
        await over
        self._pausing = False

    async def _send(self, asked: dict[_Key, _Asked]) -> list[_Key]:
        """Ask for changes together. Returns those to be asked for again."""
        if not asked or self._ask_controller is None:
            return []
        try:
            answer: AlterPartitionResponse = await self._ask_controller(
                ApiKey.ALTER_PARTITION, self._request(asked), VERSION, AlterPartitionResponse, _TIMEOUT_MS
            )
        except ChannelError as failure:
            self._failed("could not reach the controller to change ISRs", str(failure))
            return list(asked)
        if answer.error_code:
            error = ErrorCode(answer.error_code)
            self._failed("the controller did not change ISRs", error.name)
            return [key for key, each in asked.items() if each.leadership.refused(each.change, error)]
        self._trouble = ""
        answers = {
            (topic.topic_id, found.partition_index): found for topic in answer.topics for found in topic.partitions
        }
        refused: dict[str, list[str]] = {}
        for key, found in answers.items():
            if found.error_code and key in asked:
                name = str(asked[key].partition.log.topic_partition)
                refused.setdefault(ErrorCode(found.error_code).name, []).append(name)
        for reason, names in refused.items():
            logger.info("ISRs not changed", error=reason, count=len(names), partitions=names[:10])
        return [key for key, each in asked.items() if self._answered(each, answers.get(key))]

    def _failed(self, what: str, error: str) -> None:
        """Requests are repeated many times per second: the same trouble is logged once."""
        if error != self._trouble:
            logger.warning(what, error=error)
        self._trouble = error

    def _answered(self, asked: _Asked, answer: PartitionResponse | None) -> bool:
        """Returns whether to ask again."""
        partition, leadership, change = asked
        if answer is None:
            return leadership.refused(change, ErrorCode.UNKNOWN_SERVER_ERROR)
        if answer.error_code:
            again = leadership.refused(change, ErrorCode(answer.error_code))
            if partition.leadership is leadership:
                partition.advance()  # a replica that was to join does not count any more
            return again
        took = leadership.answered(change, answer.leader_epoch, answer.partition_epoch, answer.isr)
        if took and partition.leadership is leadership:
            # Fewer replicas may need what is appended now, and another follower may be waiting to join.
            partition.advance()
            for broker_id in list(leadership.followers):
                self.expand(partition, broker_id)
        return False

    def _request(self, asked: dict[_Key, _Asked]) -> AlterPartitionRequest:
        topics: dict[bytes, TopicRequest] = {}
        for (topic_id, index), (_, leadership, change) in asked.items():
            topic = topics.setdefault(topic_id, TopicRequest(topic_id=topic_id, partitions=[]))
            topic.partitions.append(
                PartitionRequest(
                    partition_index=index,
                    leader_epoch=change.leader_epoch,
                    new_isr=list(change.isr),
                    new_isr_with_epochs=[
                        BrokerState(broker_id=broker_id, broker_epoch=self._epoch_of(leadership, broker_id))
                        for broker_id in change.isr
                    ],
                    partition_epoch=change.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )

    def _epoch_of(self, leadership: Leadership, broker_id: int) -> int:
        """The broker epoch in which a replica last fetched: the controller refuses one that has restarted since."""
        if broker_id == self._broker_id:
            return self._broker_epoch()
        follower = leadership.followers.get(broker_id)
        return -1 if follower is None else follower.broker_epoch


def _still_wanted(asked: _Asked) -> bool:
    """Whether the controller has not decided otherwise meanwhile."""
    return asked.partition.leadership is asked.leadership and asked.leadership.asked is asked.change
