"""What faults, journal and strict mode note about one request and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.testing.subjects import Subjects
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.testing.faults.fault import Fault


class Notes:
    __slots__ = ("broker", "entry", "errors", "fault", "seen", "subjects")

    def __init__(self, broker: Broker, subjects: Subjects) -> None:
        self.broker = broker  # which got it
        self.subjects = subjects
        self.fault: Fault | None = None  # what happens or has happened to it
        self.errors: Message | None = None  # the affected parts of its answer, while the rest is handled
        self.entry: Any = None  # the journal's
        self.seen: Any = None  # strict mode's
