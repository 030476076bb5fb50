"""Counts requests and the errors in their answers, and times some requests, once metrics are wanted. Before that, none
of this is on their path.

`RequestCounts.attach` puts a counter in front of the handler of every API. Of the requests of a version, every eighth
is timed, from its handler's call to its answer. Those that take a shortcut (broker.server.dispatch.ShortWay) are timed
more rarely, since a request that is timed takes the general path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.server.dispatch import Api, Dispatcher, Handled, Handler, Route, ShortWay
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.api import ApiKey
from barnabas.protocol.error_counts import ErrorCounts
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.server.connection import Connection

_TIMED: Final = 8
_TIMED_OF_SHORT_WAY: Final = 64
# How many of the latest times are kept per API.
_REMEMBERED: Final = 1024


class ApiCounts:
    """The requests of one API: how many in each version, how long the latest ones took, in seconds, and the errors in
    their answers, by code."""

    def __init__(self, key: ApiKey) -> None:
        self.name = key.api_name
        self.by_version: dict[int, int] = {}
        self.times: deque[float] = deque(maxlen=_REMEMBERED)
        self.errors: ErrorCounts = {}

    @property
    def total(self) -> int:
        return sum(self.by_version.values())

    def took(self, seconds: float) -> None:
        self.times.append(seconds)


class RequestCounts:
    """The counts of one broker, for as long as its process lives."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.apis: dict[ApiKey, ApiCounts] = {}
        self._now = now

    def attach(self, dispatcher: Dispatcher) -> None:
        dispatcher.replace_apis(lambda api: self._counted(api, dispatcher))

    def _counted(self, api: Api, dispatcher: Dispatcher) -> Api:
        counts = self.apis.setdefault(api.key, ApiCounts(api.key))
        short_way = None if api.short_way is None else _CountedShortWay(api.short_way, counts)
        return Api(
            api.key,
            _CountedHandler(api.handle, counts, dispatcher, self._now).handle,
            api.versions,
            api.advertised_from,
            short_way,
            api.between_brokers,
            counts.errors,
        )


class _CountedShortWay(ShortWay):
    def __init__(self, short_way: ShortWay, counts: ApiCounts) -> None:
        self.versions = short_way.versions
        self._begin = short_way.begin
        self._by_version = counts.by_version

    def begin(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        client_id: str | None,
        frame: memoryview,
        pos: int,
    ) -> bool:
        version = route.version
        before = self._by_version.get(version, 0)
        if before % _TIMED_OF_SHORT_WAY == 0:
            return False  # it is counted and timed on the general path
        if not self._begin(connection, route, correlation_id, client_id, frame, pos):
            return False
        self._by_version[version] = before + 1
        return True


class _CountedHandler:
    def __init__(self, handler: Handler, counts: ApiCounts, dispatcher: Dispatcher, now: Callable[[], float]) -> None:
        self._handler = handler
        self._counts = counts
        self._dispatcher = dispatcher
        self._now = now

    def handle(self, request: Request, message: Any) -> Handled:
        counts, version = self._counts, request.version
        before = counts.by_version.get(version, 0)
        counts.by_version[version] = before + 1
        if before % _TIMED or request.meter is not None:
            return self._handler(request, message)
        started = self._now()
        self._dispatcher.handle(
            _TimedRequest(request, lambda: counts.took(self._now() - started)), message, self._handler
        )
        return None


class _TimedRequest(Request):
    """The request that a handler gets when it is timed. The connection's own stays in line and gets the answer."""

    __slots__ = ("_is_over", "_request")

    def __init__(self, request: Request, is_over: Callable[[], None]) -> None:
        super().__init__(request.connection, request.route, request.correlation_id, request.client_id)
        self._request = request
        self._is_over = is_over
        request.on_abandon = self._connection_closed

    def answer(self, message: Message) -> None:
        self._is_over()
        self._request.answer(message)

    def answer_in_pieces(self, message: Message) -> Steps[None]:
        self._is_over()
        return self._request.answer_in_pieces(message)

    def drop_answer(self) -> None:
        self._is_over()
        self._request.drop_answer()

    def fail(self, reason: str) -> None:
        self._request.fail(reason)

    def _connection_closed(self) -> None:
        if self.on_abandon is not None:
            self.on_abandon()
