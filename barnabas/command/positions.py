"""Where in a partition: what `consume --offset` and `topics delete-records --before` take."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from barnabas.client.client import Client
from barnabas.client.offsets import READ_UNCOMMITTED, begin_and_end, list_offsets
from barnabas.command.values import duration, timestamp
from barnabas.protocol.topic_partition import TopicPartition

EXPLAINED: Final = (
    "an offset; -N: the last N records; earliest or latest; or @TIME, such as @2026-01-31T12:00, @-1h (an hour ago) "
    "or @1769860800000"
)

_EARLIEST: Final = ("earliest", "beginning")
_LATEST: Final = ("latest", "end")


@dataclass(frozen=True, slots=True)
class Position:
    """One of these: an offset (from the end if negative), a timestamp, or else the beginning or the end."""

    offset: int | None = None
    timestamp_ms: int | None = None
    at_end: bool = False


EARLIEST: Final = Position()
LATEST: Final = Position(at_end=True)


def position(text: str) -> Position:
    if text in _EARLIEST:
        return EARLIEST
    if text in _LATEST:
        return LATEST
    try:
        if text.startswith("@-"):
            return Position(timestamp_ms=int((time.time() - duration(text[2:])) * 1000))
        if text.startswith("@"):
            return Position(timestamp_ms=timestamp(text[1:]))
        return Position(offset=int(text))
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"{text!r} is not {EXPLAINED}") from None


def resolve(
    client: Client, where: Position, partitions: Collection[TopicPartition], isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """The offset in each partition. After the last record, if no record has the timestamp or a later one."""
    bounds = begin_and_end(client, partitions, isolation)
    if where.timestamp_ms is None:
        return {each: within(where, *bounds[each]) for each in partitions}
    found = list_offsets(client, dict.fromkeys(partitions, where.timestamp_ms), isolation)
    return {each: bounds[each][1] if found[each] < 0 else found[each] for each in partitions}


def within(where: Position, begin: int, end: int) -> int:
    """The offset in a partition with these bounds. An offset that it does not have is left for the broker to refuse."""
    if where.offset is None:
        return end if where.at_end else begin
    return max(end + where.offset, begin) if where.offset < 0 else where.offset
