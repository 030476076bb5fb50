"""A rule of the protocol, and what it may inspect.

A rule must be certain: it reports only what a client did knowingly. Requests that may have been in flight when the
client learned better are tolerated. So rules compare requests of one connection, whose order is the client's own.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar

from barnabas.broker.server.observe import Exchange
from barnabas.broker.testing.subjects import Subjects
from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


Memory = dict[Hashable, Any]


class Seen:
    """One request of a client, from its arrival to its answer."""

    __slots__ = ("broker", "exchange", "facts", "now")

    def __init__(self, exchange: Exchange, broker: Broker, now: float) -> None:
        self.exchange = exchange
        self.broker = broker
        self.now = now  # when it arrived; then, when it is answered
        self.facts: dict[str, Any] = {}  # what a rule, by its name, remembers about the request until the answer

    @property
    def key(self) -> ApiKey:
        return self.exchange.api_key

    @property
    def message(self) -> Any:
        return self.exchange.message

    @property
    def subjects(self) -> Subjects:
        subjects: Subjects = self.exchange.notes.subjects
        return subjects

    @property
    def by_fault(self) -> bool:
        """Whether the answer was caused by a fault and says nothing about the client."""
        return self.exchange.notes.fault is not None


class Rule:
    """A complaint is a sentence that says what the client did, or None.

    `memory` is what the rule remembers about the connection. Records in a request are gone when it is answered.
    """

    name: ClassVar[str]
    reference: ClassVar[str]  # the KIP or the part of Kafka's protocol guide that it is based on

    def request(self, seen: Seen, memory: Memory) -> str | None:
        """A request has arrived."""
        return None

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        """It is about to be answered."""
        return None
