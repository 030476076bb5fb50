"""Requests to other brokers: to a broker by its id, or to the current controller.

A channel answers in order, so a request that waits holds up those behind it. Each purpose has channels of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Protocol, TypeVar

from barnabas.broker.clock import Clock
from barnabas.broker.controller.images import BrokerImage
from barnabas.broker.interbroker.channel import Channel, ChannelError
from barnabas.broker.network import Connector
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Message

R = TypeVar("R", bound=Message)

ServeLocally = Callable[[ApiKey, Message], Coroutine[Any, Any, Message]]
"""Serves a request to this broker itself, as if it had come over the wire."""

# How soon to look for the controller again when there is none, or none that answers.
_RETRY_MS: Final = 50
_NO_EPOCH: Final = -1
_TO_CONTROLLER: Final = "to-controller"
# The receiver is not the controller, or does not know yet that it is.
_ASK_AGAIN: Final = frozenset(
    {ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH, ErrorCode.STALE_CONTROLLER_EPOCH}
)


class Cluster(Protocol):
    """What this broker was told about the others."""

    @property
    def brokers(self) -> Mapping[int, BrokerImage]: ...
    @property
    def controller_id(self) -> int: ...


class Peers:
    def __init__(
        self,
        own_id: int,
        listener: str,
        cluster: Cluster,
        network: Connector,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        serve_locally: ServeLocally,
        broker_epoch: Callable[[], int] = lambda: -1,
    ) -> None:
        """`listener` is the name of the one between brokers. `broker_epoch` is this broker's own, as of now."""
        self._own_id = own_id
        self._listener = listener
        self._cluster = cluster
        self._network = network
        self._clock = clock
        self._loop = loop
        self._serve_locally = serve_locally
        self._broker_epoch = broker_epoch
        self._channels: dict[tuple[int, str], Channel] = {}
        self._pausing = 0

    def for_purpose(self, purpose: str) -> PeersForPurpose:
        return PeersForPurpose(self, purpose)

    def open(self, broker: BrokerImage, purpose: str) -> Channel | None:
        """A new channel, which the caller closes. None if the broker has no listener for brokers."""
        for endpoint in broker.endpoints:
            if endpoint.name == self._listener:
                client_id = f"broker-{self._own_id}-{purpose}"
                return Channel(self._network, self._clock, self._loop, endpoint.host, endpoint.port, client_id)
        return None

    def channel(self, broker_id: int, purpose: str) -> Channel | None:
        """The channel to a live broker for this purpose, shared by all who ask. None if it is not known."""
        key = broker_id, purpose
        channel = self._channels.get(key)
        broker = self._cluster.brokers.get(broker_id)
        if channel is not None:
            address = channel.host, channel.port
            if broker is not None and any((each.host, each.port) == address for each in broker.endpoints):
                return channel
            del self._channels[key]
            channel.close()
        if broker is None:
            return None
        channel = self.open(broker, purpose)
        if channel is not None:
            self._channels[key] = channel
        return channel

    async def ask_controller(
        self, key: ApiKey, message: Message, version: int, response_type: type[R], timeout_ms: int
    ) -> R:
        """The controller's answer. ChannelError if there is no controller that answers within that time.

        The request may have been carried out nevertheless. STALE_BROKER_EPOCH is an answer if this broker has
        registered again since the request was made: a retry would be in vain.
        """
        end = self._clock.monotonic() + timeout_ms / 1000
        reason = "there is no controller"
        while (left_ms := int((end - self._clock.monotonic()) * 1000)) > 0:
            try:
                answer = await self._ask(self._cluster.controller_id, key, message, version, response_type, left_ms)
                error = getattr(answer, "error_code", 0)
                if error not in _ASK_AGAIN or (error == ErrorCode.STALE_BROKER_EPOCH and self._is_outdated(message)):
                    return answer
                reason = "no broker claims to be the controller"
            except ChannelError as error:
                reason = str(error)
            await self._pause(min(_RETRY_MS, left_ms))
        raise ChannelError(f"{key.api_name} to the controller: {reason}")

    def _is_outdated(self, message: Message) -> bool:
        epoch: int = getattr(message, "broker_epoch", _NO_EPOCH)
        return epoch != _NO_EPOCH and epoch != self._broker_epoch()

    async def _ask(
        self, controller_id: int, key: ApiKey, message: Message, version: int, response_type: type[R], timeout_ms: int
    ) -> R:
        if controller_id == self._own_id:
            answer = await self._serve_locally(key, message)
            assert isinstance(answer, response_type)
            return answer
        channel = self.channel(controller_id, _TO_CONTROLLER)
        if channel is None:
            raise ChannelError("there is no controller")
        return await channel.request(key, message, version, response_type, timeout_ms)

    async def _pause(self, ms: int) -> None:
        waited = self._loop.create_future()
        self._clock.call_later(ms / 1000, lambda: None if waited.done() else waited.set_result(None))
        self._pausing += 1
        try:
            await waited
        finally:
            self._pausing -= 1

    @property
    def is_looking_for_controller(self) -> bool:
        """Whether a request waits to be sent to the controller again."""
        return self._pausing > 0

    def cluster_changed(self) -> None:
        """The controller has said who is there. Nobody waits any longer for a broker that is gone, or for a former
        controller: a host that was cut off refuses nothing, and its answer might be waited for until the time-out."""
        controller_id = self._cluster.controller_id
        for (broker_id, purpose), channel in list(self._channels.items()):
            is_former = purpose == _TO_CONTROLLER and broker_id != controller_id
            if broker_id not in self._cluster.brokers or is_former:
                del self._channels[broker_id, purpose]
                channel.close()

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()


class PeersForPurpose:
    """The other brokers, by channels that are used for one purpose only."""

    def __init__(self, peers: Peers, purpose: str) -> None:
        self._peers = peers
        self._purpose = purpose

    def channel(self, broker_id: int) -> Channel | None:
        return self._peers.channel(broker_id, self._purpose)
