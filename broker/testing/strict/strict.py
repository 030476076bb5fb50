"""Strict mode: checks every request against the rules, and reports each violation once, with a count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import structlog

from barnabas.broker.server.dispatch import UnknownRequest
from barnabas.broker.server.observe import Exchange
from barnabas.broker.testing.fleet import Fleet
from barnabas.broker.testing.strict.data_rules import DATA_RULES
from barnabas.broker.testing.strict.group_rules import GROUP_RULES
from barnabas.broker.testing.strict.rule import Memory, Rule, Seen
from barnabas.broker.testing.strict.share_rules import SHARE_RULES
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.server.connection import Connection

log = structlog.get_logger()

RULES: Final[tuple[type[Rule], ...]] = (*GROUP_RULES, *SHARE_RULES, *DATA_RULES)
# How many different reports are kept and logged.
_MOST_REPORTS: Final = 1000


@dataclass
class Report:
    rule: str
    reference: str
    client_id: str | None
    peer: str
    message: str
    at_ms: int
    count: int = 1

    def describe(self) -> dict[str, Any]:
        return dict(vars(self))


class Strict:
    def __init__(self, fleet: Fleet, changed: Callable[[], None]) -> None:
        self._fleet = fleet
        self._changed = changed
        self._rules = [rule() for rule in RULES]
        self._memories: dict[Connection, list[Memory]] = {}
        self._reports: dict[tuple[str, str | None, str, str], Report] = {}
        self._is_full = False
        self.on = False
        self.was_ever_on = False  # if not, an empty list of reports means nothing

    @property
    def reports(self) -> list[Report]:
        return list(self._reports.values())

    def switch(self, on: bool) -> None:
        if on != self.on:
            self.on = on
            self.was_ever_on = True
            self._memories.clear()
            self._changed()

    def clear(self) -> None:
        self._reports.clear()
        self._is_full = False

    # --- called by the lab ---

    def arrived(self, exchange: Exchange) -> None:
        seen = exchange.notes.seen = Seen(exchange, exchange.notes.broker, monotonic())
        for rule, memory in zip(self._rules, self._memory_of(exchange.connection), strict=True):
            self._report(exchange, rule, rule.request(seen, memory))

    def answered(self, exchange: Exchange, answer: Message | None) -> None:
        seen: Seen | None = exchange.notes.seen
        if seen is None or not self.on:
            return
        seen.now = monotonic()
        for rule, memory in zip(self._rules, self._memory_of(exchange.connection), strict=True):
            self._report(exchange, rule, rule.answer(seen, memory, answer))

    def misunderstood(self, connection: Connection, error: ProtocolError) -> None:
        if isinstance(error, UnknownRequest):
            name, reference = "api-not-served", "KIP-35: ApiVersions lists what may be requested"
        else:
            name, reference = "malformed-request", "Kafka protocol guide, The Messages"
        self._add(name, reference, None, connection, str(error))

    def _memory_of(self, connection: Connection) -> list[Memory]:
        memories = self._memories.get(connection)
        if memories is None:
            if len(self._memories) > 2 * sum(len(broker.server.connections) for broker in self._fleet.brokers):
                self._memories = {each: kept for each, kept in self._memories.items() if not each.closed}
            memories = self._memories[connection] = [{} for _ in self._rules]
        return memories

    def _report(self, exchange: Exchange, rule: Rule, complaint: str | None) -> None:
        if complaint is not None:
            self._add(rule.name, rule.reference, exchange.client_id, exchange.connection, complaint)

    def _add(self, rule: str, reference: str, client_id: str | None, connection: Connection, complaint: str) -> None:
        key = (rule, client_id, connection.name, complaint)
        known = self._reports.get(key)
        if known is not None:
            known.count += 1
            return
        if len(self._reports) >= _MOST_REPORTS:
            if not self._is_full:
                self._is_full = True
                log.warning("clients break rules more often than is reported", reports=_MOST_REPORTS)
            return
        log.warning("a client breaks a rule", rule=rule, client=client_id, peer=connection.name, what=complaint)
        at_ms = self._fleet.clock.now_ms()
        self._reports[key] = Report(rule, reference, client_id, connection.name, complaint, at_ms)
