"""Records that are written, and what is asked about them."""

import time

from barnabas.client.requests.data import produce
from barnabas.client.requests.records import patched
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.records.batch import (
    LAST_OFFSET_DELTA_POSITION,
    RECORD_COUNT_POSITION,
)
from barnabas.protocol.records.builder import NewRecord, build_batch
from tests.support.batches import batch
from tests.support.side_by_side import Side

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
NOW = int(time.time() * 1000)
HOUR = 3_600_000
ONE = batch(b"one")
THREE = batch(b"one", b"two", b"three")
BATCH_SIZE = len(batch(*[b"0"] * 5))


def unknown(topic: str | bytes) -> str | bytes:
    return "unknown" if isinstance(topic, str) else bytes(range(16))


def idempotent(*values, sequence, epoch=0, producer_id=1000, **fields):
    return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)


def at(*timestamps):
    return bytes(build_batch([NewRecord(timestamp, b"key", b"value") for timestamp in timestamps]))


def claiming(count, data):
    """A batch that claims this many records, in both fields that say so."""
    return patched(patched(data, RECORD_COUNT_POSITION, ">i", count), LAST_OFFSET_DELTA_POSITION, ">i", count - 1)


def read(side: Side) -> None:
    """A topic with records to read: offsets 0 to 9 are deleted, the log begins at 10 and ends at 30."""
    if not side.has_topic("read"):
        side.create_topic("read", 3)
        for number in range(6):
            values = [b"%d" % number] * 5
            side.ask(ApiKey.PRODUCE, produce(("read", 0, batch(*values, timestamp=1000 + number))), 9)
            side.ask(ApiKey.PRODUCE, produce(("read", 1, batch(*values))), 9)
        deletion = DeleteRecordsTopic(name="read", partitions=[DeleteRecordsPartition(partition_index=0, offset=10)])
        side.ask(ApiKey.DELETE_RECORDS, DeleteRecordsRequest(topics=[deletion], timeout_ms=1000), 2)
