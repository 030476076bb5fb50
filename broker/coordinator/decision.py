"""What a coordinator's method returns: the records that make its decision true, and what happens once they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from protocol.errors import ErrorCode


class CoordinatorRecord(NamedTuple):
    """A key and a value as they stand in the coordinator's partition; without a value, a tombstone."""

    key: bytes
    value: bytes | None


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
