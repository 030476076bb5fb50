"""Produce: valid batches and invalid ones."""

from __future__ import annotations

import time
from typing import Final

from barnabas.client.requests import data
from barnabas.client.requests.records import batch, patched, read_batches
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import UNKNOWN_ID, Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    BATCH_LENGTH_POSITION,
    CONTROL_FLAG,
    CRC_POSITION,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_POSITION,
    MAGIC_POSITION,
    RECORD_COUNT_POSITION,
)
from barnabas.protocol.records.compression import CompressionType

room = Room("produce", "Records written")

MESSAGES: Final = "Protocol guide: Produce API"
FORMAT: Final = "KIP-98; Implementation: Record Batch"

ONE: Final = batch(b"one")
THREE: Final = batch(b"one", b"two", b"three")
HOUR_MS: Final = 3_600_000


def _refused(probe: Probe, topic: str, records: bytes | None, what: str, *codes: ErrorCode) -> None:
    """Expect these records to be refused, nothing to be appended, and the partition to keep working."""
    before = probe.end_offset(topic)
    answer = probe.produce(topic, records)
    probe.expect_error(what, answer.error_code, *codes)
    probe.expect("the base offset", answer.base_offset, -1)
    probe.expect("the end of the log", probe.end_offset(topic), before)
    probe.expect("the offset of what comes next", probe.append(topic, b"next"), before)


@room.check("offsets", MESSAGES, "Produce", "ListOffsets")
def offsets(probe: Probe) -> None:
    """The response has the offset of the first record; offsets have no gaps."""
    topic = probe.topic()
    for count, base in ((1, 0), (3, 1), (2, 4)):
        values = [b"value"] * count
        probe.expect(f"the base offset of {count} records", probe.append(topic, *values), base)
    probe.expect("the end of the log", probe.end_offset(topic), 6)


@room.check("read-back", FORMAT, "Produce", "Fetch")
def read_back(probe: Probe) -> None:
    """Records are read as they were written, with the leader epoch and the offset filled in."""
    topic = probe.topic()
    probe.append(topic, b"one", b"two")
    probe.append(topic, b"three")
    found = probe.read(topic)
    probe.expect("the values", found.values, [b"one", b"two", b"three"])
    headers = [header for header, _ in found.batches]
    probe.expect("the base offsets", [header.base_offset for header in headers], [0, 2])
    probe.require(all(h.partition_leader_epoch >= 0 for h in headers), "leader epochs in the batches", "missing ones")


@room.check("several-partitions", MESSAGES, "Produce")
def several_partitions(probe: Probe) -> None:
    """One request can write to several partitions; a refused partition does not affect the others."""
    topic = probe.topic_of_one_leader(2)
    version = probe.version(ApiKey.PRODUCE)
    name = probe.reference(topic, version >= 13)
    corrupt = patched(ONE, CRC_POSITION, ">I", 1, sealed=False)
    request = data.produce((name, 0, corrupt), (name, 1, THREE))
    answer = probe.ask(ApiKey.PRODUCE, request, version, node=probe.leader(topic, 1))
    codes = {each.index: each.error_code for part in answer.responses for each in part.partition_responses}
    probe.expect("the partitions in the response", sorted(codes), [0, 1])
    probe.require(codes[0] != ErrorCode.NONE, "the bad one to be refused", f"{codes[0]}")
    probe.expect_error("the good one", codes[1])


@room.check("acks-1", MESSAGES, "Produce", "ListOffsets")
def acks_1(probe: Probe) -> None:
    """With acks=1 the response has the offset once the leader has written the records."""
    topic = probe.topic()
    answer = probe.produce(topic, ONE, acks=1)
    probe.expect_error("Produce", answer.error_code)
    probe.expect("the base offset", answer.base_offset, 0)


@room.check("acks-0", MESSAGES, "Produce", "ListOffsets")
def acks_0(probe: Probe) -> None:
    """acks=0 gets no response: the next response is for the next request, and the records are written."""
    topic = probe.topic()
    version = probe.version(ApiKey.PRODUCE)
    wire = probe.node(probe.leader(topic))
    request = data.produce((probe.reference(topic, version >= 13), 0, ONE), acks=0)
    wire.send(ApiKey.PRODUCE, request, version, answered=False)
    probe.until("the record to be there", lambda: probe.end_offset(topic), lambda end: end == 1)
    probe.require(True, "no answer, and the record", "so it was")


@room.check("acks-0-refused", MESSAGES, "Produce")
def acks_0_refused(probe: Probe) -> None:
    """With acks=0 there is no response to report an error, so the connection is closed."""
    topic = probe.topic()
    version = probe.version(ApiKey.PRODUCE)
    wire = probe.connect(probe.target.nodes.get(probe.leader(topic)))
    request = data.produce((probe.reference(topic, version >= 13), 7, ONE), acks=0)
    wire.send(ApiKey.PRODUCE, request, version, answered=False)
    probe.expect_closed(wire, "Produce with acks=0 to a partition that does not exist")


@room.check("acks-invalid", MESSAGES, "Produce")
def acks_invalid(probe: Probe) -> None:
    """Any acks value other than 0, 1 and -1 gets INVALID_REQUIRED_ACKS, and nothing is written."""
    topic = probe.topic()
    for acks in (2, -2):
        answer = probe.produce(topic, ONE, acks=acks)
        probe.expect_error(f"acks={acks}", answer.error_code, ErrorCode.INVALID_REQUIRED_ACKS)
    probe.expect("the end of the log", probe.end_offset(topic), 0)


@room.check("unknown-partition", MESSAGES, "Produce")
def unknown_partition(probe: Probe) -> None:
    """A partition that does not exist gets UNKNOWN_TOPIC_OR_PARTITION."""
    topic = probe.topic()
    for partition in (1, -1):
        code = probe.produce(topic, ONE, partition).error_code
        probe.expect_error(f"partition {partition}", code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@room.check("unknown-topic", MESSAGES, "Produce 3-12")
def unknown_topic(probe: Probe) -> None:
    """A topic that does not exist gets UNKNOWN_TOPIC_OR_PARTITION, and Produce does not create it."""
    name = probe.name()
    probe.expect_error("Produce", probe.produce(name, ONE).error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    (found,) = probe.metadata(name).topics
    probe.expect_error("Metadata", found.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@room.check("unknown-id", "KIP-516", "Produce 13+")
def unknown_id(probe: Probe) -> None:
    """A topic id that does not exist gets UNKNOWN_TOPIC_ID."""
    answer = probe.ask(ApiKey.PRODUCE, data.produce((UNKNOWN_ID, 0, ONE)))
    found = probe.only(answer.responses, "partition_responses")
    probe.expect_error("Produce", found.error_code, ErrorCode.UNKNOWN_TOPIC_ID)


@room.check("internal-topic", "Documentation: internal topics", "Produce 3-12", "FindCoordinator")
def internal_topic(probe: Probe) -> None:
    """Clients cannot write to __consumer_offsets: INVALID_TOPIC_EXCEPTION."""
    probe.coordinator(probe.group())
    code = probe.produce("__consumer_offsets", ONE).error_code
    probe.expect_error("Produce", code, ErrorCode.INVALID_TOPIC_EXCEPTION)


@room.check("bad-checksum", FORMAT, "Produce", "ListOffsets")
def bad_checksum(probe: Probe) -> None:
    """A batch with a wrong CRC-32C, or with a flipped bit, gets CORRUPT_MESSAGE."""
    topic = probe.topic()
    _refused(
        probe, topic, patched(ONE, CRC_POSITION, ">I", 1, sealed=False), "a wrong checksum", ErrorCode.CORRUPT_MESSAGE
    )
    _refused(probe, topic, ONE[:-1] + bytes([ONE[-1] ^ 1]), "a flipped bit", ErrorCode.CORRUPT_MESSAGE)


@room.check("old-magic", "KIP-724", "Produce", "ListOffsets")
def old_magic(probe: Probe) -> None:
    """Record formats 0 and 1 are refused from Produce v3 on."""
    topic = probe.topic()
    for magic in (0, 1):
        records = patched(ONE, MAGIC_POSITION, ">b", magic)
        _refused(
            probe, topic, records, f"magic {magic}", ErrorCode.INVALID_RECORD, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        )


@room.check("unknown-magic", FORMAT, "Produce", "ListOffsets")
def unknown_magic(probe: Probe) -> None:
    """A record format that does not exist is refused."""
    topic = probe.topic()
    records = patched(ONE, MAGIC_POSITION, ">b", 3)
    _refused(probe, topic, records, "magic 3", ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)


@room.check("no-records", MESSAGES, "Produce", "ListOffsets")
def no_records(probe: Probe) -> None:
    """A partition without a batch is refused: a request has exactly one batch per partition."""
    topic = probe.topic()
    _refused(probe, topic, b"", "no records", ErrorCode.INVALID_RECORD)


@room.check("two-batches", MESSAGES, "Produce", "ListOffsets")
def two_batches(probe: Probe) -> None:
    """From version 3 on, two batches for one partition are both refused with INVALID_RECORD."""
    topic = probe.topic()
    _refused(probe, topic, ONE + THREE, "two batches", ErrorCode.INVALID_RECORD)


@room.check("cut-batch", FORMAT, "Produce", "ListOffsets")
def cut_batch(probe: Probe) -> None:
    """A batch that is cut short, in its header or in its records, is refused."""
    topic = probe.topic()
    codes = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
    for what, records in (
        ("a part of the header", ONE[: HEADER_SIZE - 1]),
        ("no records after the header", ONE[:HEADER_SIZE]),
        ("all but the last byte", THREE[:-1]),
    ):
        _refused(probe, topic, records, what, *codes)


@room.check("lying-length", FORMAT, "Produce", "ListOffsets")
def lying_length(probe: Probe) -> None:
    """A batch length that is too large, too small or negative is refused."""
    topic = probe.topic()
    codes = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
    for length in (len(ONE) - 11, len(ONE) - 13, 0, -1, 2**30):
        _refused(probe, topic, patched(ONE, BATCH_LENGTH_POSITION, ">i", length), f"a length of {length}", *codes)


@room.check("lying-count", FORMAT, "Produce", "ListOffsets")
def lying_count(probe: Probe) -> None:
    """A record count that does not match the last offset delta gets INVALID_RECORD."""
    topic = probe.topic()
    for count in (4, 2, 0, -1):
        records = patched(THREE, RECORD_COUNT_POSITION, ">i", count)
        _refused(probe, topic, records, f"a count of {count} for 3 records", ErrorCode.INVALID_RECORD)


@room.check("lying-offsets", FORMAT, "Produce", "ListOffsets")
def lying_offsets(probe: Probe) -> None:
    """A last offset delta that does not match the record count gets INVALID_RECORD."""
    topic = probe.topic()
    for delta in (3, 1, -1):
        records = patched(THREE, LAST_OFFSET_DELTA_POSITION, ">i", delta)
        _refused(probe, topic, records, f"a last offset delta of {delta}", ErrorCode.INVALID_RECORD)


@room.check("control-batch", "KIP-98", "Produce", "ListOffsets")
def control_batch(probe: Probe) -> None:
    """A client cannot write a control batch: INVALID_RECORD."""
    topic = probe.topic()
    records = patched(ONE, ATTRIBUTES_POSITION, ">h", CONTROL_FLAG)
    _refused(probe, topic, records, "a control batch", ErrorCode.INVALID_RECORD)


@room.check("codecs", "KIP-110; Implementation: Record Batch", "Produce 7+", "Fetch 10+")
def codecs(probe: Probe) -> None:
    """Batches of every codec (gzip, snappy, lz4, zstd) are returned unchanged."""
    topic = probe.topic()
    for number, codec in enumerate(CompressionType):
        if codec is not CompressionType.NONE:
            probe.append(topic, b"a" * 100, b"%d" % number, compression=codec)
    found = probe.read(topic).batches
    expected = [codec.value for codec in CompressionType if codec is not CompressionType.NONE]
    probe.expect("the codecs", [header.compression for header, _ in found], expected)


@room.check("too-large", "Documentation: max.message.bytes", "Produce", "CreateTopics")
def too_large(probe: Probe) -> None:
    """A batch larger than max.message.bytes gets MESSAGE_TOO_LARGE; a smaller one is accepted."""
    topic = probe.topic(configs={"max.message.bytes": "200"})
    probe.expect_error("a small batch", probe.produce(topic, ONE).error_code)
    code = probe.produce(topic, batch(bytes(500))).error_code
    probe.expect_error("a large batch", code, ErrorCode.MESSAGE_TOO_LARGE)


@room.check("key-for-compaction", "Documentation: Log Compaction", "Produce", "CreateTopics")
def key_for_compaction(probe: Probe) -> None:
    """A record without a key gets INVALID_RECORD in a compacted topic."""
    topic = probe.topic(configs={"cleanup.policy": "compact"})
    code = probe.produce(topic, batch(b"value", key=None)).error_code
    probe.expect_error("a record without a key", code, ErrorCode.INVALID_RECORD)
    probe.expect_error("one with a key", probe.produce(topic, ONE).error_code)


@room.check("bad-record-named", "KIP-467", "Produce 8+", "CreateTopics")
def bad_record_named(probe: Probe) -> None:
    """A response that refuses a record gives its index in the batch."""
    topic = probe.topic(configs={"cleanup.policy": "compact"})
    answer = probe.produce(topic, batch(b"a", b"b", key=None))
    probe.expect("the records that are named", [each.batch_index for each in answer.record_errors], [0, 1])


@room.check("timestamp-limits", "KIP-937", "Produce", "CreateTopics")
def timestamp_limits(probe: Probe) -> None:
    """A timestamp too far from the broker's clock gets INVALID_TIMESTAMP if the topic sets a limit."""
    limits = {"message.timestamp.before.max.ms": str(HOUR_MS), "message.timestamp.after.max.ms": str(HOUR_MS)}
    topic = probe.topic(configs=limits)
    now = int(time.time() * 1000)
    probe.expect_error("now", probe.produce(topic, batch(b"now", timestamp=now)).error_code)
    for what, moved in (("a day ago", -24 * HOUR_MS), ("in a day", 24 * HOUR_MS)):
        code = probe.produce(topic, batch(b"then", timestamp=now + moved)).error_code
        probe.expect_error(what, code, ErrorCode.INVALID_TIMESTAMP)


@room.check("log-append-time", "KIP-32", "Produce", "Fetch", "CreateTopics")
def log_append_time(probe: Probe) -> None:
    """In a topic with LogAppendTime, records get the broker's time, and the response contains it."""
    topic = probe.topic(configs={"message.timestamp.type": "LogAppendTime"})
    answer = probe.produce(topic, ONE)
    probe.require(answer.log_append_time_ms > 0, "the time in the response", f"{answer.log_append_time_ms}")
    ((header, _),) = read_batches(probe.fetch(topic, 0).records)
    probe.expect("the batch's time", header.max_timestamp, answer.log_append_time_ms)
    probe.expect("the batch's flag", header.is_log_append_time, True)


@room.check("create-time", "KIP-32", "Produce", "Fetch")
def create_time(probe: Probe) -> None:
    """By default a record keeps its producer's timestamp, and log_append_time_ms in the response is -1."""
    topic = probe.topic(configs={"retention.ms": "-1"})
    answer = probe.produce(topic, batch(b"one", timestamp=1_000_000))
    probe.expect("log_append_time_ms", answer.log_append_time_ms, -1)
    ((header, _),) = read_batches(probe.fetch(topic, 0).records)
    probe.expect("the batch's time", header.max_timestamp, 1_000_000)
