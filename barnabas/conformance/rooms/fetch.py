"""Fetch: what is returned, how much of it, and how long a broker waits for more."""

from __future__ import annotations

import time
from typing import Any, Final

from barnabas.client.requests import data
from barnabas.client.requests.records import batch, read_batches, read_values
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import UNKNOWN_ID, Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode

room = Room("fetch", "Records read")

MESSAGES: Final = "Protocol guide: Fetch API"

# A response may be late because the machine is busy, but not by this much.
LATE: Final = 8.0
# How early a response may be because the broker's clock is coarse.
EARLY: Final = 0.02


def _filled(probe: Probe, batches: int = 3, size: int = 100) -> str:
    """A topic with some batches of two records."""
    topic = probe.topic()
    for number in range(batches):
        probe.append(topic, b"%d" % number * size, b"%d" % number * size)
    return topic


def _timed(probe: Probe, *arguments: Any, **fields: Any) -> tuple[Any, float]:
    started = time.monotonic()
    found = probe.fetch(*arguments, **fields)
    return found, time.monotonic() - started


@room.check("from-an-offset", MESSAGES, "Fetch", "Produce")
def from_an_offset(probe: Probe) -> None:
    """Records are returned in order, from the batch that contains the offset up to the high watermark."""
    topic = _filled(probe)
    found = probe.fetch(topic, 3)
    probe.expect_error("Fetch", found.error_code)
    bases = [header.base_offset for header, _ in read_batches(found.records)]
    probe.expect("the base offsets", bases, [2, 4])
    probe.expect("the high watermark", found.high_watermark, 6)


@room.check("log-start", "KIP-107", "Fetch 5+", "Produce")
def log_start(probe: Probe) -> None:
    """The response contains the log start offset."""
    probe.expect("the start", probe.fetch(_filled(probe), 0).log_start_offset, 0)


@room.check("at-the-end", MESSAGES, "Fetch", "Produce")
def at_the_end(probe: Probe) -> None:
    """A Fetch at the end of the log returns no records and no error."""
    found = probe.fetch(_filled(probe), 6)
    probe.expect_error("Fetch", found.error_code)
    probe.expect("the bytes", len(found.records or b""), 0)


@room.check("out-of-range", MESSAGES, "Fetch", "Produce")
def out_of_range(probe: Probe) -> None:
    """An offset beyond the end, or a negative one, gets OFFSET_OUT_OF_RANGE at once, whatever max_wait_ms is."""
    topic = _filled(probe)
    for offset in (7, -1, 2**63 - 1):
        found, seconds = _timed(probe, topic, offset, max_wait_ms=int(LATE * 2000))
        probe.expect_error(f"offset {offset}", found.error_code, ErrorCode.OFFSET_OUT_OF_RANGE)
        probe.require(seconds < LATE, "a response at once", f"after {seconds:.1f} s" if seconds >= LATE else "at once")


@room.check("unknown-partition", MESSAGES, "Fetch")
def unknown_partition(probe: Probe) -> None:
    """A partition that does not exist gets UNKNOWN_TOPIC_OR_PARTITION."""
    found = probe.fetch(probe.topic(), 0, 5)
    probe.expect_error("Fetch", found.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@room.check("unknown-topic", MESSAGES, "Fetch 4-12")
def unknown_topic(probe: Probe) -> None:
    """A topic that does not exist gets UNKNOWN_TOPIC_OR_PARTITION."""
    found = probe.fetch(probe.name(), 0)
    probe.expect_error("Fetch", found.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@room.check("unknown-id", "KIP-516", "Fetch 13+")
def unknown_id(probe: Probe) -> None:
    """A topic id that does not exist gets UNKNOWN_TOPIC_ID."""
    answer = probe.ask(ApiKey.FETCH, data.fetch((UNKNOWN_ID, 0, 0)))
    found = probe.only(answer.responses, "partitions")
    probe.expect_error("Fetch", found.error_code, ErrorCode.UNKNOWN_TOPIC_ID)


@room.check("waits-as-long-as-asked", MESSAGES, "Fetch")
def waits_as_long_as_asked(probe: Probe) -> None:
    """With nothing to read, the response comes when max_wait_ms is over: not before, and not much later."""
    topic = probe.topic()
    found, seconds = _timed(probe, topic, 0, max_wait_ms=400)
    probe.expect("the bytes", len(found.records or b""), 0)
    if 0.4 - EARLY <= seconds < 0.4 + LATE:
        probe.require(True, "a response after 400 ms", "it came then")
    else:
        probe.require(False, "a response after 400 ms", f"after {seconds * 1000:.0f} ms")


@room.check("does-not-wait", MESSAGES, "Fetch")
def does_not_wait(probe: Probe) -> None:
    """With min_bytes 0 or max_wait_ms 0, the response comes at once even if there is nothing to read."""
    topic = probe.topic()
    for fields in ({"min_bytes": 0, "max_wait_ms": int(LATE * 2000)}, {"min_bytes": 1, "max_wait_ms": 0}):
        _, seconds = _timed(probe, topic, 0, **fields)
        probe.require(seconds < LATE, "a response at once", f"after {seconds:.1f} s" if seconds >= LATE else "at once")


@room.check("woken-by-data", MESSAGES, "Fetch", "Produce")
def woken_by_data(probe: Probe) -> None:
    """A waiting Fetch is answered as soon as there is something to read, long before max_wait_ms is over."""
    topic = probe.topic()
    version = probe.version(ApiKey.FETCH)
    wire = probe.connect(probe.target.nodes.get(probe.leader(topic)))
    name = probe.reference(topic, version >= 13)
    wire.send(ApiKey.FETCH, data.fetch((name, 0, 0), max_wait_ms=int(LATE * 2500)), version)
    probe.append(topic, b"something")
    started = time.monotonic()
    found = probe.only(wire.answer().responses, "partitions")
    seconds = time.monotonic() - started
    probe.expect("the values", read_values(found.records), [b"something"])
    probe.require(seconds < LATE, "a response at once", f"after {seconds:.1f} s" if seconds >= LATE else "at once")


@room.check("waits-for-min-bytes", MESSAGES, "Fetch", "Produce")
def waits_for_min_bytes(probe: Probe) -> None:
    """Fewer bytes than min_bytes do not end the wait; when max_wait_ms is over, the response contains them."""
    topic = _filled(probe, 1)
    found, seconds = _timed(probe, topic, 0, max_wait_ms=400, min_bytes=1_000_000)
    probe.expect("the records", len(read_values(found.records)), 2)
    early = seconds < 0.4 - EARLY
    probe.require(not early, "a response after 400 ms", f"after {seconds * 1000:.0f} ms" if early else "it came then")


@room.check("first-batch-fits", "KIP-74", "Fetch", "Produce")
def first_batch_fits(probe: Probe) -> None:
    """The first batch in a response is complete even if it is larger than max_bytes and partition_max_bytes."""
    topic = _filled(probe, 2, size=2000)
    found = probe.fetch(topic, 0, max_bytes=1, partition_max_bytes=1)
    bases = [header.base_offset for header, _ in read_batches(found.records)]
    probe.expect("the whole batches", bases, [0])


@room.check("partition-max-bytes", "KIP-74", "Fetch", "Produce")
def partition_max_bytes(probe: Probe) -> None:
    """A response holds at most partition_max_bytes per partition, except for its first batch."""
    topic = _filled(probe, 4)
    size = len(batch(b"0" * 100, b"0" * 100))
    limit = size * 2 + size // 2
    got = len(probe.fetch(topic, 0, partition_max_bytes=limit).records)
    probe.require(size <= got <= limit, f"{size} to {limit} bytes", f"{got}")


@room.check("max-bytes", "KIP-74", "Fetch", "Produce")
def max_bytes(probe: Probe) -> None:
    """A response holds at most max_bytes in total, except for its first batch."""
    topic = probe.topic_of_one_leader(2)
    for partition in (0, 1):
        for _ in range(3):
            probe.append(topic, b"x" * 300, partition=partition)
    size = len(batch(b"x" * 300))
    version = probe.version(ApiKey.FETCH)
    name = probe.reference(topic, version >= 13)
    request = data.fetch((name, 0, 0), (name, 1, 0), max_bytes=size * 4)
    answer = probe.ask(ApiKey.FETCH, request, version, node=probe.leader(topic))
    got = sum(len(each.records or b"") for part in answer.responses for each in part.partitions)
    probe.require(size <= got <= size * 4, f"{size} to {size * 4} bytes", f"{got}")


@room.check("order-of-partitions", "KIP-74", "Fetch", "Produce")
def order_of_partitions(probe: Probe) -> None:
    """Partitions are filled in the order of the request, so that a client can be fair to them."""
    topic = probe.topic_of_one_leader(2)
    for partition in (0, 1):
        probe.append(topic, b"x" * 300, partition=partition)
    version = probe.version(ApiKey.FETCH)
    name = probe.reference(topic, version >= 13)
    for first, second in ((0, 1), (1, 0)):
        request = data.fetch((name, first, 0), (name, second, 0), max_bytes=1)
        answer = probe.ask(ApiKey.FETCH, request, version, node=probe.leader(topic))
        sizes = {
            each.partition_index: len(each.records or b"") for part in answer.responses for each in part.partitions
        }
        probe.require(sizes[first] > 0 and not sizes[second], f"records of partition {first} only", f"bytes {sizes}")


@room.check("leader-epoch", "KIP-320", "Fetch 9+", "Produce")
def leader_epoch(probe: Probe) -> None:
    """The current leader epoch is accepted, a future one gets UNKNOWN_LEADER_EPOCH, and -1 is not checked."""
    topic = _filled(probe, 1)
    epoch = probe.metadata(topic).topics[0].partitions[0].leader_epoch
    for each, code in ((epoch, ErrorCode.NONE), (-1, ErrorCode.NONE), (epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        found = probe.fetch(topic, 0, partition_fields={"current_leader_epoch": each})
        what = "the leader's epoch" if each == epoch else "no epoch" if each == -1 else "an epoch to come"
        probe.expect_error(what, found.error_code, code)


@room.check("diverging-epoch", "KIP-595", "Fetch 12+", "Produce")
def diverging_epoch(probe: Probe) -> None:
    """If last_fetched_epoch ends before the fetch offset, the response says where it ends and has no records."""
    topic = _filled(probe, 1)
    epoch = probe.metadata(topic).topics[0].partitions[0].leader_epoch
    found = probe.fetch(topic, 3, partition_fields={"last_fetched_epoch": epoch})
    diverging = found.diverging_epoch
    seen = None if diverging is None else (diverging.epoch, diverging.end_offset)
    probe.require(seen == (epoch, 2), "the epoch and its end at 2", f"{seen}")


@room.check("one-error-of-several", MESSAGES, "Fetch", "Produce")
def one_error_of_several(probe: Probe) -> None:
    """An offset out of range is an error of its own partition only, and the response does not wait for the others."""
    topic = probe.topic_of_one_leader(2)
    version = probe.version(ApiKey.FETCH)
    name = probe.reference(topic, version >= 13)
    request = data.fetch((name, 0, 0), (name, 1, 99), max_wait_ms=int(LATE * 2000))
    started = time.monotonic()
    answer = probe.ask(ApiKey.FETCH, request, version, node=probe.leader(topic))
    seconds = time.monotonic() - started
    codes = {each.partition_index: each.error_code for part in answer.responses for each in part.partitions}
    probe.expect("the error codes", codes, {0: 0, 1: ErrorCode.OFFSET_OUT_OF_RANGE.value})
    probe.require(seconds < LATE, "a response at once", f"after {seconds:.1f} s" if seconds >= LATE else "at once")


@room.check("read-committed-plain", "KIP-98", "Fetch", "Produce")
def read_committed_plain(probe: Probe) -> None:
    """Without transactions, read_committed returns everything, and the last stable offset is the high watermark."""
    found = probe.fetch(_filled(probe), 0, isolation_level=1)
    probe.expect("the records", len(read_values(found.records)), 6)
    probe.expect("the last stable offset", found.last_stable_offset, 6)
