"""Idempotent producers: a batch that is sent twice is written once."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.requests import transactions
from barnabas.client.requests.records import batch
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import SETTLING, Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest

room = Room("idempotence", "Idempotent producers")

NEEDS: Final = ("InitProducerId", "Produce", "ListOffsets")
LARGEST: Final = 2**31 - 1


def _new_id(probe: Probe) -> tuple[int, int]:
    answer = probe.until(
        "a producer id",
        lambda: probe.ask(ApiKey.INIT_PRODUCER_ID, transactions.init_producer_id(None)),
        lambda answer: answer.error_code not in SETTLING,
    )
    probe.expect_error("InitProducerId", answer.error_code)
    return answer.producer_id, answer.producer_epoch


class _Producer:
    """Sends batches with its own producer id and any given sequence."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self.id, self.epoch = _new_id(probe)

    def send(self, topic: str, sequence: int, *values: bytes, epoch: int | None = None, partition: int = 0) -> Any:
        records = batch(
            *values,
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
        )
        return self._probe.produce(topic, records, partition)

    def sent(self, topic: str, sequence: int, *values: bytes, **fields: Any) -> int:
        answer = self.send(topic, sequence, *values, **fields)
        self._probe.expect_error(f"sequence {sequence}", answer.error_code)
        return int(answer.base_offset)


@room.check("fresh-ids", "KIP-98", "InitProducerId")
def fresh_ids(probe: Probe) -> None:
    """Every InitProducerId without a transactional id returns a new producer id with epoch 0."""
    given = [_new_id(probe) for _ in range(5)]
    probe.expect("the number of different ids", len({producer_id for producer_id, _ in given}), 5)
    probe.expect("the epochs", {epoch for _, epoch in given}, {0})


@room.check("in-sequence", "KIP-98", *NEEDS)
def in_sequence(probe: Probe) -> None:
    """Batches with consecutive sequences are appended."""
    topic, producer = probe.topic(), _Producer(probe)
    probe.expect("the first", producer.sent(topic, 0, b"a", b"b"), 0)
    probe.expect("the second", producer.sent(topic, 2, b"c"), 2)


@room.check("duplicate", "KIP-98", *NEEDS)
def duplicate(probe: Probe) -> None:
    """A batch that is sent again gets its original offset and no error, and is not appended again."""
    topic, producer = probe.topic(), _Producer(probe)
    probe.append(topic, b"before")
    probe.expect("the offset", producer.sent(topic, 0, b"a", b"b"), 1)
    probe.expect("the offset the second time", producer.sent(topic, 0, b"a", b"b"), 1)
    probe.expect("the end of the log", probe.end_offset(topic), 3)
    probe.expect("the next batch", producer.sent(topic, 2, b"c"), 3)


@room.check("duplicate-of-five", "KIP-98", *NEEDS)
def duplicate_of_five(probe: Probe) -> None:
    """The broker remembers the last five batches of a producer, so that five may be in flight."""
    topic, producer = probe.topic(), _Producer(probe)
    for sequence in range(5):
        producer.sent(topic, sequence)
    for sequence in (0, 3, 4):
        probe.expect(f"batch {sequence} again", producer.sent(topic, sequence), sequence)
    probe.expect("the end of the log", probe.end_offset(topic), 5)


@room.check("gap", "KIP-98", *NEEDS)
def gap(probe: Probe) -> None:
    """A gap in the sequence gets OUT_OF_ORDER_SEQUENCE_NUMBER, and the right sequence is accepted afterwards."""
    topic, producer = probe.topic(), _Producer(probe)
    producer.sent(topic, 0)
    probe.expect_error("a gap", producer.send(topic, 2).error_code, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    probe.expect("the right one", producer.sent(topic, 1), 1)


@room.check("overlapping", "KIP-98", *NEEDS)
def overlapping(probe: Probe) -> None:
    """A batch that starts like a known one but is longer is not a duplicate: OUT_OF_ORDER_SEQUENCE_NUMBER."""
    topic, producer = probe.topic(), _Producer(probe)
    producer.sent(topic, 0, b"a")
    code = producer.send(topic, 0, b"a", b"b").error_code
    probe.expect_error("a longer one", code, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


@room.check("stale-epoch", "KIP-98", *NEEDS)
def stale_epoch(probe: Probe) -> None:
    """An epoch below the producer's latest gets INVALID_PRODUCER_EPOCH."""
    topic, producer = probe.topic(), _Producer(probe)
    producer.sent(topic, 0, epoch=1)
    probe.expect_error("epoch 0", producer.send(topic, 1, epoch=0).error_code, ErrorCode.INVALID_PRODUCER_EPOCH)
    probe.expect_error("epoch 1", producer.send(topic, 1, epoch=1).error_code)


@room.check("new-epoch-from-zero", "KIP-360", *NEEDS)
def new_epoch_from_zero(probe: Probe) -> None:
    """A new epoch starts at sequence 0; any other gets OUT_OF_ORDER_SEQUENCE_NUMBER."""
    topic, producer = probe.topic(), _Producer(probe)
    producer.sent(topic, 0)
    code = producer.send(topic, 1, epoch=1).error_code
    probe.expect_error("sequence 1 in a new epoch", code, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    probe.expect_error("sequence 0", producer.send(topic, 0, epoch=1).error_code)


@room.check("wraps", "KIP-98", *NEEDS)
def wraps(probe: Probe) -> None:
    """Sequences wrap around from the maximum to 0, within a batch too."""
    topic, producer = probe.topic(), _Producer(probe)
    producer.sent(topic, LARGEST - 1)
    producer.sent(topic, LARGEST, b"a", b"b", b"c")
    probe.expect("the batch after it", producer.sent(topic, 2), 4)


@room.check("per-partition", "KIP-98", *NEEDS)
def per_partition(probe: Probe) -> None:
    """Every partition has its own sequences."""
    topic, producer = probe.topic(partitions=2), _Producer(probe)
    probe.expect("partition 0", producer.sent(topic, 0), 0)
    probe.expect("partition 1", producer.sent(topic, 0, partition=1), 0)


@room.check("no-sequence", "KIP-98", *NEEDS)
def no_sequence(probe: Probe) -> None:
    """A batch with a producer id and a negative sequence gets INVALID_RECORD."""
    topic, producer = probe.topic(), _Producer(probe)
    probe.expect_error("sequence -1", producer.send(topic, -1).error_code, ErrorCode.INVALID_RECORD)


@room.check("described", "KIP-664", *NEEDS, "DescribeProducers")
def described(probe: Probe) -> None:
    """DescribeProducers shows the producers of a partition, with epoch and last sequence."""
    topic, producer = probe.topic(), _Producer(probe)
    producer.sent(topic, 0, b"a", b"b")
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    answer = probe.ask(ApiKey.DESCRIBE_PRODUCERS, request, node=probe.leader(topic))
    found = probe.only(answer.topics, "partitions")
    probe.expect_error("DescribeProducers", found.error_code)
    seen = [
        (each.producer_id == producer.id, each.producer_epoch, each.last_sequence) for each in found.active_producers
    ]
    probe.expect("the producers", seen, [(True, producer.epoch, 1)])
