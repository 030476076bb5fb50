"""What a coordinator's method returns: the records that make its decision true, and what happens once they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from protocol.errors import ErrorCode


class CoordinatorRecord(NamedTuple):
    """A key and a value as they stand in the coordinator's partition; without a value, a tombstone.

    `read` is what reading it gives, where whoever made the record has that at hand: then nobody need read it.
    """

    key: bytes
    value: bytes | None
    read: object | None = None


def _nothing(error: ErrorCode) -> None:
    pass


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


class Decision(NamedTuple):
    """The run-time appends the records, replays them and calls `done`; if it cannot, only `done`, with the error.

    With a producer, the records belong to its transaction under way: they hold when that is committed.
    """

    records: Sequence[CoordinatorRecord] = ()
    done: Callable[[ErrorCode], None] = _nothing
    producer: ProducerIdAndEpoch | None = None


NOTHING_TO_DO: Final = Decision()


class Operation(Protocol):
    """What somebody asks of the state under one key. The run-time has those of a turn of the loop decided together.

    Its decision depends on the state under its key and on nothing else of the shard.
    """

    key: str

    def decide(self, shard: Any) -> CoordinatorRecord | ErrorCode:
        """The record that makes it true; or the error, NONE if it is true already."""

    def done(self, error: ErrorCode) -> None:
        """It is true, the record is committed; or why it is not."""
