"""A decision: an answer to each part of a request, and the operations on the tree that make the answers true.

Deciding changes nothing. The operations of one decision are carried out as one transaction; if the tree has changed in
between so that they no longer fit, the decision is made again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeVar

from barnabas.broker.quotas.mutations import EXCEEDED, Admit
from barnabas.broker.registry.tree_operations import Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import ZERO_UUID

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
"""How many partitions one request may create."""
TOO_MANY_PARTITIONS: Final = f"One request creates at most {MAX_PARTITIONS_PER_REQUEST} partitions"

NOT_CONTROLLER: Final = "This is not the correct controller for this cluster."
"""Kafka's message, where it sends one, for a request that only the controller can carry out."""

Result = TypeVar("Result")


class Decision(NamedTuple, Generic[Result]):
    results: Sequence[Result]
    operations: Sequence[Operation] = ()


class TopicResult(NamedTuple):
    """The result for one topic of a request. A topic that failed has no size and no settings."""

    name: str | None
    topic_id: bytes = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = MappingProxyType({})

    def failed(self, error_code: ErrorCode, message: str | None) -> "TopicResult":
        return TopicResult(self.name, self.topic_id, error_code, message)


class PartitionResult(NamedTuple):
    """The result for one partition of a request."""

    topic: str
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None

    def failed(self, error_code: ErrorCode, message: str | None) -> "PartitionResult":
        return self._replace(error_code=error_code, error_message=message)


class Refused(Exception):
    """Why one part of a request is refused. Raised and caught within a decision."""

    def __init__(self, error_code: ErrorCode, message: str | None = None) -> None:
        super().__init__(error_code, message)
        self.error_code = error_code
        self.message = message


def check_quota(admit: Admit, topic: str, partitions: int) -> None:
    """Refuse what exceeds the client's quota."""
    if not admit(topic, partitions):
        raise Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, EXCEEDED)


def duplicates(names: Iterable[str]) -> dict[str, None]:
    """The names that occur more than once, in order."""
    return dict.fromkeys(name for name, count in Counter(names).items() if count > 1)
