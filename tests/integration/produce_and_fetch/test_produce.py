"""What Produce answers, in every version."""

import pytest

from barnabas.client.requests.data import LATEST, fetch, list_offsets, produce
from barnabas.client.requests.records import patched
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    BASE_OFFSET_POSITION,
    BASE_TIMESTAMP_POSITION,
    BATCH_LENGTH_POSITION,
    CRC_POSITION,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_POSITION,
    LOG_APPEND_TIME_FLAG,
    MAGIC_POSITION,
    RECORD_COUNT_POSITION,
)
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from tests.integration.produce_and_fetch.records import (
    HOUR,
    NOW,
    ONE,
    PRODUCE_VERSIONS,
    THREE,
    at,
    claiming,
    idempotent,
    unknown,
)
from tests.support.batches import batch
from tests.support.side_by_side import Side

pytestmark = pytest.mark.java

# The settings of a topic, and the records that are sent to it one after another.
PRODUCE = {
    "good batches": ({}, [ONE, THREE, ONE]),
    "no records": ({}, [b""]),
    "a byte": ({}, [b"\0"]),
    "a header cut short": ({}, [ONE[: HEADER_SIZE - 1]]),
    "a header and no records": ({}, [ONE[:HEADER_SIZE]]),
    "a batch cut short": ({}, [THREE[:-1]]),
    "two batches": ({}, [ONE + THREE]),
    "the second batch corrupt": ({}, [ONE + patched(ONE, CRC_POSITION, ">I", 1, sealed=False)]),
    "a wrong checksum": ({}, [patched(ONE, CRC_POSITION, ">I", 1, sealed=False)]),
    "a flipped bit in a record": ({}, [ONE[:-1] + bytes([ONE[-1] ^ 1])]),
    "magic 0": ({}, [patched(ONE, MAGIC_POSITION, ">b", 0)]),
    "magic 1": ({}, [patched(ONE, MAGIC_POSITION, ">b", 1)]),
    "magic 3": ({}, [patched(ONE, MAGIC_POSITION, ">b", 3)]),
    "magic -1": ({}, [patched(ONE, MAGIC_POSITION, ">b", -1)]),
    "a length that is one too large": ({}, [patched(ONE, BATCH_LENGTH_POSITION, ">i", len(ONE) - 11)]),
    "a length that is one too small": ({}, [patched(ONE, BATCH_LENGTH_POSITION, ">i", len(ONE) - 13)]),
    "a length of 0": ({}, [patched(ONE, BATCH_LENGTH_POSITION, ">i", 0)]),
    "a negative length": ({}, [patched(ONE, BATCH_LENGTH_POSITION, ">i", -1)]),
    "a length of 1 GiB": ({}, [patched(ONE, BATCH_LENGTH_POSITION, ">i", 2**30)]),
    "a count that is too large": ({}, [patched(THREE, RECORD_COUNT_POSITION, ">i", 4)]),
    "a count that is too small": ({}, [patched(THREE, RECORD_COUNT_POSITION, ">i", 2)]),
    "a count of 0": ({}, [patched(THREE, RECORD_COUNT_POSITION, ">i", 0)]),
    "a count of -1": ({}, [patched(THREE, RECORD_COUNT_POSITION, ">i", -1)]),
    "more records than there is room for": ({}, [claiming(10**9, ONE)]),
    "a last offset that is too large": ({}, [patched(THREE, LAST_OFFSET_DELTA_POSITION, ">i", 3)]),
    "a last offset that is too small": ({}, [patched(THREE, LAST_OFFSET_DELTA_POSITION, ">i", 1)]),
    "a last offset of -1": ({}, [patched(THREE, LAST_OFFSET_DELTA_POSITION, ">i", -1)]),
    "a base offset that is not 0": ({}, [patched(ONE, BASE_OFFSET_POSITION, ">q", 7)]),
    "a negative base offset": ({}, [patched(ONE, BASE_OFFSET_POSITION, ">q", -1)]),
    "a control batch": ({}, [patched(ONE, ATTRIBUTES_POSITION, ">h", 0x20)]),
    "a delete horizon": ({}, [patched(ONE, ATTRIBUTES_POSITION, ">h", 0x40)]),
    "unused attributes": ({}, [patched(ONE, ATTRIBUTES_POSITION, ">h", 0x7F80)]),
    "gzip": ({}, [batch(b"a", b"b", compression=CompressionType.GZIP)]),
    "snappy": ({}, [batch(b"a", b"b", compression=CompressionType.SNAPPY)]),
    "lz4": ({}, [batch(b"a", b"b", compression=CompressionType.LZ4)]),
    "zstd": ({}, [batch(b"a", b"b", compression=CompressionType.ZSTD)]),
    "keys on a compacted topic": ({"cleanup.policy": "compact"}, [ONE]),
    "no key on a compacted topic": ({"cleanup.policy": "compact"}, [batch(b"a", key=None), ONE]),
    "two of three without a key on a compacted topic": (
        {"cleanup.policy": "compact,delete"},
        [bytes(build_batch([NewRecord(NOW, key, b"") for key in (None, b"k", None)]))],
    ),
    "gzip without a key on a compacted topic": (
        {"cleanup.policy": "compact"},
        [batch(b"a", key=None, compression=CompressionType.GZIP)],
    ),
    "a batch that is too large": ({"max.message.bytes": "100"}, [ONE, batch(bytes(100))]),
    "a batch that is too large and damaged": (
        {"max.message.bytes": "100"},
        [patched(batch(bytes(100)), CRC_POSITION, ">I", 1, sealed=False)],
    ),
    "a batch that becomes too large under another codec": (
        {"compression.type": "uncompressed"},
        [batch(bytes(2_000_000), compression=CompressionType.ZSTD)],
    ),
    "compressed, and more records than a codec could hold": (
        {},
        [claiming(2**31 - 1, batch(b"a", compression=codec)) for codec in CompressionType],
    ),
    "compressed, and very many records that are not there": (
        {},
        [claiming(70_000, batch(bytes(5000), bytes(2_000_000), compression=CompressionType.ZSTD))],
    ),
    "fewer records than claimed on a compacted topic": (
        {"cleanup.policy": "compact"},
        [claiming(4, batch(b"a", b"b", b"c", compression=codec)) for codec in CompressionType],
    ),
    "more records than claimed on a compacted topic": (
        {"cleanup.policy": "compact"},
        [claiming(2, batch(b"a", b"b", b"c", compression=codec)) for codec in CompressionType],
    ),
    "neither a key nor a plausible time on a compacted topic": (
        {"cleanup.policy": "compact"},
        [
            batch(b"a", key=None, timestamp=NOW + 2 * HOUR),
            bytes(build_batch([NewRecord(NOW, None, b""), NewRecord(NOW + 2 * HOUR, b"k", b"")])),
        ],
    ),
    "a base timestamp at the end of time": (
        {},
        [
            patched(at(NOW), BASE_TIMESTAMP_POSITION, ">q", 2**63 - 1),
            patched(at(NOW), BASE_TIMESTAMP_POSITION, ">q", -(2**63)),
        ],
    ),
    "timestamps within and beyond the limits": (
        {"message.timestamp.before.max.ms": str(HOUR), "message.timestamp.after.max.ms": str(HOUR)},
        [at(NOW), at(NOW - 2 * HOUR), at(NOW + 2 * HOUR), at(NOW, NOW - 2 * HOUR, NOW + 2 * HOUR), at(-1), at(-2)],
    ),
    "timestamps in the future, by default": ({}, [at(NOW + 2 * HOUR), at(NOW, NOW + 2 * HOUR), at(NOW)]),
    "timestamps that nobody has": ({}, [at(0), at(-1), at(5, 3)]),
    "a broker that stamps": ({"message.timestamp.type": "LogAppendTime"}, [at(NOW), at(NOW + 2 * HOUR)]),
    "sequences": ({}, [idempotent(sequence=0), idempotent(b"a", b"b", sequence=1), idempotent(sequence=3)]),
    "a batch sent twice": ({}, [idempotent(sequence=0), idempotent(sequence=0), idempotent(sequence=1)]),
    "an older batch sent twice": ({}, [idempotent(sequence=n) for n in (0, 1, 2, 3, 4, 5, 1, 0, 6)]),
    "a batch sent twice with another end": (
        {},
        [idempotent(b"a", sequence=0), idempotent(b"a", b"b", sequence=0), idempotent(sequence=1)],
    ),
    "a gap": ({}, [idempotent(sequence=0), idempotent(sequence=2), idempotent(sequence=1)]),
    "an unknown producer that does not begin at 0": ({}, [idempotent(sequence=5), idempotent(sequence=6)]),
    "a new epoch": ({}, [idempotent(sequence=0), idempotent(sequence=0, epoch=1), idempotent(sequence=1, epoch=1)]),
    "a new epoch that does not begin at 0": ({}, [idempotent(sequence=0), idempotent(sequence=1, epoch=1)]),
    "a stale epoch": ({}, [idempotent(sequence=0, epoch=1), idempotent(sequence=1), idempotent(sequence=1, epoch=1)]),
    "a transactional batch without a transactional id": ({}, [idempotent(sequence=0, transactional=True)]),
    "a producer id without a sequence": ({}, [idempotent(sequence=-1)]),
    "a producer id without an epoch": ({}, [idempotent(sequence=0, epoch=-1)]),
    "a negative producer id": ({}, [idempotent(sequence=0, producer_id=-2)]),
    "a sequence without a producer id": ({}, [idempotent(sequence=0, producer_id=-1, epoch=-1)]),
    "sequences that wrap": (
        {},
        [idempotent(sequence=2**31 - 2), idempotent(b"a", b"b", b"c", sequence=2**31 - 1), idempotent(sequence=2)],
    ),
}


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize("case", PRODUCE)
def test_produce(brokers, case, version):
    configs, record_sets = PRODUCE[case]
    topic, partition = f"produce-{list(PRODUCE).index(case)}", version - PRODUCE_VERSIONS[0]

    def scenario(side: Side):
        side.create_topic(topic, len(PRODUCE_VERSIONS), configs)
        for records in record_sets:
            yield side.ask(ApiKey.PRODUCE, produce((side.name(topic, version >= 13), partition, records)), version)
        if configs.get("message.timestamp.type") != "LogAppendTime":
            yield side.ask(ApiKey.FETCH, fetch((topic, partition, 0)), 12)
        yield side.ask(ApiKey.LIST_OFFSETS, list_offsets((topic, partition, LATEST)), 7)

    brokers.play(scenario)


LOG_APPEND_TIME = patched(ONE, ATTRIBUTES_POSITION, ">h", LOG_APPEND_TIME_FLAG)
# Where Barnabas answers differently on purpose: the records, what Apache Kafka answers, and what Barnabas does.
PRODUCE_OTHERWISE = {
    # Records of a set after its one batch, cut short: Kafka appends the batch and silently drops them.
    "half a batch too much": (ONE + ONE[: len(ONE) // 2], ErrorCode.NONE, ErrorCode.INVALID_RECORD),
    # Kafka fails on a sum that does not fit into an int.
    "the largest length": (
        patched(ONE, BATCH_LENGTH_POSITION, ">i", 2**31 - 1),
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_RECORD,
    ),
    # There is an error code that says it.
    "an unknown codec": (
        patched(ONE, ATTRIBUTES_POSITION, ">h", 5),
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ),
    # Kafka reads every batch and finds this. Here a batch is opaque.
    "records that are not gzip": (
        patched(ONE, ATTRIBUTES_POSITION, ">h", CompressionType.GZIP),
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NONE,
    ),
    "a count and a last offset that lie alike": (claiming(4, THREE), ErrorCode.INVALID_RECORD, ErrorCode.NONE),
    # Kafka rewrites every batch's attributes and latest time from its records.
    "a batch that says LogAppendTime": (LOG_APPEND_TIME, ErrorCode.NONE, ErrorCode.INVALID_TIMESTAMP),
}


@pytest.mark.parametrize("case", PRODUCE_OTHERWISE)
def test_produce_that_is_answered_otherwise(brokers, case):
    records, *expected = PRODUCE_OTHERWISE[case]

    def answer(side: Side):
        side.create_topic("otherwise")
        response = side.ask(ApiKey.PRODUCE, produce(("otherwise", 0, records)), 9)
        return response.responses[0].partition_responses[0].error_code

    assert [answer(brokers.kafka), answer(brokers.barnabas)] == expected


def test_a_partition_twice_in_one_produce_is_appended_twice(brokers):
    """Apache Kafka keeps the last of the two and silently drops the other."""

    def appended(side: Side):
        side.create_topic("twice")
        response = side.ask(ApiKey.PRODUCE, produce(("twice", 0, ONE), ("twice", 0, THREE)), 9)
        end = side.ask(ApiKey.LIST_OFFSETS, list_offsets(("twice", 0, LATEST)), 7).topics[0].partitions[0].offset
        return [answer.base_offset for answer in response.responses[0].partition_responses], end

    assert appended(brokers.kafka) == ([0], 3)
    assert appended(brokers.barnabas) == ([0, 1], 4)


# What one request asks for, given the name (or id) of a topic with two partitions.
PRODUCE_REQUESTS = {
    "two partitions": lambda t: produce((t, 0, ONE), (t, 1, THREE)),
    "a partition that is not there": lambda t: produce((t, 0, ONE), (t, 2, ONE)),
    "a negative partition": lambda t: produce((t, -1, ONE)),
    "a topic that is not there": lambda t: produce((unknown(t), 0, ONE), (t, 0, ONE)),
    "neither a name nor an id": lambda t: produce((t[:0], 0, ONE)),
    "a bad batch beside a good one": lambda t: produce((t, 0, patched(ONE, CRC_POSITION, ">I", 1)), (t, 1, ONE)),
    "a cut batch beside a good one": lambda t: produce((t, 0, ONE[:-1]), (t, 1, ONE)),
    "acks 1": lambda t: produce((t, 0, ONE), acks=1),
    "acks 2": lambda t: produce((t, 0, ONE), acks=2),
    "acks -2": lambda t: produce((t, 0, ONE), (unknown(t), 0, ONE), acks=-2),
    "nothing": lambda t: produce(),
    "a timeout of 0": lambda t: produce((t, 0, ONE), timeout_ms=0),
    "a transactional id without a transaction": lambda t: produce((t, 0, ONE), transactional_id="x"),
}


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize("case", PRODUCE_REQUESTS)
def test_produce_requests(brokers, case, version):
    topic = f"requests-{version}"

    def scenario(side: Side):
        side.create_topic(topic, 2)
        yield side.ask(ApiKey.PRODUCE, PRODUCE_REQUESTS[case](side.name(topic, version >= 13)), version)
        yield side.ask(ApiKey.LIST_OFFSETS, list_offsets((topic, 0, LATEST), (topic, 1, LATEST)), 7)

    brokers.play(scenario)


@pytest.mark.parametrize("records", [ONE, ONE[:-1], ONE + ONE], ids=["good", "cut", "two batches"])
@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_without_acks(brokers, version, records):
    topic = f"requests-{version}"

    def scenario(side: Side):
        side.create_topic(topic, 2)
        side.tell(ApiKey.PRODUCE, produce((side.name(topic, version >= 13), 0, records), acks=0), version)
        yield side.ask(ApiKey.LIST_OFFSETS, list_offsets((topic, 0, LATEST)), 7)

    brokers.play(scenario)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_where_more_replicas_are_asked_for_than_there_are(brokers, version):
    def scenario(side: Side):
        side.create_topic("guarded", configs={"min.insync.replicas": "2"})
        for acks in (-1, 1):
            request = produce((side.name("guarded", version >= 13), 0, ONE), acks=acks)
            yield side.ask(ApiKey.PRODUCE, request, version)

    brokers.play(scenario)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_to_an_internal_topic(brokers, version):
    def scenario(side: Side):
        side.create_topic("__consumer_offsets", 1)
        yield side.ask(ApiKey.PRODUCE, produce((side.name("__consumer_offsets", version >= 13), 0, ONE)), version)

    brokers.play(scenario)
