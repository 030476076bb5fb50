"""The seam for whoever watches or steers requests: the journal, faults, strict mode (broker.testing).

`install` has the dispatcher make its routes anew, as routes that lead past the observer. Without one, requests meet
nothing of this module: there is no question on their way that could cost anything.

    dispatch -> ObservedRoute.handle -> observer.arrived -> Exchange.proceed -> the handler
             <- Exchange.send        <- observer.answered <- Exchange.answer <-

Every step may be taken later: an exchange that waits holds its connection, as a request under way always does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Protocol

from broker.clock import Timer
from broker.server.dispatch import Api, Dispatcher, Handler, Route
from broker.server.request import Pause, Request
from protocol.errors import ProtocolError
from protocol.schema import Message

if TYPE_CHECKING:
    from broker.server.connection import Connection


class Observer(Protocol):
    """Called on the loop's thread. Each step is passed on by a call of the exchange, at once or later."""

    def arrived(self, exchange: Exchange) -> None:
        """A request has been decoded. It goes on by `proceed`, or ends by `send` or `disconnect`."""
        ...

    def answered(self, exchange: Exchange, answer: Message | None) -> None:
        """Its handler has an answer, or None where none is due (acks=0). It goes on by `send` or `disconnect`."""
        ...

    def abandoned(self, exchange: Exchange, reason: str | None) -> None:
        """Its connection went away before the answer could; `reason` is the broker's, if the broker closed it."""
        ...

    def misunderstood(self, connection: Connection, error: ProtocolError) -> None:
        """A frame that was no request that this broker serves; its connection is about to be closed."""
        ...


class Exchange(Request):
    """What a handler gets for a request that is observed: its answer goes to the observer first.

    The request that the connection knows stays in line behind it, and gets what `send` is given.
    """

    __slots__ = ("_dispatcher", "_handle", "_observer", "_request", "handled", "message", "notes")

    def __init__(
        self, request: Request, message: Message, handle: Handler, observer: Observer, dispatcher: Dispatcher
    ) -> None:
        super().__init__(request.connection, request.route, request.correlation_id, request.client_id)
        self.message = message
        self.handled = False  # whether the handler was called
        self.notes: Any = None  # the observer's own
        self._request = request
        self._handle = handle
        self._observer = observer
        self._dispatcher = dispatcher
        request.on_abandon = self._connection_closed

    # --- what the observer does with it ---

    def proceed(self) -> None:
        """Call the handler, unless the connection has gone."""
        if self.connection.closed:
            return
        self.handled = True
        try:
            answer = self._handle(self, self.message)
        except Exception:
            self.failed()
            return
        if answer is None:
            return
        if isinstance(answer, CoroutineType):
            self._dispatcher.run(self, answer)
        else:
            self.answer(answer)  # type: ignore[arg-type]

    def send(self, answer: Message | None) -> None:
        self._request.on_abandon = None
        if answer is None:
            self._request.drop_answer()
        else:
            self._request.answer(answer)

    def disconnect(self, reason: str | None) -> None:
        """Close the connection instead of an answer; without a reason, the log has nothing on it."""
        self.connection.close(reason)

    # --- what its handler does with it ---

    def answer(self, message: Message) -> None:
        self.on_abandon = None
        self._observer.answered(self, message)

    def drop_answer(self) -> None:
        self.on_abandon = None
        self._observer.answered(self, None)

    def fail(self, reason: str) -> None:
        # The reason is told here; closing then finds nobody left to tell.
        self._request.on_abandon = None
        on_abandon, self.on_abandon = self.on_abandon, None
        self._observer.abandoned(self, reason)
        self._request.fail(reason)
        if on_abandon is not None:
            on_abandon()

    def _connection_closed(self) -> None:
        if self.on_abandon is not None:
            self.on_abandon()
        self._observer.abandoned(self, None)


class ObservedRoute(Route):
    __slots__ = ("_dispatcher", "_observed", "_observer")

    def __init__(self, api: Api, version: int, observer: Observer, dispatcher: Dispatcher) -> None:
        super().__init__(api, version)
        self._observed = api.handle
        self._observer = observer
        self._dispatcher = dispatcher
        self.handle = self._observe
        self.short_way = None  # which no observer would see

    def _observe(self, request: Request, message: Any) -> None:
        self._observer.arrived(Exchange(request, message, self._observed, self._observer, self._dispatcher))


def install(dispatcher: Dispatcher, observer: Observer) -> None:
    """Let `observer` see every request that arrives from now on."""
    dispatcher.make_routes(partial(_observed_route, observer, dispatcher))
    dispatcher.on_refusal = observer.misunderstood


def uninstall(dispatcher: Dispatcher) -> None:
    """Requests that arrive from now on are seen by nobody; those under way end as they began."""
    dispatcher.make_routes(Route)
    dispatcher.on_refusal = None


def _observed_route(observer: Observer, dispatcher: Dispatcher, api: Api, version: int) -> Route:
    return ObservedRoute(api, version, observer, dispatcher)


def mute(connection: Connection, seconds: float, call_later: Callable[[float, Callable[[], None]], Timer]) -> None:
    """Begin nothing more on a connection for a while, as Kafka mutes the channel of a throttled client."""
    pause = Pause(connection)
    connection.requests.append(pause)
    pause.on_abandon = call_later(seconds, pause.end).cancel
