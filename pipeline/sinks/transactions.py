"""A transactional producer and its marker: an offset that records how far the output has come.

The marker is an offset committed for the query's own consumer group inside the same transaction as the records, so that
both become true together or not at all. It is read after `init_transactions`, which fences the previous
holder of the transactional id and decides its open transaction: what is read then can no longer change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from barnabas.pipeline.bounded import NoAnswerError, bounded
from barnabas.pipeline.cluster import committed_offset
from barnabas.pipeline.kafka_settings import for_librdkafka
from barnabas.pipeline.sinks.crashes import reached

_SECONDS: Final = 60.0  # for one answer of a broker, including its restart

# What a record has besides key and value, as the producer takes it.
Headers = list[tuple[str, bytes | None]] | None


@dataclass(frozen=True, slots=True)
class Target:
    """Where an exactly-once query writes, and under which names. Travels to executors."""

    bootstrap: str
    settings: Mapping[str, str] = field(repr=False)  # there may be passwords among them
    query: str  # the consumer group of its markers, and the beginning of its transactional ids
    topic: str
    transaction_timeout: float


class Transactions:
    """One transactional id. Not thread-safe."""

    def __init__(
        self, target: Target, transactional_id: str, marker: tuple[str, int], prefix: Literal["task", "batch"]
    ) -> None:
        self._target = target
        self._prefix = prefix
        self._marker_of = marker
        config = for_librdkafka(target.bootstrap, target.settings)
        self._producer = Producer(
            {
                **config,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": int(target.transaction_timeout * 1000),
                "partitioner": "murmur2_random",  # the partition that Java's clients would choose for a key
                "linger.ms": 5,
                "batch.size": 1 << 20,
                "queue.buffering.max.messages": 500_000,
                **{name: value for name, value in target.settings.items() if name in ("compression.type", "linger.ms")},
            }
        )
        group = {"group.id": target.query, "isolation.level": "read_committed", "enable.auto.commit": False}
        self._consumer = Consumer({**config, **group})
        self._retried(self._producer.init_transactions)
        self._reached("initialised")
        self.marker = committed_offset(self._consumer, *marker, _SECONDS)
        self._reached("marker-read")

    def begin(self) -> None:
        self._producer.begin_transaction()

    def is_still_ours(self) -> bool:
        """Begin a transaction; False if another producer has taken over the transactional id since the last one.

        Sending the unchanged marker asks the coordinator; sending a record to a partition would not do so in time.
        """
        self.begin()
        if self.marker is None:
            return True
        try:
            self._send_marker(self.marker)
        except KafkaException:
            return False
        return True

    def produce(self, rows: list[tuple[bytes | None, bytes | None, Headers, int | None]]) -> None:
        produce, topic = self._producer.produce, self._target.topic
        for key, value, headers, partition in rows:
            extra: dict[str, Any] = {}
            if headers:
                extra["headers"] = headers
            if partition is not None:
                extra["partition"] = partition
            while True:
                try:
                    produce(topic, value, key, **extra)
                    break
                except BufferError:
                    self._producer.poll(0.05)  # frees the queue as deliveries are confirmed

    def commit(self, marker: int) -> None:
        """Commit the produced records and the marker together."""
        self._reached("produced")
        self._send_marker(marker)
        self._reached("offsets-sent")
        self._retried(self._producer.commit_transaction)
        self.marker = marker
        self._reached("committed")

    def abort(self) -> None:
        # Fenced or unreachable: the coordinator aborts it at the next init_transactions or by its timeout.
        with suppress(KafkaException, NoAnswerError):
            self._retried(self._producer.abort_transaction)

    def close(self) -> None:
        self._consumer.close()

    def _send_marker(self, marker: int) -> None:
        offsets = [TopicPartition(*self._marker_of, marker)]
        group = self._consumer.consumer_group_metadata()
        self._retried(lambda seconds: self._producer.send_offsets_to_transaction(offsets, group, seconds))

    def _retried(self, call: Callable[[float], None]) -> None:
        """librdkafka asks that a transactional call that timed out or met a transient error be repeated."""
        for attempt in range(3):
            try:
                bounded(call, _SECONDS, "transaction")
                return
            except KafkaException as error:
                if not error.args[0].retriable() or attempt == 2:
                    raise

    def _reached(self, point: str) -> None:
        reached(f"{self._prefix}-{point}")
