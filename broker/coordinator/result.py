"""What a coordinator's method returns: the records that make its decision true, and what happens once they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from barnabas.protocol.errors import ErrorCode


class CoordinatorRecord(NamedTuple):
    """A key and a value as in the coordinator's partition; without a value, a tombstone.

    `read` is the decoded record, if its creator has it at hand: then it need not be decoded.
    """

    key: bytes
    value: bytes | None
    read: object | None = None


def _nothing(error: ErrorCode) -> None:
    pass


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


class CoordinatorResult(NamedTuple):
    """The run-time appends the records, replays them and calls `done`; if it cannot, only `done`, with the error.

    With a producer, the records belong to its open transaction: they become valid when that is committed. With an
    error, the decision is a refusal: `done` gets it, once everything that it may depend on is committed. `key` is the
    group or transactional id, which is set aside if `done` fails.
    """

    records: Sequence[CoordinatorRecord] = ()
    done: Callable[[ErrorCode], None] = _nothing
    producer: ProducerIdAndEpoch | None = None
    error: ErrorCode = ErrorCode.NONE
    key: str = ""


NOTHING_TO_DO: Final = CoordinatorResult()


class Operation(Protocol):
    """A request to the state under one key. The run-time decides the operations of one turn of the loop together.

    Its decision depends only on the state under its key, and belongs to no producer's transaction.
    """

    @property
    def key(self) -> str: ...

    def decide(self, shard: Any) -> CoordinatorResult:
        """What has to be done about it, ending with a call of `done`."""

    def done(self, error: ErrorCode) -> None:
        """It is done and committed, or this is why not."""
