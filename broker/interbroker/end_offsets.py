"""Where partitions end, wherever their leaders are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from barnabas.broker.controller.images import TopicImage
from barnabas.broker.coordinator.cluster import Peers
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.replica.replicas import Replicas
from barnabas.broker.server.pieces import spread
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.topic_partition import TopicPartition

_VERSION: Final = 7
_LATEST: Final = -1
_CONSUMER: Final = -1  # in the place of a replica's id

# For each partition its end, or why that is not known.
Ends = Mapping[TopicPartition, int | ErrorCode]


class Topics(Protocol):
    def topic(self, name: str) -> TopicImage | None: ...


class EndOffsets:
    def __init__(
        self, node_id: int, replicas: Replicas, topics: Topics, peers: Peers, timeout_ms: Callable[[], int]
    ) -> None:
        self._node_id = node_id
        self._replicas = replicas
        self._topics = topics
        self._peers = peers
        self._timeout_ms = timeout_ms

    async def of(self, partitions: Iterable[TopicPartition]) -> Ends:
        """The high watermarks of these partitions. Asks the brokers that lead them, all at the same time."""
        ends: dict[TopicPartition, int | ErrorCode] = {}
        elsewhere: dict[int, list[TopicPartition]] = {}
        async for partition in spread(partitions):
            image = self._topics.topic(partition.topic)
            if image is None or not 0 <= partition.partition < len(image.partitions):
                ends[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            leader = image.partitions[partition.partition].leader_id
            if leader == self._node_id:
                ends[partition] = self._here(partition)
            else:
                elsewhere.setdefault(leader, []).append(partition)
        await asyncio.gather(*(self._ask(leader, asked, ends) for leader, asked in elsewhere.items()))
        return ends

    def _here(self, partition: TopicPartition) -> int | ErrorCode:
        found = self._replicas.find(*partition)
        if found is None or found.leadership is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return found.log.high_watermark

    async def _ask(
        self, broker_id: int, asked: Sequence[TopicPartition], ends: dict[TopicPartition, int | ErrorCode]
    ) -> None:
        ends.update(dict.fromkeys(asked, ErrorCode.LEADER_NOT_AVAILABLE))
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for topic, index in asked:
            topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=index, timestamp=_LATEST))
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=0,
            topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
        )
        channel = self._peers.channel(broker_id)
        if channel is None:
            return
        try:
            response = await channel.request(
                ApiKey.LIST_OFFSETS, request, _VERSION, ListOffsetsResponse, self._timeout_ms()
            )
        except ChannelError:
            return
        for topic_ends in response.topics:
            for each in topic_ends.partitions:
                place = TopicPartition(topic_ends.name, each.partition_index)
                ends[place] = ErrorCode(each.error_code) or each.offset
