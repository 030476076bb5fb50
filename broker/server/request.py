"""A request under way: what its handler needs to know of it, and where its answer goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from protocol.api import ApiKey
from protocol.schema import Message

if TYPE_CHECKING:
    from broker.server.connection import Connection, Output
    from broker.server.dispatch import Route

log = structlog.get_logger()


class Request:
    """One frame from a client, until it is answered.

    Its handler answers it once: at once, by returning the answer, or later through `answer`. `on_abandon`, if the
    handler set it, is called when the connection goes away first; an answer after that goes nowhere.
    """

    __slots__ = ("client_id", "connection", "correlation_id", "on_abandon", "output", "route", "version")

    def __init__(self, connection: Connection, route: Route, correlation_id: int, client_id: str | None) -> None:
        self.connection = connection
        self.route = route
        self.version = route.version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.output: Output | None = None
        self.on_abandon: Callable[[], None] | None = None

    @property
    def api_key(self) -> ApiKey:
        return self.route.key

    def answer(self, message: Message) -> None:
        try:
            self.output = self.route.encode(self.correlation_id, message)
        except Exception:
            self.failed()
        else:
            self.connection.answered()

    def drop_answer(self) -> None:
        """This request has no answer, as a Produce with acks=0."""
        self.output = ()
        self.connection.answered()

    def failed(self) -> None:
        """Something raised what it should not have: say so in the log, and cost nobody but this client anything."""
        log.exception("request failed", api=self.api_key.api_name, version=self.version)
        self.fail("its request could not be handled")

    def fail(self, reason: str) -> None:
        """Close the connection, as Kafka does where no answer could say what is wrong."""
        self.connection.close(reason)


class Pause(Request):
    """Stands in a connection's line like a request that is not answered yet: what is behind it waits.

    At the end of the line it keeps anything more from being begun; at its head it holds the answers, too.
    """

    __slots__ = ()

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.output = None
        self.on_abandon = None

    def end(self) -> None:
        self.drop_answer()
