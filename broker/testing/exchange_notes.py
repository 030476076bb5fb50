"""What the parts of the laboratory know of one exchange of a request and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.testing.subjects import Subjects
from protocol.schema import Message

if TYPE_CHECKING:
    from broker.testing.faults.fault import Fault

# Nobody authenticates yet: what Kafka calls a client on a listener without authentication.
ANONYMOUS: Final = "User:ANONYMOUS"


class Notes:
    __slots__ = ("entry", "errors", "fault", "seen", "subjects")

    def __init__(self, subjects: Subjects) -> None:
        self.subjects = subjects
        self.fault: Fault | None = None  # what happens to it, or has happened
        self.errors: Message | None = None  # the parts of its answer that are at fault, while the rest is handled
        self.entry: Any = None  # the journal's
        self.seen: Any = None  # strict mode's
