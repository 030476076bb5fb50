"""A rule of the protocol, and what it may look at.

A rule must be sure: it reports only what a client did knowingly. Whatever may have been on its way already when the
client was told better is let pass. So rules compare requests of one connection, whose order is the client's own.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar

from broker.server.observe import Exchange
from broker.testing.subjects import Subjects
from protocol.api import ApiKey
from protocol.schema import Message

if TYPE_CHECKING:
    from broker.broker import Broker


Memory = dict[Hashable, Any]


class Seen:
    """One request of a client, from its arrival to its answer."""

    __slots__ = ("broker", "exchange", "facts", "now")

    def __init__(self, exchange: Exchange, broker: Broker, now: float) -> None:
        self.exchange = exchange
        self.broker = broker
        self.now = now  # when it arrived; then, when it is answered
        self.facts: dict[str, Any] = {}  # what a rule, by its name, keeps of the request for the answer

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
        """Whether the answer is a fault's doing, and says nothing about the client."""
        return self.exchange.notes.fault is not None


class Rule:
    """A complaint is a sentence that says what the client did; None is none.

    `memory` is what the rule remembers of the connection. Records in a request are gone when it is answered.
    """

    name: ClassVar[str]
    reference: ClassVar[str]  # the KIP, or the part of Kafka's protocol guide, that it stands on

    def request(self, seen: Seen, memory: Memory) -> str | None:
        """A request has arrived."""
        return None

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        """It is about to be answered."""
        return None
