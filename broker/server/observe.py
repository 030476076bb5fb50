"""The seam for observers of requests: the journal, faults, strict mode (broker.testing).

`install` makes the dispatcher rebuild its routes so that they pass through the observer. Without an observer, this
module is not on the path of a request and costs nothing.

    dispatch -> ObservedRoute.handle -> observer.arrived -> Exchange.proceed -> the handler
             <- Exchange.send        <- observer.answered <- Exchange.answer <-

Every step may be taken later: an exchange that waits blocks its connection, as any unanswered request does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.clock import Timer
from barnabas.broker.server.dispatch import Api, Dispatcher, Handled, Handler, Route
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Pause, Request
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.server.connection import Connection


class Observer(Protocol):
    """Called on the loop's thread. Each step continues by a call of the exchange, at once or later."""

    def arrived(self, exchange: Exchange) -> None:
        """A request has been decoded. It continues with `proceed`, or ends with `send` or `disconnect`."""
        ...

    def answered(self, exchange: Exchange, answer: Message | None) -> None:
        """Its handler has an answer, or None where none is due (acks=0). It continues with `send` or `disconnect`."""
        ...

    def abandoned(self, exchange: Exchange, reason: str | None) -> None:
        """Its connection was closed before the answer; `reason` is set if the broker closed it."""
        ...

    def misunderstood(self, connection: Connection, error: ProtocolError) -> None:
        """A frame that is not a request that this broker serves; its connection is about to be closed."""
        ...


class Exchange(Request):
    """The request that a handler gets when it is observed: its answer goes to the observer first.

    The connection's own request stays in line behind it and gets what `send` is given.
    """

    __slots__ = ("_dispatcher", "_handler", "_observer", "_request", "message", "notes")

    def __init__(
        self, request: Request, message: Message, handler: Handler, observer: Observer, dispatcher: Dispatcher
    ) -> None:
        super().__init__(request.connection, request.route, request.correlation_id, request.client_id, request.meter)
        self.message = message
        self.notes: Any = None  # the observer's own
        self._request = request
        self._handler = handler
        self._observer = observer
        self._dispatcher = dispatcher
        request.on_abandon = self._connection_closed

    # --- what the observer does with it ---

    def proceed(self) -> None:
        """Call the handler, unless the connection is closed."""
        if self.connection.closed:
            return
        self._dispatcher.handle(self, self.message, self._handler)

    def send(self, answer: Message | None) -> None:
        self._request.on_abandon = None
        if answer is None:
            self._request.drop_answer()
        else:
            self._request.answer(answer)

    def disconnect(self, reason: str | None) -> None:
        """Close the connection instead of answering; without a reason, nothing is logged."""
        self.connection.close(reason)

    # --- what its handler does with it ---

    def answer(self, message: Message) -> None:
        self.on_abandon = None
        self._observer.answered(self, message)

    def answer_in_pieces(self, message: Message) -> Steps[None]:
        self.answer(message)
        return
        yield

    def drop_answer(self) -> None:
        self.on_abandon = None
        self._observer.answered(self, None)

    def fail(self, reason: str) -> None:
        # The reason is reported here; closing then finds no exchange left.
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
        self.short_way = None  # which observers would not see

    def _observe(self, request: Request, message: Any) -> Handled:
        if request.connection.is_from_broker:  # observers watch only clients
            return self._observed(request, message)
        self._observer.arrived(Exchange(request, message, self._observed, self._observer, self._dispatcher))
        return None


def install(dispatcher: Dispatcher, observer: Observer) -> None:
    """Show `observer` every request from now on."""
    dispatcher.make_routes(partial(_observed_route, observer, dispatcher))
    dispatcher.on_refusal = observer.misunderstood


def uninstall(dispatcher: Dispatcher) -> None:
    """Stop observing new requests; current ones end as they started."""
    dispatcher.make_routes(Route)
    dispatcher.on_refusal = None


def _observed_route(observer: Observer, dispatcher: Dispatcher, api: Api, version: int) -> Route:
    return ObservedRoute(api, version, observer, dispatcher)


def mute(connection: Connection, seconds: float, call_later: Callable[[float, Callable[[], None]], Timer]) -> None:
    """Start nothing more on a connection for a while, as Kafka mutes the channel of a throttled client."""
    pause = Pause(connection)
    connection.requests.append(pause)
    pause.on_abandon = call_later(seconds, pause.end).cancel
