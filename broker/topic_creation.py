"""Creating topics that a client or a coordinator needs, through the controller, from any broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from barnabas.broker.clock import Clock
from barnabas.broker.cluster.election import Election
from barnabas.broker.config import BrokerConfig
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.controller.results import TopicResult
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.interbroker.peers import Peers
from barnabas.broker.internal_topics import new_topic
from barnabas.broker.metadata.cache import MetadataCache
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_VERSION: Final = 7
# A created topic is shown to clients in the same answer, if this broker learns about it within that time.
_SECONDS_TO_HEAR: Final = 2.0
_RETRY_SECONDS: Final = 0.05


class TopicCreation:
    def __init__(
        self, config: BrokerConfig, controller: Election, cluster: MetadataCache, peers: Peers, clock: Clock
    ) -> None:
        self._config = config
        self._controller = controller
        self._cluster = cluster
        self._peers = peers
        self._clock = clock

    async def create(self, names: Sequence[str]) -> dict[str, ErrorCode]:
        """Create topics with default settings, or a coordinator's topic with its own. Returns those that failed."""
        topics = [new_topic(name, self._config, len(self._cluster.brokers)) for name in names]
        return {result.name or "": result.error_code for result in await self.create_as_asked(topics)}

    async def create_as_asked(self, topics: Sequence[NewTopic]) -> Sequence[TopicResult]:
        """Create these topics. Returns those that failed."""
        term = self._controller.term
        if term is not None:
            failed = [result for result in await term.create_topics(topics) if result.error_code]
            if all(result.error_code != ErrorCode.NOT_CONTROLLER for result in failed):
                return failed
        failed = [result for result in await self._ask_controller(topics) if result.error_code]
        names = {result.name for result in failed}
        await self._heard_of([topic.name for topic in topics if topic.name not in names])
        return failed

    async def create_internal(self, name: str) -> ErrorCode:
        """Create a coordinator's topic. NONE if it already exists."""
        errors = await self.create([name])
        error = errors.get(name, ErrorCode.NONE)
        if error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        await self._heard_of([name])
        return ErrorCode.NONE

    async def _ask_controller(self, topics: Sequence[NewTopic]) -> Sequence[TopicResult]:
        timeout_ms = self._config.request_timeout_ms
        request = CreateTopicsRequest(topics=[_asked(topic) for topic in topics], timeout_ms=timeout_ms)
        end = self._clock.monotonic() + timeout_ms / 1000
        while (left_ms := int((end - self._clock.monotonic()) * 1000)) > 0:
            try:
                answer = await self._peers.ask_controller(
                    ApiKey.CREATE_TOPICS, request, _VERSION, CreateTopicsResponse, left_ms
                )
            except ChannelError:
                break
            results = [
                TopicResult(each.name, error_code=ErrorCode(each.error_code), error_message=each.error_message)
                for each in answer.topics
            ]
            if all(result.error_code != ErrorCode.NOT_CONTROLLER for result in results):
                return results
            await self._wait(_RETRY_SECONDS)
        # Kafka's answer while a topic is being created: clients ask again.
        return [TopicResult(topic.name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for topic in topics]

    async def _heard_of(self, names: Sequence[str]) -> None:
        """Wait until the controller has told this broker about topics and their leaders."""
        missing = {name for name in names if not self._is_known(name)}
        if not missing:
            return
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def look(change: Any) -> None:
            if all(map(self._is_known, names)) and not heard.done():
                heard.set_result(None)

        def give_up() -> None:
            if not heard.done():
                heard.set_result(None)

        unsubscribe = self._cluster.subscribe(look)
        timer = self._clock.call_later(_SECONDS_TO_HEAR, give_up)
        try:
            await heard
        finally:
            timer.cancel()
            unsubscribe()

    def _is_known(self, name: str) -> bool:
        topic = self._cluster.topic(name)
        return topic is not None and all(partition.leader_id >= 0 for partition in topic.partitions)

    async def _wait(self, seconds: float) -> None:
        waited = asyncio.Event()
        self._clock.call_later(seconds, waited.set)
        await waited.wait()


def _asked(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
