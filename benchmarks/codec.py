"""The time to decode and encode Produce, Fetch and Metadata, against kafka-python in the same run.

kafka-python has two codecs, and both are timed: the one that it compiles per version and its client uses, and the one
that walks the schema field by field. All of them get the same messages and take turns, round by round, so that a busy
moment of the machine affects all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from statistics import median
from typing import Any

from kafka.protocol import consumer, metadata, producer

from barnabas.protocol.decoder import decoder
from barnabas.protocol.encoder import encode, encoder
from barnabas.protocol.messages import fetch as f
from barnabas.protocol.messages import metadata as m
from barnabas.protocol.messages import produce as p
from barnabas.protocol.schema import Message

ROUNDS = 15
ROUND_SECONDS = 0.01
BATCH = bytes(200)
TOPIC_ID = bytes(range(16))


@dataclass(frozen=True)
class Timing:
    """Microseconds per call."""

    best: float
    median: float


@dataclass(frozen=True)
class Row:
    message: str
    what: str
    ours: Timing
    compiled: Timing
    field_by_field: Timing

    @property
    def ratio_to_compiled(self) -> float:
        return self.compiled.median / self.ours.median

    @property
    def ratio_to_field_by_field(self) -> float:
        return self.field_by_field.median / self.ours.median


def rows() -> list[Row]:
    """Measure everything: two rows per message, decode and encode."""
    return [row for partitions in (1, 100) for sample in _samples(partitions) for row in _measure(*sample)]


def main() -> None:
    print("codec: microseconds per call, best / median, and their median as a multiple of ours")
    print(f"{'':38}{'':8}{'barnabas':>18}{'kp compiled':>18}{'':7}{'kp field by field':>20}")
    for row in rows():
        print(
            f"{row.message:38}{row.what:8}{_show(row.ours):>18}"
            f"{_show(row.compiled):>18}{row.ratio_to_compiled:6.1f}x"
            f"{_show(row.field_by_field):>20}{row.ratio_to_field_by_field:6.1f}x"
        )


def _show(timing: Timing) -> str:
    return f"{timing.best:.2f} / {timing.median:.2f}"


def _samples(count: int) -> list[tuple[str, Message, int, Any]]:
    """A label, the message, its version, and kafka-python's class for it."""
    indexes = range(count)
    partitions = f"{count} partition{'s' if count > 1 else ''}"
    topics = f"{count} topic{'s' if count > 1 else ''}"
    return [
        (f"ProduceRequest v12, {partitions}", _produce_request(indexes), 12, producer.ProduceRequest),
        (f"ProduceResponse v12, {partitions}", _produce_response(indexes), 12, producer.ProduceResponse),
        (f"FetchRequest v18, {partitions}", _fetch_request(indexes), 18, consumer.FetchRequest),
        (f"FetchResponse v18, {partitions}", _fetch_response(indexes), 18, consumer.FetchResponse),
        (f"MetadataRequest v13, {topics}", _metadata_request(indexes), 13, metadata.MetadataRequest),
        (f"MetadataResponse v13, {partitions}", _metadata_response(indexes), 13, metadata.MetadataResponse),
    ]


def _produce_request(indexes: range) -> Message:
    partitions = [p.PartitionProduceData(index=i, records=BATCH) for i in indexes]
    topics = [p.TopicProduceData(name="orders", partition_data=partitions)]
    return p.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)


def _produce_response(indexes: range) -> Message:
    partitions = [p.PartitionProduceResponse(index=i, base_offset=i, log_start_offset=0) for i in indexes]
    return p.ProduceResponse(responses=[p.TopicProduceResponse(name="orders", partition_responses=partitions)])


def _fetch_request(indexes: range) -> Message:
    partitions = [f.FetchPartition(partition=i, fetch_offset=i, partition_max_bytes=1 << 20) for i in indexes]
    topics = [f.FetchTopic(topic_id=TOPIC_ID, partitions=partitions)]
    return f.FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=topics)


def _fetch_response(indexes: range) -> Message:
    partitions = [f.PartitionData(partition_index=i, high_watermark=i, records=BATCH) for i in indexes]
    return f.FetchResponse(responses=[f.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=partitions)])


def _metadata_request(indexes: range) -> Message:
    return m.MetadataRequest(topics=[m.MetadataRequestTopic(name=f"orders-{i}") for i in indexes])


def _metadata_response(indexes: range) -> Message:
    partitions = [
        m.MetadataResponsePartition(
            partition_index=i, leader_id=1, leader_epoch=5, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]
        )
        for i in indexes
    ]
    brokers = [m.MetadataResponseBroker(node_id=i, host="broker.example.org", port=9092) for i in (1, 2, 3)]
    topics = [m.MetadataResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=partitions)]
    return m.MetadataResponse(brokers=brokers, cluster_id="a-cluster", controller_id=1, topics=topics)


def _measure(label: str, message: Message, version: int, their_class: Any) -> list[Row]:
    data = encode(message, version)
    view = memoryview(data)
    decode_ours, encode_ours = decoder(type(message), version), encoder(type(message), version)
    theirs = their_class.decode(data, version=version)
    fields = their_class._struct
    flexible = their_class.flexible_version_q(version)

    def ours_encoded() -> bytearray:
        out = bytearray()
        encode_ours(message, out, [])
        return out

    def field_by_field_encoded() -> bytes:
        encoded: bytes = fields.encode(theirs, version=version, compact=flexible, tagged=flexible)
        return encoded

    if not data == ours_encoded() == theirs.encode() == field_by_field_encoded():
        raise RuntimeError(f"{label}: the codecs disagree")

    decoding = _race(
        lambda: decode_ours(view, 0),
        lambda: their_class.decode(view, version=version),
        lambda: fields.decode(BytesIO(view), version=version, compact=flexible, tagged=flexible),
    )
    encoding = _race(ours_encoded, theirs.encode, field_by_field_encoded)
    return [Row(label, "decode", *decoding), Row(label, "encode", *encoding)]


def _race(*contestants: Callable[[], object]) -> list[Timing]:
    calls = [_calls_in_a_round(call) for call in contestants]
    times: list[list[float]] = [[] for _ in contestants]
    for _ in range(ROUNDS):
        for number, call in enumerate(contestants):
            times[number].append(_seconds(call, calls[number]) / calls[number] * 1e6)
    return [Timing(min(taken), median(taken)) for taken in times]


def _calls_in_a_round(call: Callable[[], object]) -> int:
    calls = 1
    while _seconds(call, calls) < ROUND_SECONDS:
        calls *= 2
    return calls


def _seconds(call: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - start
