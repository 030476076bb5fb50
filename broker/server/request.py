"""A request in progress: what its handler needs to know, and where its answer goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog

from barnabas.broker.security.authorizer import EVERYTHING, Access
from barnabas.broker.server.freeing import let_go_of
from barnabas.broker.server.pieces import Steps
from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.server.connection import Connection, Output
    from barnabas.broker.server.dispatch import Route
    from barnabas.broker.server.metering import Meter

log = structlog.get_logger()


class Request:
    """One frame from a client, until it is answered.

    Its handler answers it once: immediately, by returning the answer, or later through `answer`. `on_abandon`, if the
    handler set it, is called when the connection is closed first; an answer after that goes nowhere.
    """

    __slots__ = ("client_id", "connection", "correlation_id", "meter", "on_abandon", "output", "route", "version")

    def __init__(
        self,
        connection: Connection,
        route: Route,
        correlation_id: int,
        client_id: str | None,
        meter: Meter | None = None,
    ) -> None:
        self.connection = connection
        self.route = route
        self.version = route.version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.meter = meter  # where its client has a quota
        self.output: Output | None = None
        self.on_abandon: Callable[[], None] | None = None

    @property
    def api_key(self) -> ApiKey:
        return self.route.key

    @property
    def access(self) -> Access:
        """What its sender may do."""
        return self.connection.access or EVERYTHING

    def answer(self, message: Message) -> None:
        meter = self.meter
        try:
            if meter is not None:
                meter.answering(self, message)
            self.output = self.route.encode(self.correlation_id, message)
            if meter is not None:
                meter.pause()
        except Exception:
            self.failed()
        else:
            self.connection.answered()

    def answer_in_pieces(self, message: Message) -> Steps[None]:
        """Like `answer`, for an answer that may be long."""
        if self.meter is not None:
            self.meter.answering(self, message)
        long: list[list[Any]] = []
        try:
            self.output = yield from self.route.encode_in_pieces(self.correlation_id, message, long)
        finally:
            for array in long:
                let_go_of(array[:])
        self.connection.answered()

    def drop_answer(self) -> None:
        """This request has no answer, like a Produce with acks=0."""
        if self.meter is not None:
            self.meter.answering(self, None)
        self.output = ()
        self.connection.answered()

    def failed(self) -> None:
        """An unexpected exception: log it, and let it affect only this client."""
        log.exception("request failed", api=self.api_key.api_name, version=self.version)
        self.fail("its request could not be handled")

    def fail(self, reason: str) -> None:
        """Close the connection, as Kafka does where no answer could express the problem."""
        self.connection.close(reason)


class BareMessage(Request):
    """A frame that is not a request: a SASL message in the oldest form. It is answered by a frame of the same kind."""

    __slots__ = ()

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.meter = None
        self.output = None
        self.on_abandon = None

    def send(self, message: bytes) -> None:
        self.output = (bytearray(len(message).to_bytes(4) + message),)
        self.connection.answered()


class Pause(Request):
    """Stands in a connection's line like an unanswered request: everything behind it waits.

    At the end of the line it prevents new requests; at its head it also holds back answers.
    """

    __slots__ = ()

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.meter = None
        self.output = None
        self.on_abandon = None

    def end(self) -> None:
        self.drop_answer()
