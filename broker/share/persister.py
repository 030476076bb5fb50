"""The state of share partitions, wherever it is kept: asks the share coordinator on this broker or on another one.

A request may name any partitions of one group. Each has its own coordinator, so a request is split by coordinators and
the answers are put together again. While a coordinator moves, the request is repeated for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import structlog

from barnabas.broker.clock import Clock
from barnabas.broker.coordinator.cluster import Cluster, Peers
from barnabas.broker.coordinator.key_hash import partition_of
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.internal_topics import SHARE_GROUP_STATE
from barnabas.broker.server.pieces import spread
from barnabas.broker.share.error_texts import text_of
from barnabas.broker.share.key import SharePartitionKey
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    delete_share_group_state as deleting,
)
from barnabas.protocol.messages import (
    initialize_share_group_state as initializing,
)
from barnabas.protocol.messages import (
    read_share_group_state as reading,
)
from barnabas.protocol.messages import (
    read_share_group_state_summary as summarizing,
)
from barnabas.protocol.messages import (
    write_share_group_state as writing,
)
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from barnabas.protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from barnabas.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from barnabas.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from barnabas.protocol.schema import Message


class ShareState(Protocol):
    """What keeps the state of share partitions. Every partition that is named has a result, with its error.

    `Broker.share_state` is one. Nothing is raised: a coordinator that cannot be reached is an error in each result.
    """

    async def initialize(self, request: InitializeShareGroupStateRequest) -> InitializeShareGroupStateResponse: ...

    async def read(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse: ...

    async def write(self, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse: ...

    async def delete(self, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse: ...

    async def read_summary(self, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse: ...


class LocalCoordinator(ShareState, Protocol):
    """The share coordinator of this broker."""

    async def ensure_topic(self) -> ErrorCode: ...


M = TypeVar("M")

log = structlog.get_logger()

# The coordinator moves, is being loaded, or cannot be reached.
_ASK_AGAIN: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
_FIRST_PAUSE_MS: Final = 50
_LONGEST_PAUSE_MS: Final = 1000
_PATIENCE_MS: Final = 15_000


class StateApi(NamedTuple):
    """How requests of one kind are taken apart and put together."""

    key: ApiKey
    version: int
    request: Any
    response: Any
    topic: Any
    topic_result: Any
    result: Any
    nothing: dict[str, Any]
    """The other fields of a result that has an error."""


_INITIALIZE: Final = StateApi(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    0,
    initializing.InitializeShareGroupStateRequest,
    initializing.InitializeShareGroupStateResponse,
    initializing.InitializeStateData,
    initializing.InitializeStateResult,
    initializing.PartitionResult,
    {},
)
_READ: Final = StateApi(
    ApiKey.READ_SHARE_GROUP_STATE,
    0,
    reading.ReadShareGroupStateRequest,
    reading.ReadShareGroupStateResponse,
    reading.ReadStateData,
    reading.ReadStateResult,
    reading.PartitionResult,
    {"state_epoch": 0, "start_offset": 0, "state_batches": []},
)
_WRITE: Final = StateApi(
    ApiKey.WRITE_SHARE_GROUP_STATE,
    1,
    writing.WriteShareGroupStateRequest,
    writing.WriteShareGroupStateResponse,
    writing.WriteStateData,
    writing.WriteStateResult,
    writing.PartitionResult,
    {},
)
_DELETE: Final = StateApi(
    ApiKey.DELETE_SHARE_GROUP_STATE,
    0,
    deleting.DeleteShareGroupStateRequest,
    deleting.DeleteShareGroupStateResponse,
    deleting.DeleteStateData,
    deleting.DeleteStateResult,
    deleting.PartitionResult,
    {},
)
_SUMMARIZE: Final = StateApi(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    1,
    summarizing.ReadShareGroupStateSummaryRequest,
    summarizing.ReadShareGroupStateSummaryResponse,
    summarizing.ReadStateSummaryData,
    summarizing.ReadStateSummaryResult,
    summarizing.PartitionResult,
    {"state_epoch": 0, "leader_epoch": 0, "start_offset": 0},
)

APIS: Final = (_INITIALIZE, _READ, _WRITE, _DELETE, _SUMMARIZE)


def refused(api: StateApi, error: ErrorCode, request: Any) -> Message:
    """The answer with one error for all partitions."""
    answer: Message = api.response(
        results=[
            api.topic_result(
                topic_id=topic.topic_id, partitions=[_failure(api, data.partition, error) for data in topic.partitions]
            )
            for topic in request.topics
        ]
    )
    return answer


def _failure(api: StateApi, partition: int, error: ErrorCode) -> Any:
    return api.result(partition=partition, error_code=error, error_message=text_of(error), **api.nothing)


# A partition that is asked about: its topic, and what the request says of it.
_Asked = tuple[bytes, Any]


class Persister:
    """`ShareState` by the share coordinators of the cluster."""

    def __init__(
        self,
        node_id: int,
        cluster: Cluster,
        coordinator: LocalCoordinator,
        peers: Peers,
        clock: Clock,
        timeout_ms: Callable[[], int],
    ) -> None:
        self._node_id = node_id
        self._cluster = cluster
        self._coordinator = coordinator
        self._peers = peers
        self._clock = clock
        self._timeout_ms = timeout_ms

    async def initialize(self, request: InitializeShareGroupStateRequest) -> InitializeShareGroupStateResponse:
        return await self._ask(_INITIALIZE, request, self._coordinator.initialize)

    async def read(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
        return await self._ask(_READ, request, self._coordinator.read)

    async def write(self, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
        return await self._ask(_WRITE, request, self._coordinator.write)

    async def delete(self, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
        return await self._ask(_DELETE, request, self._coordinator.delete)

    async def read_summary(self, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse:
        return await self._ask(_SUMMARIZE, request, self._coordinator.read_summary)

    async def _ask(self, api: StateApi, request: Any, ask_here: Callable[[Any], Awaitable[M]]) -> M:
        """Ask for every partition, and again for those whose coordinator was not found, for a while."""
        left: list[_Asked] = [
            (topic.topic_id, data) async for topic in spread(request.topics) async for data in spread(topic.partitions)
        ]
        found: dict[tuple[bytes, int], Any] = {}
        end = self._clock.monotonic() + _PATIENCE_MS / 1000
        pause_ms = _FIRST_PAUSE_MS
        while True:
            await self._ask_once(api, request.group_id, left, ask_here, found)
            left = [
                (topic_id, data)
                async for topic_id, data in spread(left)
                if found[topic_id, data.partition].error_code in _ASK_AGAIN
            ]
            if not left or self._clock.monotonic() >= end:
                break
            await self._pause(pause_ms)
            pause_ms = min(2 * pause_ms, _LONGEST_PAUSE_MS)
        response: M = api.response(
            results=[
                api.topic_result(
                    topic_id=topic.topic_id,
                    partitions=[found[topic.topic_id, data.partition] async for data in spread(topic.partitions)],
                )
                async for topic in spread(request.topics)
            ]
        )
        return response

    async def _ask_once(
        self,
        api: StateApi,
        group_id: str,
        asked: Sequence[_Asked],
        ask_here: Callable[[Any], Awaitable[Any]],
        found: dict[tuple[bytes, int], Any],
    ) -> None:
        if self._cluster.topic(SHARE_GROUP_STATE) is None:
            await self._coordinator.ensure_topic()
        leaders: dict[int, list[_Asked]] = {}
        async for topic_id, data in spread(asked):
            found.pop((topic_id, data.partition), None)
            leader = self._leader(SharePartitionKey(group_id, topic_id, data.partition))
            leaders.setdefault(leader, []).append((topic_id, data))
        await asyncio.gather(
            *(self._ask_broker(api, leader, group_id, some, ask_here, found) for leader, some in leaders.items())
        )

    def _leader(self, key: SharePartitionKey) -> int:
        topic = self._cluster.topic(SHARE_GROUP_STATE)
        if topic is None or not topic.partitions:
            return -1
        return topic.partitions[partition_of(key.coordinator_key, len(topic.partitions))].leader_id

    async def _ask_broker(
        self,
        api: StateApi,
        broker_id: int,
        group_id: str,
        asked: Sequence[_Asked],
        ask_here: Callable[[Any], Awaitable[Any]],
        found: dict[tuple[bytes, int], Any],
    ) -> None:
        """Ask one coordinator. Each partition has a result afterwards."""
        topics: dict[bytes, list[Any]] = {}
        async for topic_id, data in spread(asked):
            topics.setdefault(topic_id, []).append(data)
        request = api.request(
            group_id=group_id,
            topics=[api.topic(topic_id=topic_id, partitions=each) async for topic_id, each in spread(topics.items())],
        )
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        response = None
        try:
            if broker_id == self._node_id:
                response = await ask_here(request)
            elif (channel := self._peers.channel(broker_id)) is not None:
                response = await channel.request(api.key, request, api.version, api.response, self._timeout_ms())
        except ChannelError:
            error = ErrorCode.NETWORK_EXCEPTION
        except Exception:  # nobody foresaw it
            log.exception("a share coordinator could not be asked", broker=broker_id, api=api.key.api_name)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        if response is not None:
            error = ErrorCode.UNKNOWN_SERVER_ERROR  # for partitions that it does not name
            async for topic in spread(response.results):
                async for result in spread(topic.partitions):
                    found[topic.topic_id, result.partition] = result
        async for topic_id, data in spread(asked):
            if (topic_id, data.partition) not in found:
                found[topic_id, data.partition] = _failure(api, data.partition, error)

    async def _pause(self, ms: int) -> None:
        waited = asyncio.Event()
        self._clock.call_later(ms / 1000, waited.set)
        await waited.wait()
