"""The controller's connections to brokers: each gets its orders one at a time and in order, until it has accepted them.

An order to a broker that does not answer is repeated as long as the broker is registered: it must not miss an order,
because the next one builds on it. A broker that registers again, with a higher broker epoch, gets a new line of orders.
The controller's own broker gets its orders by a direct call of the handler. It also receives them in order, but none
waits until the one before is carried out: ten thousand logs that are being created hold up nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

import structlog

from barnabas.broker.clock import Clock
from barnabas.broker.controller.images import BrokerImage
from barnabas.broker.interbroker.channel import Channel, ChannelError
from barnabas.protocol.api import ApiKey, response_type
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Message

log = structlog.get_logger()

# Versions of Kafka 3.9, which are the last ones that these requests have.
VERSIONS: Final = {
    ApiKey.LEADER_AND_ISR: 7,
    ApiKey.UPDATE_METADATA: 8,
    ApiKey.STOP_REPLICA: 4,
}

_RETRY_MS: Final = 100

ServeLocally = Callable[[ApiKey, Message], Coroutine[Any, Any, Message]]
OpenChannel = Callable[[BrokerImage], Channel]


class _Order(NamedTuple):
    key: ApiKey
    message: Message
    answer: asyncio.Future[Message | None]


class OrderLines:
    """Belongs to one term of a controller: it is created on election and closed on resignation."""

    def __init__(
        self,
        own_id: int,
        serve_locally: ServeLocally,
        open_channel: OpenChannel,
        clock: Clock,
        request_timeout_ms: Callable[[], int],
        deposed: Callable[[], None],
    ) -> None:
        """`deposed` is called when a broker knows a newer controller."""
        self._own_id = own_id
        self._serve_locally = serve_locally
        self._open_channel = open_channel
        self._clock = clock
        self._request_timeout_ms = request_timeout_ms
        self._deposed = deposed
        self._lines: dict[int, _Line] = {}

    def add(self, broker: BrokerImage) -> None:
        """Start a line of orders to a broker that has registered."""
        self.remove(broker.broker_id)
        self._lines[broker.broker_id] = _Line(self, broker)

    def remove(self, broker_id: int) -> None:
        """Drop the orders for a broker that is gone: it will be told everything when it comes back."""
        line = self._lines.pop(broker_id, None)
        if line is not None:
            line.close()

    def close(self) -> None:
        for broker_id in list(self._lines):
            self.remove(broker_id)

    def send(self, broker_id: int, key: ApiKey, message: Message) -> asyncio.Future[Message | None]:
        """Put an order in line. The future has the answer, or None if the broker went away before it gave one."""
        answer: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        line = self._lines.get(broker_id)
        if line is None:
            answer.set_result(None)
        else:
            line.put(_Order(key, message, answer))
        return answer

    @property
    def is_busy(self) -> bool:
        """Whether a broker is accepting orders. One that cannot be reached is not, until the next attempt."""
        return any(line.is_busy for line in self._lines.values())

    async def ask(self, broker: BrokerImage, channel: Channel | None, key: ApiKey, message: Message) -> Message:
        if channel is None:
            return await self._serve_locally(key, message)
        answer: type[Message] = response_type(key)
        return await channel.request(key, message, VERSIONS[key], answer, self._request_timeout_ms())

    def channel_to(self, broker: BrokerImage) -> Channel | None:
        return None if broker.broker_id == self._own_id else self._open_channel(broker)

    def refused(self, broker: BrokerImage, key: ApiKey, error: int) -> None:
        log.warning("order refused", broker=broker.broker_id, api=key.api_name, error=ErrorCode(error).name)
        if error == ErrorCode.STALE_CONTROLLER_EPOCH:
            self._deposed()

    async def pause(self) -> None:
        waited = asyncio.get_running_loop().create_future()
        self._clock.call_later(_RETRY_MS / 1000, lambda: None if waited.done() else waited.set_result(None))
        await waited


class _Line:
    """The orders to one registration of one broker."""

    def __init__(self, channels: OrderLines, broker: BrokerImage) -> None:
        self._channels = channels
        self._broker = broker
        self._channel = channels.channel_to(broker)
        self._orders: deque[_Order] = deque()
        self._task: asyncio.Task[None] | None = None
        self._direct: dict[asyncio.Task[None], _Order] = {}
        self._pausing = False

    @property
    def is_busy(self) -> bool:
        return bool((self._orders and not self._pausing) or self._direct)

    def put(self, order: _Order) -> None:
        if self._channel is None:
            task = asyncio.get_running_loop().create_task(self._carry_out(order))
            self._direct[task] = order
            task.add_done_callback(self._direct.pop)
            return
        self._orders.append(order)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work_off())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._channel is not None:
            self._channel.close()
        orders = [*self._orders, *self._direct.values()]
        self._orders.clear()
        for task in self._direct:
            task.cancel()
        for order in orders:
            if not order.answer.done():
                order.answer.set_result(None)

    async def _work_off(self) -> None:
        unreachable = False
        while self._orders:
            order = self._orders[0]
            try:
                answer = await self._channels.ask(self._broker, self._channel, order.key, order.message)
            except ChannelError as error:
                if not unreachable:
                    unreachable = True
                    log.warning("cannot send orders to broker", broker=self._broker.broker_id, error=str(error))
                self._pausing = True
                await self._channels.pause()
                self._pausing = False
                continue
            unreachable = False
            self._orders.popleft()
            self._answered(order, answer)
        self._task = None

    async def _carry_out(self, order: _Order) -> None:
        try:
            answer: Message | None = await self._channels.ask(self._broker, None, order.key, order.message)
        except Exception:
            # This is unexpected, and a retry would fail in the same way.
            log.exception("an order could not be carried out", broker=self._broker.broker_id, api=order.key.api_name)
            answer = None
        self._answered(order, answer)

    def _answered(self, order: _Order, answer: Message | None) -> None:
        error_code: int = getattr(answer, "error_code", 0)
        if error_code:
            self._channels.refused(self._broker, order.key, error_code)
        if not order.answer.done():
            order.answer.set_result(answer)
