"""How much of their clients' quotas requests use, and how clients that use too much are throttled.

While no client has a quota, none of this is on the path of a request. The request of a client that has one carries a
Meter. When it is answered, the meter records what was used. A client that is over its limit is still answered, and told
for how long it is throttled; for that time nothing more is read from its connection.

The loop's time that a request takes is that of its handler and of encoding its answer. Work that requests share (the
appends of a turn, sending) is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from time import perf_counter
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.broker.clock import Clock
from barnabas.broker.config.values import INT_MAX
from barnabas.broker.quotas.client_quotas import ClientQuotas, QuotasOfClient
from barnabas.broker.quotas.mutations import Admit, Mutations, everything
from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.server.connection import Connection
    from barnabas.broker.server.dispatch import Route
    from barnabas.broker.server.pieces import Steps
    from barnabas.broker.server.request import Request

T = TypeVar("T")

# Requests between brokers, and requests before authentication.
_EXEMPT: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
    }
)
_ADD_PARTITIONS_BY_BROKERS_FROM_VERSION: Final = 4
_PERCENT: Final = 100.0


class Meters:
    """Gives meters to the requests of clients that have quotas."""

    def __init__(self, quotas: ClientQuotas, clock: Clock, is_brokers: Callable[[Connection], bool]) -> None:
        """`is_brokers` says whether only a broker can have opened a connection."""
        self._quotas = quotas
        self._clock = clock
        self._is_brokers = is_brokers

    def begin(self, connection: Connection, route: Route, client_id: str | None, size: int) -> Meter | None:
        """A meter for a request of this many bytes, with its header; None if its client has no quota."""
        quotas = self._quotas.of(connection.principal.name, client_id or "", self._now_ms())
        if quotas is None or route.key in _EXEMPT or self._is_brokers(connection):
            return None
        if route.key is ApiKey.ADD_PARTITIONS_TO_TXN and route.version >= _ADD_PARTITIONS_BY_BROKERS_FROM_VERSION:
            return None
        if connection.authenticator is not None and not connection.authenticator.is_complete:
            return None
        return Meter(quotas, size, self._now_ms, self._clock)

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)


class Meter:
    """What one request uses."""

    __slots__ = ("_clock", "_is_recorded", "_now_ms", "_quotas", "_since", "_size", "_spent", "_throttle_ms", "_topics")

    def __init__(self, quotas: QuotasOfClient, size: int, now_ms: Callable[[], int], clock: Clock) -> None:
        self._quotas = quotas
        self._size = size
        self._now_ms = now_ms
        self._clock = clock
        self._topics: Mutations | None = None
        self._is_recorded = False
        self._throttle_ms = 0
        self._spent = 0.0  # of the loop's time, in seconds
        self._since: float | None = perf_counter()  # while something is done for it

    # --- the loop's time ---

    def resume(self) -> None:
        if self._since is None:
            self._since = perf_counter()

    def pause(self) -> None:
        if self._since is None:
            return
        spent, self._since = perf_counter() - self._since, None
        if not self._is_recorded:
            self._spent += spent
        elif self._quotas.request is not None:
            self._quotas.request.note(spent * _PERCENT, self._now_ms())

    def timed(self, steps: Steps[T]) -> Steps[T]:
        """The same steps, each of which is counted."""
        while True:
            self.resume()
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self.pause()
            try:
                yield
            except GeneratorExit:
                steps.close()
                raise

    async def timed_coroutine(self, handling: Coroutine[Any, Any, T]) -> T:
        return await _timed(self, handling)

    # --- what handlers ask ---

    @property
    def most_fetched(self) -> int:
        """As much as one answer to a Fetch may hold."""
        quota = self._quotas.fetch
        return INT_MAX if quota is None else min(INT_MAX, int(quota.most_at_once))

    def is_over_with(self, size_of_answer: Callable[[], int]) -> bool:
        """Whether a Fetch gets nothing, because its client is throttled. What is not sent does not count."""
        now_ms = self._now_ms()
        size, waits = 0, 0
        if self._quotas.fetch is not None:
            size = size_of_answer()
            waits = self._quotas.fetch.record(size, now_ms)
        self._record(max(waits, self._waits_for_time(now_ms)))
        if self._throttle_ms and self._quotas.fetch is not None:
            self._quotas.fetch.note(-size, now_ms)
        return self._throttle_ms > 0

    def admits(self, is_strict: bool) -> Admit:
        """Which topics a request may create or delete. Where that is not strict, its client is throttled later."""
        if self._quotas.mutation is None:
            return everything
        self._topics = Mutations(self._quotas.mutation, is_strict, self._now_ms)
        return self._topics.admit

    # --- its end ---

    def answering(self, request: Request, message: Message | None) -> None:
        """Record the usage, and throttle a client that used too much. None where no answer is due."""
        if not self._is_recorded:
            now_ms = self._now_ms()
            waits = 0
            if request.api_key is ApiKey.PRODUCE and self._quotas.produce is not None:
                waits = self._quotas.produce.record(self._size, now_ms)
            if request.api_key is ApiKey.SHARE_FETCH and self._quotas.fetch is not None and message is not None:
                # Unlike a Fetch, it gets its records even so: they are locked for this member.
                waits = self._quotas.fetch.record(request.route.size_of_answer(message), now_ms)
            if self._topics is not None:
                waits = self._topics.throttle_ms(now_ms)
            self._record(waits if message is None else max(waits, self._waits_for_time(now_ms)))
        if self._throttle_ms:
            if message is not None and hasattr(message, "throttle_time_ms"):
                message.throttle_time_ms = self._throttle_ms
            request.connection.mute(self._throttle_ms / 1000, self._clock)

    def _waits_for_time(self, now_ms: int) -> int:
        quota = self._quotas.request
        if quota is None:
            return 0
        if self._since is not None:
            now = perf_counter()
            self._spent += now - self._since
            self._since = now
        return quota.record(self._spent * _PERCENT, now_ms)

    def _record(self, waits: int) -> None:
        self._is_recorded = True
        self._throttle_ms = waits


def admitted(request: Request | None, strict_from_version: int) -> Admit:
    """Which topics a request may create or delete by its client's quota."""
    if request is None or request.meter is None:
        return everything
    return request.meter.admits(is_strict=request.version >= strict_from_version)


@coroutine
def _timed(meter: Meter, handling: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Runs a coroutine, and counts each of its steps."""
    step: Callable[[], Any] = partial(handling.send, None)
    while True:
        meter.resume()
        try:
            awaited = step()
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            meter.pause()
        try:
            step = partial(handling.send, (yield awaited))
        except BaseException as error:
            step = partial(handling.throw, error)
