"""ListOffsets and OffsetForLeaderEpoch: finding positions in a log."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.requests import admin, data
from barnabas.client.requests.data import EARLIEST, LATEST, MAX_TIMESTAMP
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType

room = Room("list-offsets", "Offsets by time and by epoch")

MESSAGES: Final = "Protocol guide: ListOffsets API"

# These records have very old timestamps, and retention must not delete them.
FOR_EVER: Final = {"retention.ms": "-1"}


def _filled(probe: Probe) -> str:
    """A topic with records at the timestamps 1000, 2000, 2000, 5000 and 3000."""
    topic = probe.topic(configs=FOR_EVER)
    for time in (1000, 2000, 2000, 5000, 3000):
        probe.append(topic, b"value", timestamp=time)
    return topic


@room.check("ends", MESSAGES, "ListOffsets", "Produce", "DeleteRecords")
def ends(probe: Probe) -> None:
    """-2 returns the start of the log, -1 its end."""
    topic = _filled(probe)
    probe.ask(ApiKey.DELETE_RECORDS, admin.delete_records((topic, 0, 2)), node=probe.leader(topic))
    probe.expect("the start", probe.list_offset(topic, 0, EARLIEST).offset, 2)
    probe.expect("the end", probe.list_offset(topic, 0, LATEST).offset, 5)


@room.check("empty", MESSAGES, "ListOffsets")
def empty(probe: Probe) -> None:
    """An empty log starts and ends at 0 and has no record for any timestamp."""
    topic = probe.topic()
    for timestamp, expected in ((EARLIEST, 0), (LATEST, 0), (1000, -1)):
        probe.expect(f"the offset for {timestamp}", probe.list_offset(topic, 0, timestamp).offset, expected)


@room.check("by-time", "KIP-79", "ListOffsets", "Produce")
def by_time(probe: Probe) -> None:
    """A timestamp finds the first record that is not older and returns its offset and timestamp."""
    topic = _filled(probe)
    for timestamp, offset, time in ((0, 0, 1000), (1000, 0, 1000), (1001, 1, 2000), (2001, 3, 5000), (5000, 3, 5000)):
        found = probe.list_offset(topic, 0, timestamp)
        probe.expect(f"offset and time for {timestamp}", (found.offset, found.timestamp), (offset, time))


@room.check("after-the-last-time", "KIP-79", "ListOffsets", "Produce")
def after_the_last_time(probe: Probe) -> None:
    """A timestamp later than all records gets offset -1, timestamp -1 and no error."""
    found = probe.list_offset(_filled(probe), 0, 5001)
    probe.expect_error("ListOffsets", found.error_code)
    probe.expect("offset and time", (found.offset, found.timestamp), (-1, -1))


@room.check("within-a-batch", "KIP-79", "ListOffsets", "Produce")
def within_a_batch(probe: Probe) -> None:
    """The exact record inside a batch is found, compressed or not."""
    for codec in (CompressionType.NONE, CompressionType.GZIP):
        topic = probe.topic(configs=FOR_EVER)
        records = [NewRecord(time, b"key", b"value") for time in (1000, 2000, 3000)]
        probe.expect_error("Produce", probe.produce(topic, bytes(build_batch(records, compression=codec))).error_code)
        found = probe.list_offset(topic, 0, 1500)
        probe.expect(f"offset and time with codec {codec.value}", (found.offset, found.timestamp), (1, 2000))


@room.check("max-timestamp", "KIP-734", "ListOffsets 7+", "Produce")
def max_timestamp(probe: Probe) -> None:
    """-3 returns the record with the largest timestamp."""
    found = probe.list_offset(_filled(probe), 0, MAX_TIMESTAMP)
    probe.expect("offset and time", (found.offset, found.timestamp), (3, 5000))


@room.check("local-start", "KIP-405", "ListOffsets 8+", "Produce")
def local_start(probe: Probe) -> None:
    """-4 returns the start of the local log: without tiered storage, the start of the log."""
    probe.expect("the offset", probe.list_offset(_filled(probe), 0, -4).offset, 0)


@room.check("leader-epoch-of-a-record", "KIP-320", "ListOffsets 4+", "Produce")
def leader_epoch_of_a_record(probe: Probe) -> None:
    """The response has the leader epoch of the record that was found."""
    topic = _filled(probe)
    epoch = probe.metadata(topic).topics[0].partitions[0].leader_epoch
    probe.expect("the leader epoch", probe.list_offset(topic, 0, 1000).leader_epoch, epoch)


@room.check("unknown-partition", MESSAGES, "ListOffsets")
def unknown_partition(probe: Probe) -> None:
    """A topic or partition that does not exist gets UNKNOWN_TOPIC_OR_PARTITION."""
    topic = probe.topic()
    for name, partition in ((topic, 7), (topic, -1), (probe.name(), 0)):
        code = probe.list_offset(name, partition, LATEST).error_code
        what = "another topic" if name != topic else f"partition {partition}"
        probe.expect_error(what, code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@room.check("wrong-epoch", "KIP-320", "ListOffsets 4+")
def wrong_epoch(probe: Probe) -> None:
    """A future leader epoch gets UNKNOWN_LEADER_EPOCH."""
    topic = probe.topic()
    epoch = probe.metadata(topic).topics[0].partitions[0].leader_epoch
    code = probe.list_offset(topic, 0, LATEST, current_leader_epoch=epoch + 1).error_code
    probe.expect_error("an epoch to come", code, ErrorCode.UNKNOWN_LEADER_EPOCH)
    probe.expect_error("the epoch", probe.list_offset(topic, 0, LATEST, current_leader_epoch=epoch).error_code)


@room.check("partition-twice", MESSAGES, "ListOffsets")
def partition_twice(probe: Probe) -> None:
    """A partition listed twice in a request gets INVALID_REQUEST."""
    topic = probe.topic()
    request = data.list_offsets((topic, 0, LATEST), (topic, 0, EARLIEST))
    answer = probe.ask(ApiKey.LIST_OFFSETS, request, node=probe.leader(topic))
    codes = {each.error_code for part in answer.topics for each in part.partitions}
    probe.expect("the error codes", codes, {ErrorCode.INVALID_REQUEST.value})


def _epoch_end(probe: Probe, topic: str, epoch: int, current: int = -1, partition: int = 0) -> Any:
    request = data.offset_for_leader_epoch((topic, partition, epoch), current_leader_epoch=current)
    answer = probe.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, request, node=probe.leader(topic))
    return probe.only(answer.topics, "partitions")


@room.check("end-of-an-epoch", "KIP-101; KIP-320", "OffsetForLeaderEpoch", "Produce")
def end_of_an_epoch(probe: Probe) -> None:
    """The current epoch ends at the end of the log; an unknown epoch has no end."""
    topic = _filled(probe)
    epoch = probe.metadata(topic).topics[0].partitions[0].leader_epoch
    found = _epoch_end(probe, topic, epoch)
    probe.expect("the epoch and its end", (found.leader_epoch, found.end_offset), (epoch, 5))
    found = _epoch_end(probe, topic, epoch + 1)
    probe.expect("an epoch to come", (found.error_code, found.end_offset), (0, -1))


@room.check("epoch-errors", "KIP-320", "OffsetForLeaderEpoch")
def epoch_errors(probe: Probe) -> None:
    """OffsetForLeaderEpoch returns UNKNOWN_TOPIC_OR_PARTITION and UNKNOWN_LEADER_EPOCH where they apply."""
    topic = probe.topic()
    code = _epoch_end(probe, topic, 0, partition=7).error_code
    probe.expect_error("partition 7", code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    code = _epoch_end(probe, topic, 0, current=1000).error_code
    probe.expect_error("the leader's epoch 1000", code, ErrorCode.UNKNOWN_LEADER_EPOCH)
