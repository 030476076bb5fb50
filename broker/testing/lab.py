"""The lab of some brokers: faults, journal and strict mode, attached to the server's seam only while one is in use.

A request passes the journal and strict mode, which watch, and then the faults, which may hold, answer or end it. Its
answer passes the faults first, so that the watchers see what the client will see, before the client can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from barnabas.broker.server.observe import Exchange, install, uninstall
from barnabas.broker.share.sessions import INITIAL_EPOCH, SessionKey
from barnabas.broker.testing.faults.faults import Faults
from barnabas.broker.testing.fleet import Fleet
from barnabas.broker.testing.journal.journal import Journal
from barnabas.broker.testing.notes import Notes
from barnabas.broker.testing.strict.strict import Strict
from barnabas.broker.testing.subjects import Subjects, subjects_of
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.share_fetch import ShareFetchRequest
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.server.connection import Connection

log = structlog.get_logger()


class Lab:
    """Watches the requests of clients; requests between brokers do not pass through it."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._installed = False
        self.faults = Faults(fleet, self, self._settle)
        self.journal = Journal(fleet.clock, self._settle)
        self.strict = Strict(fleet, self._settle)
        fleet.on_started.append(self._started)

    def _settle(self) -> None:
        """Attach to the seam, or detach."""
        wanted = self.faults.active or self.journal.on or self.strict.on
        if wanted != self._installed:
            self._installed = wanted
            for broker in self._fleet.brokers:
                self._attach(broker)
        for broker in self._fleet.brokers:
            self._filter_connections(broker)

    def _started(self, broker: Broker) -> None:
        if self._installed:
            self._attach(broker)
        self._filter_connections(broker)

    def _attach(self, broker: Broker) -> None:
        if self._installed:
            install(broker.server.dispatcher, _Attached(self, broker))
        else:
            uninstall(broker.server.dispatcher)

    def _filter_connections(self, broker: Broker) -> None:
        broker.server.connection_filter = self.faults.objection_to if self.faults.refuses else None

    def reset(self) -> None:
        """Back to the start: no faults, and an empty journal."""
        self.faults.clear()
        self.journal.clear()
        self.strict.clear()

    # --- what the seam calls ---

    def arrived(self, broker: Broker, exchange: Exchange) -> None:
        exchange.notes = Notes(broker, _subjects(broker, exchange.message))
        if self.journal.on:
            _safely(self.journal.arrived, exchange)
        if self.strict.on:
            _safely(self.strict.arrived, exchange)
        self.faults.arrived(exchange)

    def answered(self, exchange: Exchange, answer: Message | None) -> None:
        self.faults.answered(exchange, answer)

    def abandoned(self, exchange: Exchange, reason: str | None) -> None:
        _safely(self.journal.abandoned, exchange, reason)

    def misunderstood(self, broker: Broker, connection: Connection, error: ProtocolError) -> None:
        if self.journal.on:
            _safely(self.journal.misunderstood, broker, connection, error)
        if self.strict.on:
            _safely(self.strict.misunderstood, connection, error)

    # --- where the faults release requests ---

    def proceed(self, exchange: Exchange) -> None:
        exchange.proceed()
        _safely(self.journal.proceeded, exchange)

    def deliver(self, exchange: Exchange, answer: Message | None) -> None:
        _safely(self.strict.answered, exchange, answer)
        _safely(self.journal.answered, exchange, answer)
        exchange.send(answer)


class _Attached:
    """The lab at one broker: a broker.server.observe.Observer, attached while there is something to do."""

    def __init__(self, lab: Lab, broker: Broker) -> None:
        self._lab = lab
        self._broker = broker
        self.answered = lab.answered
        self.abandoned = lab.abandoned

    def arrived(self, exchange: Exchange) -> None:
        self._lab.arrived(self._broker, exchange)

    def misunderstood(self, connection: Connection, error: ProtocolError) -> None:
        self._lab.misunderstood(self._broker, connection, error)


def _subjects(broker: Broker, message: Message) -> Subjects:
    def name_of(topic_id: bytes) -> str | None:
        topic = broker.cluster.topic_by_id(topic_id)
        return topic.name if topic is not None else None

    subjects = subjects_of(message, name_of)
    if isinstance(message, FetchRequest) and message.session_id and message.session_epoch > 0:
        session = broker.fetch_sessions.find(message.session_id)
        for key in session.partitions if session is not None else ():
            name = key.topic or name_of(key.topic_id)
            if name is not None:
                subjects.partitions.append((name, key.partition))
    if isinstance(message, ShareFetchRequest) and message.share_session_epoch != INITIAL_EPOCH:
        share_session = broker.share_partitions.sessions.find(
            SessionKey(message.group_id or "", message.member_id or "")
        )
        for topic_id, index in share_session.places if share_session is not None else ():
            name = name_of(topic_id)
            if name is not None:
                subjects.partitions.append((name, index))
    return subjects


def _safely(watch: Callable[..., None], *arguments: object) -> None:
    """A watcher must not change what clients see, not even by failing."""
    try:
        watch(*arguments)
    except Exception:
        log.exception("a watcher failed")
