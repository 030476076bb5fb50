"""From the bytes of one partition in a Fetch answer to the records that a reader should see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.client.errors import ClientError
from barnabas.protocol.messages.fetch import AbortedTransaction
from barnabas.protocol.records.batch import BATCH_LENGTH_POSITION, LENGTH_OVERHEAD, validate_batch
from barnabas.protocol.records.control import ControlType, read_end_transaction_marker
from barnabas.protocol.records.errors import RecordsError
from barnabas.protocol.records.record import Record, read_records


class Fetched(NamedTuple):
    records: list[Record]
    next_offset: int


def read_fetched(
    data: memoryview, position: int, aborted: Iterable[AbortedTransaction] | None, subject: str
) -> Fetched:
    """The records from `position` on, and the offset to read from next. That lies behind everything that readers do
    not see: control records, gaps that compaction left, aborted transactions.

    `aborted` lists the aborted transactions in this range, as the broker sends them to readers of committed records.
    """
    records: list[Record] = []
    to_come = sorted(aborted or (), key=lambda each: each.first_offset, reverse=True)
    hidden: set[int] = set()
    place = 0
    try:
        while _holds_whole_batch(data, place):
            header = validate_batch(data, place)
            batch = data[place : place + header.size]
            place += header.size
            while to_come and to_come[-1].first_offset <= header.last_offset:
                hidden.add(to_come.pop().producer_id)
            if header.is_control:
                marker = read_end_transaction_marker(batch, header)
                if marker is not None and marker.control_type is ControlType.ABORT:
                    hidden.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in hidden):
                if header.base_offset >= position:
                    records.extend(read_records(batch, header))
                else:  # the batch begins before the position
                    records.extend(each for each in read_records(batch, header) if each.offset >= position)
            position = max(position, header.next_offset)
    except RecordsError as error:
        raise ClientError(f"{subject}: cannot read the batch at offset {position}: {error}") from None
    if data and not place:
        raise ClientError(f"{subject}: the broker sent an incomplete batch at offset {position}")
    return Fetched(records, position)


def _holds_whole_batch(data: memoryview, place: int) -> bool:
    """The last batch of an answer may be cut off."""
    left = len(data) - place
    return left > LENGTH_OVERHEAD and LENGTH_OVERHEAD + _batch_length(data, place) <= left


def _batch_length(data: memoryview, place: int) -> int:
    return int.from_bytes(data[place + BATCH_LENGTH_POSITION : place + LENGTH_OVERHEAD], "big")


def cut(records: Sequence[Record], count: int) -> Fetched:
    """The first `count` records, and the offset after them."""
    kept = list(records[:count])
    return Fetched(kept, kept[-1].offset + 1)
