"""What a decision is: an answer for each thing asked, and the operations on the tree that make the answers true.

Deciding changes nothing. The operations of one decision are carried out as one transaction; if the tree has changed in
between so that they no longer fit, the decision is made again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeVar

from broker.controller.uuids import ZERO_UUID
from broker.registry.operations import Operation
from protocol.errors import ErrorCode

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
"""How many partitions one request may make."""

Result = TypeVar("Result")


class Decision(NamedTuple, Generic[Result]):
    results: Sequence[Result]
    operations: Sequence[Operation] = ()


class TopicResult(NamedTuple):
    """What became of one topic of a request."""

    name: str | None
    topic_id: bytes = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = MappingProxyType({})


class PartitionResult(NamedTuple):
    """What became of one partition of a request."""

    topic: str
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class Refused(Exception):
    """Why one thing of a request cannot be. Raised and caught within a decision."""

    def __init__(self, error_code: ErrorCode, message: str | None = None) -> None:
        super().__init__(error_code, message)
        self.error_code = error_code
        self.message = message


def duplicates(names: Iterable[str]) -> list[str]:
    """The names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]
