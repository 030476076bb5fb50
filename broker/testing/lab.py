"""The laboratory of a broker: faults, journal and strict mode, hung onto the server's seam only while one is in use.

A request passes the journal and strict mode, which watch, and then the faults, which may hold, answer or end it; its
answer passes the faults first, so that the watchers see what the client will see, and before the client can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from broker.server.observe import Exchange, install, uninstall
from broker.testing.exchange_notes import Notes
from broker.testing.faults.faults import Faults
from broker.testing.journal.journal import Journal
from broker.testing.strict.strict import Strict
from broker.testing.subjects import Subjects, subjects_of
from protocol.errors import ProtocolError
from protocol.messages.fetch import FetchRequest
from protocol.schema import Message

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.server.connection import Connection

log = structlog.get_logger()


class Lab:
    """A broker.server.observe.Observer, as long as there is something to do."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._installed = False
        self.faults = Faults(broker, self, self._settle)
        self.journal = Journal(broker, self._settle)
        self.strict = Strict(broker, self._settle)

    def _settle(self) -> None:
        """Hang onto the seam, or let go of it."""
        wanted = self.faults.active or self.journal.on or self.strict.on
        if wanted != self._installed:
            self._installed = wanted
            if wanted:
                install(self._broker.server.dispatcher, self)
            else:
                uninstall(self._broker.server.dispatcher)
        self._broker.server.doorkeeper = self.faults.object_to if self.faults.refuses else None

    def reset(self) -> None:
        """As it was at the start: no faults, and nothing written down."""
        self.faults.clear()
        self.journal.clear()
        self.strict.clear()

    # --- what the seam calls ---

    def arrived(self, exchange: Exchange) -> None:
        exchange.notes = Notes(self._subjects(exchange.message))
        if self.journal.on:
            _safely(self.journal.arrived, exchange)
        if self.strict.on:
            _safely(self.strict.arrived, exchange)
        self.faults.arrived(exchange)

    def answered(self, exchange: Exchange, answer: Message | None) -> None:
        self.faults.answered(exchange, answer)

    def abandoned(self, exchange: Exchange, reason: str | None) -> None:
        _safely(self.journal.abandoned, exchange, reason)

    def misunderstood(self, connection: Connection, error: ProtocolError) -> None:
        if self.journal.on:
            _safely(self.journal.misunderstood, connection, error)
        if self.strict.on:
            _safely(self.strict.misunderstood, connection, error)

    # --- where the faults let go ---

    def proceed(self, exchange: Exchange) -> None:
        exchange.proceed()
        _safely(self.journal.proceeded, exchange)

    def deliver(self, exchange: Exchange, answer: Message | None) -> None:
        _safely(self.strict.answered, exchange, answer)
        _safely(self.journal.answered, exchange, answer)
        exchange.send(answer)

    def _subjects(self, message: Message) -> Subjects:
        subjects = subjects_of(message, self._name_of)
        if isinstance(message, FetchRequest) and message.session_id and message.session_epoch > 0:
            session = self._broker.fetch_sessions.find(message.session_id)
            for key in session.partitions if session is not None else ():
                name = key.topic or self._name_of(key.topic_id)
                if name is not None:
                    subjects.partitions.append((name, key.partition))
        return subjects

    def _name_of(self, topic_id: bytes) -> str | None:
        topic = self._broker.cluster.topic_by_id(topic_id)
        return topic.name if topic is not None else None


def _safely(watch: Callable[..., None], *arguments: object) -> None:
    """Whoever only watches must not change what clients see, not even by failing."""
    try:
        watch(*arguments)
    except Exception:
        log.exception("a watcher failed")
