"""The same records and questions about them, sent to Apache Kafka and to Barnabas, get the same answers.

Every scenario has topics of its own, and every version a partition of its own in them, so that none sees what another
wrote.
"""

import time
from itertools import groupby

import pytest

from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.fetch import ForgottenTopic, ReplicaState
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.records.batch import (
    ATTRIBUTES_POSITION,
    BASE_OFFSET_POSITION,
    BATCH_LENGTH_POSITION,
    CRC_POSITION,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_POSITION,
    LOG_APPEND_TIME_FLAG,
    MAGIC_POSITION,
    RECORD_COUNT_POSITION,
)
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import CompressionType
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.requests import LATEST, batch, fetch, list_offsets, named, patched, produce
from tests.support.side_by_side import Side, SideBySide

pytestmark = pytest.mark.java

SETTINGS = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    "transaction.partition.verification.enable": "false",  # so that there are transactions without a coordinator
}
PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)

NOW = int(time.time() * 1000)
HOUR = 3_600_000


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    with ApacheKafka(SETTINGS) as kafka, BrokerProcess(tmp_path_factory.mktemp("data"), settings=SETTINGS) as barnabas:
        sides = SideBySide(Side(kafka.port), Side(barnabas.port))
        yield sides
        sides.kafka.close()
        sides.barnabas.close()


def unknown(topic: str | bytes) -> str | bytes:
    return "unknown" if isinstance(topic, str) else bytes(range(16))


def idempotent(*values, sequence, epoch=0, producer_id=1000, **fields):
    return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)


def at(*timestamps):
    return bytes(build_batch([NewRecord(timestamp, b"key", b"value") for timestamp in timestamps]))


ONE = batch(b"one")
THREE = batch(b"one", b"two", b"three")

# The settings of a topic, and the records that are sent to it one after the other.
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
    "more records than there is room for": (
        {},
        [patched(patched(ONE, RECORD_COUNT_POSITION, ">i", 10**9), LAST_OFFSET_DELTA_POSITION, ">i", 10**9 - 1)],
    ),
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

# Where Barnabas answers otherwise on purpose: the records, what Apache Kafka answers, and what Barnabas does.
PRODUCE_OTHERWISE = {
    # Records of a set after its one batch, cut short: Kafka appends the batch and drops them without a word.
    "half a batch too much": (ONE + ONE[: len(ONE) // 2], ErrorCode.NONE, ErrorCode.INVALID_RECORD),
    # Kafka stumbles over a sum that does not fit into an int.
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
    # Kafka looks into every batch and finds this. Here a batch is opaque.
    "records that are not gzip": (
        patched(ONE, ATTRIBUTES_POSITION, ">h", CompressionType.GZIP),
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NONE,
    ),
    "a count and a last offset that lie alike": (
        patched(patched(THREE, RECORD_COUNT_POSITION, ">i", 4), LAST_OFFSET_DELTA_POSITION, ">i", 3),
        ErrorCode.INVALID_RECORD,
        ErrorCode.NONE,
    ),
    # Kafka writes every batch's attributes and latest time anew, from its records.
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
    """Apache Kafka keeps the last of the two, and drops the other without a word."""

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


BATCH_SIZE = len(batch(*[b"0"] * 5))

# What is fetched, given the name (or id) of the topic above.
FETCH = {
    "all that there is": lambda t: fetch((t, 0, 10)),
    "from within a batch": lambda t: fetch((t, 0, 17)),
    "two partitions": lambda t: fetch((t, 0, 10), (t, 1, 0)),
    "an empty partition": lambda t: fetch((t, 2, 0)),
    "at the end": lambda t: fetch((t, 0, 30)),
    "past the end": lambda t: fetch((t, 0, 31)),
    "what was deleted": lambda t: fetch((t, 0, 9)),
    "offset 0, deleted": lambda t: fetch((t, 0, 0)),
    "a negative offset": lambda t: fetch((t, 0, -1)),
    "the largest offset": lambda t: fetch((t, 0, 2**63 - 1)),
    "a partition that is not there": lambda t: fetch((t, 3, 0), (t, 1, 0)),
    "a negative partition": lambda t: fetch((t, -1, 0)),
    "a topic that is not there": lambda t: fetch((unknown(t), 0, 0), (t, 1, 0)),
    "neither a name nor an id": lambda t: fetch((t[:0], 0, 0)),
    "a partition twice": lambda t: fetch((t, 1, 0), (t, 1, 25)),
    "nothing": lambda t: fetch(),
    "max bytes 0": lambda t: fetch((t, 0, 10), (t, 1, 0), max_bytes=0),
    "max bytes 1": lambda t: fetch((t, 0, 10), (t, 1, 0), max_bytes=1),
    "negative max bytes": lambda t: fetch((t, 0, 10), max_bytes=-1),
    "max bytes for a batch and a half": lambda t: fetch((t, 0, 10), (t, 1, 0), max_bytes=BATCH_SIZE * 3 // 2),
    "max bytes for five batches": lambda t: fetch((t, 0, 10), (t, 1, 0), max_bytes=BATCH_SIZE * 5),
    "partition max bytes 0": lambda t: fetch((t, 0, 10), (t, 1, 0), partition_max_bytes=0),
    "partition max bytes 1": lambda t: fetch((t, 0, 10), (t, 1, 0), partition_max_bytes=1),
    "negative partition max bytes": lambda t: fetch((t, 0, 10), partition_max_bytes=-1),
    "partition max bytes for a batch": lambda t: fetch((t, 0, 10), (t, 1, 0), partition_max_bytes=BATCH_SIZE),
    "no minimum": lambda t: fetch((t, 0, 30), min_bytes=0, max_wait_ms=60_000),
    "no time to wait": lambda t: fetch((t, 0, 30), max_wait_ms=0),
    "a time below 0": lambda t: fetch((t, 0, 30), max_wait_ms=-1),
    "a short wait": lambda t: fetch((t, 0, 30), max_wait_ms=1),
    "more than may be sent": lambda t: fetch((t, 0, 10), min_bytes=10_000, max_bytes=BATCH_SIZE, max_wait_ms=60_000),
    "an error ends a wait": lambda t: fetch((t, 0, 30), (t, 1, 99), max_wait_ms=60_000),
    "read committed": lambda t: fetch((t, 0, 10), isolation_level=1),
    "read committed at the end": lambda t: fetch((t, 0, 30), isolation_level=1),
    "read committed past the end": lambda t: fetch((t, 0, 31), isolation_level=1),
    "read committed from nowhere": lambda t: fetch((unknown(t), 0, 0), isolation_level=1),
    "an isolation level that nobody knows": lambda t: fetch((t, 0, 10), (unknown(t), 0, 0), isolation_level=2),
    "a negative isolation level": lambda t: fetch((t, 0, 10), isolation_level=-1),
    "the leader's epoch": lambda t: fetch((t, 0, 10), partition={"current_leader_epoch": 0}),
    "an epoch to come": lambda t: fetch((t, 0, 10), partition={"current_leader_epoch": 1}),
    "an epoch below all": lambda t: fetch((t, 0, 10), partition={"current_leader_epoch": -2}),
    "the last fetched epoch": lambda t: fetch((t, 0, 10), partition={"last_fetched_epoch": 0}),
    "a last fetched epoch to come": lambda t: fetch((t, 0, 10), partition={"last_fetched_epoch": 1}),
    "a last fetched epoch past the end": lambda t: fetch((t, 0, 31), partition={"last_fetched_epoch": 0}),
    "a last fetched epoch on nothing": lambda t: fetch((t, 2, 0), partition={"last_fetched_epoch": 0}),
}


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("case", FETCH)
def test_fetch(brokers, case, version):
    def scenario(side: Side):
        read(side)
        yield side.ask(ApiKey.FETCH, FETCH[case](side.name("read", version >= 13)), version)

    brokers.play(scenario)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("replica_id", [-2, 0, 1, 2])
def test_fetch_as_a_replica(brokers, replica_id, version):
    def scenario(side: Side):
        read(side)
        fields = {"replica_id": replica_id}
        if version >= 15:
            fields = {"replica_state": ReplicaState(**fields)}
        name = side.name("read", version >= 13)
        yield side.ask(ApiKey.FETCH, fetch((name, 0, 10), (name, 0, 99), (name, 9, 0), **fields), version)
        epoch = {"current_leader_epoch": 1}
        yield side.ask(ApiKey.FETCH, fetch((name, 0, 10), partition=epoch, **fields), version)

    brokers.play(scenario)


@pytest.mark.parametrize("version", [FETCH_VERSIONS[0], FETCH_VERSIONS[-1]])
def test_a_fetch_that_ends_with_its_segment_does_not_wait(brokers, version):
    def scenario(side: Side):
        if not side.has_topic("segments"):
            side.create_topic("segments", configs={"segment.bytes": "1048576"})
            for _ in range(2):
                side.ask(ApiKey.PRODUCE, produce(("segments", 0, batch(bytes(600_000)))), 9)
        request = fetch((side.name("segments", version >= 13), 0, 0), min_bytes=1_000_000, max_wait_ms=60_000)
        yield side.ask(ApiKey.FETCH, request, version)

    brokers.play(scenario)


@pytest.mark.parametrize("version", range(7, 19))
def test_a_fetch_session(brokers, version):
    topic = f"session-{version}"

    def scenario(side: Side):
        def ask(*parts, epoch, session_id, **fields):
            request = fetch(*parts, session_id=session_id, session_epoch=epoch, **fields)
            answer = side.ask(ApiKey.FETCH, request, version)
            answers.append(answer)
            return answer.session_id

        def append(partition):
            side.ask(ApiKey.PRODUCE, produce((topic, partition, ONE)), 9)

        answers = []
        side.create_topic(topic, 3)
        name = side.name(topic, version >= 13)
        known = {"session_id": ask((name, 0, 0), (name, 1, 0), epoch=0, session_id=0)}
        ask(epoch=1, **known)
        append(1)
        ask(epoch=2, **known)
        ask((name, 1, 1), epoch=3, **known)
        ask((name, 2, 0), epoch=4, **known)
        append(2)
        ask(epoch=5, forgotten_topics_data=[ForgottenTopic(**named("topic", name), partitions=[2])], **known)
        ask((name, 0, 99), epoch=6, **known)
        ask(epoch=7, **known)
        ask((name, 0, 0), epoch=8, **known)
        ask((name, 77, 0), epoch=9, **known)
        ask((unknown(name), 0, 0), epoch=10, **known)
        ask(epoch=11, **known)
        ask(epoch=11, **known)
        ask(epoch=13, **known)
        ask(epoch=1, session_id=0)
        ask(epoch=1, session_id=12345)
        ask(epoch=-2, **known)
        ask((name, 1, 0), epoch=-1, **known)
        ask(epoch=12, **known)
        ask((name, 0, 0), epoch=0, session_id=12345)
        ask(epoch=0, session_id=0)
        ask(epoch=-1, session_id=0)
        ask((name, 77, 0), epoch=0, session_id=0)
        ask((unknown(name), 0, 0), epoch=0, session_id=0)
        yield from answers

    brokers.play(scenario)


@pytest.mark.parametrize(("first", "then"), [(12, 13), (13, 12)])
def test_a_fetch_session_by_name_is_none_by_id(brokers, first, then):
    def scenario(side: Side):
        read(side)
        answer = side.ask(
            ApiKey.FETCH, fetch((side.name("read", first >= 13), 1, 0), session_id=0, session_epoch=0), first
        )
        yield answer
        yield side.ask(ApiKey.FETCH, fetch(session_id=answer.session_id, session_epoch=1), then)

    brokers.play(scenario)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_reading_while_a_transaction_is_open(brokers, version):
    def scenario(side: Side):
        if not side.has_topic("transaction"):
            side.create_topic("transaction")
            inside = idempotent(b"in it", sequence=0, timestamp=2_000_000, transactional=True)
            for records in (ONE, inside, batch(b"after", timestamp=3_000_000)):
                request = produce(("transaction", 0, records), transactional_id="x")
                yield side.ask(ApiKey.PRODUCE, request, 9)
        for isolation_level in (0, 1):
            for offset in range(5):
                name = side.name("transaction", version >= 13)
                yield side.ask(ApiKey.FETCH, fetch((name, 0, offset), isolation_level=isolation_level), version)
            for timestamp in (-1, -2, -3, 1_500_000, 2_500_000):
                request = list_offsets(("transaction", 0, timestamp), isolation_level=isolation_level)
                yield side.ask(ApiKey.LIST_OFFSETS, request, min(version, 11))

    brokers.play(scenario)


LIST_OFFSETS = {
    **{f"timestamp {t}": list_offsets(("read", 0, t), ("read", 1, t), ("read", 2, t)) for t in range(-8, 2)},
    **{f"time {t}": list_offsets(("read", 0, t)) for t in (1001, 1002, 1003, 1005, 1006, 2**63 - 1, -(2**63))},
    "read committed, the end": list_offsets(("read", 0, -1), isolation_level=1),
    "read committed, a time": list_offsets(("read", 0, 1004), isolation_level=1),
    "an isolation level that nobody knows": list_offsets(("read", 0, -1), ("unknown", 0, -1), isolation_level=2),
    "a partition twice": list_offsets(("read", 0, -1), ("read", 0, -2), ("read", 1, -1)),
    "a partition that is not there": list_offsets(("read", 9, -1), ("read", 0, -1)),
    "a negative partition": list_offsets(("read", -1, -1)),
    "a topic that is not there": list_offsets(("unknown", 0, -1), ("read", 0, -1)),
    "an empty name": list_offsets(("", 0, -1)),
    "nothing": list_offsets(),
    "the leader's epoch": list_offsets(("read", 0, -1), current_leader_epoch=0),
    "an epoch to come": list_offsets(("read", 0, -1), current_leader_epoch=1),
    "an epoch below all": list_offsets(("read", 0, -1), current_leader_epoch=-2),
}


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize("case", LIST_OFFSETS)
def test_list_offsets(brokers, case, version):
    def scenario(side: Side):
        read(side)
        yield side.ask(ApiKey.LIST_OFFSETS, LIST_OFFSETS[case], version)

    brokers.play(scenario)


def epochs(*parts, replica_id=-1):
    """Where leader epochs end: each part is a topic, a partition, the leader's epoch, and the epoch in question."""
    return OffsetForLeaderEpochRequest(
        replica_id=replica_id,
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
                    for _, partition, current, epoch in group
                ],
            )
            for topic, group in groupby(parts, key=lambda part: part[0])
        ],
    )


OFFSET_FOR_LEADER_EPOCH = {
    **{f"epoch {e}": epochs(("read", 0, -1, e), ("read", 1, -1, e), ("read", 2, -1, e)) for e in (-2, -1, 0, 1, 9)},
    **{f"the leader's epoch {e}": epochs(("read", 0, e, 0)) for e in (-2, -1, 0, 1)},
    "a partition that is not there": epochs(("read", 9, -1, 0), ("read", 0, -1, 0)),
    "a topic that is not there": epochs(("unknown", 0, -1, 0)),
    "a partition twice": epochs(("read", 0, -1, 0), ("read", 0, -1, 1)),
    "nothing": epochs(),
    "a replica that is none": epochs(("read", 0, -1, 0), replica_id=-2),
}


@pytest.mark.parametrize("version", range(2, 5))
@pytest.mark.parametrize("case", OFFSET_FOR_LEADER_EPOCH)
def test_offset_for_leader_epoch(brokers, case, version):
    def scenario(side: Side):
        read(side)
        yield side.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, OFFSET_FOR_LEADER_EPOCH[case], version)

    brokers.play(scenario)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("timeout_ms", [60_000, 0, -1])
@pytest.mark.parametrize(
    "has", [(-1, -1), (5, 0), (5, -1), (-1, 0), (-2, -2), (2**63 - 1, 2**15 - 1)], ids="{0[0]} in epoch {0[1]}".format
)
def test_init_producer_id(brokers, has, timeout_ms, version):
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=timeout_ms, producer_id=has[0], producer_epoch=has[1]
    )

    def scenario(side: Side):
        answer = side.ask(ApiKey.INIT_PRODUCER_ID, request, version)
        while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # Apache Kafka, when it is new
            answer = side.ask(ApiKey.INIT_PRODUCER_ID, request, version)
        yield answer

    brokers.play(scenario)
