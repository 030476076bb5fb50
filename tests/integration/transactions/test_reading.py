"""Fetch, ListOffsets and DescribeProducers where there are transactions, and WriteTxnMarkers itself."""

import time

from barnabas.client.requests import admin, data
from barnabas.protocol.api import ApiKey
from tests.integration.transactions.stories import Stories, tell
from tests.support.batches import batch
from tests.support.transaction_side import ABORT, COMMIT, READ_COMMITTED, READ_UNCOMMITTED
from tests.support.transaction_versions import LATEST_CLASSIC, NEWEST

story = Stories()
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


@story()
def aborted_transactions_that_matter_to_the_range(side):
    side.init()
    for value, commit in ((b"a", COMMIT), (b"b", ABORT), (b"c", COMMIT), (b"d", ABORT)):
        side.whole(value, commit=commit)
    for offset in range(9):
        yield side.read(READ_COMMITTED, offset)
        yield side.read(READ_UNCOMMITTED, offset)
        yield side.read(READ_COMMITTED, offset, partition_max_bytes=1)


@story()
def transactions_of_two_producers_that_overlap(side):
    side.init()
    side.prepare(0)
    side.produce(b"first")
    first = side.who()
    side.id += "-other"
    side.init()
    side.prepare(0)
    side.produce(b"second")
    yield from side.both()
    yield side.end(ABORT)
    side.settled()
    yield from side.both()  # the first is still open
    yield side.end(ABORT, **first)
    side.settled(first["transactional_id"])
    for offset in range(5):
        yield side.read(READ_COMMITTED, offset)


@story()
def records_behind_an_open_transaction(side):
    plain = batch(b"plain")
    side.of(ApiKey.PRODUCE, data.produce((side.source, 0, plain)))
    side.init()
    side.prepare(0)
    side.produce(b"a")
    side.of(ApiKey.PRODUCE, data.produce((side.source, 0, plain)))
    yield from side.both()
    for offset in (0, 1, 2, 3, 4):
        yield side.read(READ_COMMITTED, offset)
    yield side.end()
    side.settled()
    yield from side.both()


@story((LATEST_CLASSIC, NEWEST))
def records_that_are_deleted_in_an_open_transaction(side):
    """A reader of committed records starts where the log does, and continues when the transaction is over."""
    side.init()
    for commit in (COMMIT, ABORT):
        side.prepare(0)
        for value in (b"a", b"b", b"c", b"d"):
            side.produce(value)
        first = side.offset_of(EARLIEST).topics[0].partitions[0].offset
        deleted = admin.delete_records((side.source, 0, first + 2))
        yield side.ask(ApiKey.DELETE_RECORDS, deleted, 2)
        yield side.offset_of(EARLIEST)
        for offset in (first, first + 2, first + 3):
            yield from side.both(offset)
        yield side.end(commit)
        side.settled()
        for offset in (first + 2, first + 3):
            yield from side.both(offset)
        everything = admin.delete_records((side.source, 0, -1))
        yield side.ask(ApiKey.DELETE_RECORDS, everything, 2)
        yield from side.both(first + 5)


@story()
def offsets_by_time(side):
    """What is not stable yet is not found by those who read only what is."""
    later = int(time.time() * 1000) + 100_000  # than the markers
    side.init()
    side.prepare(0)
    side.produce(b"a", timestamp=later)
    side.end()
    side.settled()
    side.prepare(0)
    side.produce(b"b", timestamp=later + 1000)
    times = (
        EARLIEST,
        LATEST,
        0,
        later + 1,
        4_102_444_800_000,
        *((MAX_TIMESTAMP,) if side.age >= LATEST_CLASSIC else ()),
    )
    for level in (READ_UNCOMMITTED, READ_COMMITTED):
        for timestamp in times:
            yield side.offset_of(timestamp, isolation_level=level)
    side.end(ABORT)
    side.settled()
    for level in (READ_UNCOMMITTED, READ_COMMITTED):
        for timestamp in times:
            yield side.offset_of(timestamp, isolation_level=level)


@story()
def producers_of_a_partition(side):
    side.init()
    asked = admin.describe_producers((side.source, [0, 1]))
    yield side.ask(ApiKey.DESCRIBE_PRODUCERS, asked, 0)
    side.prepare(0)
    side.produce(b"a", b"b")
    yield side.ask(ApiKey.DESCRIBE_PRODUCERS, asked, 0)
    side.end()
    side.settled()
    yield side.ask(ApiKey.DESCRIBE_PRODUCERS, asked, 0)


@story((LATEST_CLASSIC, NEWEST))
def markers_by_hand(side):
    """As an administrator writes them to end a transaction that hangs."""
    side.init()
    side.prepare(0)
    side.produce(b"a")
    yield side.write_markers(0, commit=False)
    yield from side.both()
    yield side.write_markers(0, commit=False)
    yield side.write_markers(1, commit=True)
    yield from side.both(partition=1)
    yield side.write_markers(7)
    yield side.write_markers(0, topic="unknown")
    yield side.write_markers(0, producer_epoch=side.epoch + 1)
    yield side.write_markers(0, producer_epoch=side.epoch)
    yield side.write_markers(0, producer_epoch=side.epoch + 1, coordinator_epoch=-1)
    yield from side.both()
    yield side.describe_transactions()


@story((NEWEST,))
def markers_of_either_version_of_transactions(side):
    side.init()
    for transaction_version, step in ((2, 0), (2, 1), (1, 1), (0, 1)):
        side.ready()
        side.produce(b"a")
        yield side.write_markers(0, producer_epoch=side.epoch + step, transaction_version=transaction_version)
        yield from side.both()
        side.end()
        side.settled()


@story.told
def test_same_answers(brokers, story, age):
    tell(brokers, story, age)
