"""Finding a record by its time."""

from typing import NamedTuple

from protocol.records.record import read_records
from storage.segment import Segment


class FoundOffset(NamedTuple):
    """A record found by its time."""

    offset: int
    timestamp: int
    leader_epoch: int


def find_in_segment(segment: Segment, start: int, timestamp: int, min_offset: int) -> FoundOffset | None:
    """The first record from about `start` on that is not earlier than `timestamp` and not before `min_offset`.

    Headers say which batch may hold it; only such a batch is read.
    """
    for position, header in segment.headers(segment.offset_index.lookup(start)):
        if header.max_timestamp >= timestamp and header.last_offset >= min_offset:
            for record in read_records(segment.read_batch(position, header), header):
                if record.timestamp >= timestamp and record.offset >= min_offset:
                    return FoundOffset(record.offset, record.timestamp, header.partition_leader_epoch)
    return None
