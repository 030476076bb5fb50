"""What coordinators know about the cluster: who leads which partition."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from barnabas.broker.controller.cluster_image import ClusterChange
from barnabas.broker.controller.images import PartitionImage, TopicImage
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Message

# Has the controller create an internal topic. Also NONE if it already exists.
CreateInternalTopic = Callable[[str], Awaitable[ErrorCode]]


class Cluster(Protocol):
    @property
    def topics(self) -> Mapping[str, TopicImage]: ...

    def topic(self, name: str) -> TopicImage | None: ...

    def partition(self, topic: str, index: int) -> PartitionImage | None: ...

    def subscribe(self, listener: Callable[[ClusterChange], None]) -> Any: ...


class Channel(Protocol):
    """A connection to another broker: see barnabas.broker.interbroker.channel."""

    async def request(self, key: ApiKey, message: Message, version: int, answer: Any, timeout_ms: int) -> Any: ...


class Peers(Protocol):
    def channel(self, broker_id: int) -> Channel | None:
        """The channel to a live broker; None if it is not known where it is."""


# Asks the controller: (API, message, version, type of the answer, timeout). ChannelError if none answers in time.
AskController = Callable[[ApiKey, Message, int, Any, int], Awaitable[Any]]
