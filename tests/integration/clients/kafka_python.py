"""kafka-python: pure Python, its network in a thread of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import kafka
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import InvalidProducerEpochError, MessageSizeTooLargeError
from kafka.structs import OffsetAndMetadata

from tests.integration.clients.interface import (
    FETCH_MAX_WAIT_MS,
    GROUP_POLL_SECONDS,
    GROUP_SETTINGS,
    MAX_REQUEST_SIZE,
    PATIENCE,
    POLL_SECONDS,
    Acks,
    Assignor,
    Client,
    Compression,
    Consumer,
    ConsumerRecord,
    GroupConsumer,
    IsolationLevel,
    OffsetOutOfRangeError,
    OffsetReset,
    Partition,
    Producer,
    ProducerFencedError,
    ProducerRecord,
    RecordMetadata,
    RecordTooLargeError,
    TransactionalProducer,
    pairs,
)

CODEC_MODULES = {"snappy": "snappy", "lz4": "lz4", "zstd": "zstandard"}


class KafkaPythonClient(Client):
    name = "kafka-python"
    assignors: ClassVar[dict[Assignor, Any]] = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def cannot_compress(self, compression: Compression) -> str | None:
        module = CODEC_MODULES.get(compression)
        if module is None or importlib.util.find_spec(module) is not None:
            return None
        return f"kafka-python has no {compression}: the module {module} is not installed"

    def create_topic(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        self._admin.create_topics(
            {name: {"num_partitions": partitions, "replication_factor": -1, "configs": configs or {}}}
        )

    def delete_topic(self, name: str) -> None:
        self._admin.delete_topics([name])

    def create_partitions(self, topic: str, total_count: int) -> None:
        self._admin.create_partitions({topic: total_count})

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        results = self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])
        if results != {"topic": {topic: "OK"}}:
            raise AssertionError(results)

    def delete_records(self, topic: str, before_offset: int) -> None:
        self._admin.delete_records({TopicPartition(topic, 0): before_offset})

    def partition_count(self, topic: str) -> int:
        (description,) = self._admin.describe_topics([topic])
        return len(description["partitions"])

    def producer(
        self,
        compression: Compression = "none",
        acks: Acks = "all",
        enable_idempotence: bool | None = None,
        metadata_max_age_ms: int = 300_000,
    ) -> Producer:
        return KafkaPythonProducer(
            KafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if compression == "none" else compression,
                acks=acks if acks == "all" else int(acks),
                max_request_size=MAX_REQUEST_SIZE,
                metadata_max_age_ms=metadata_max_age_ms,
                linger_ms=10,
                **({} if enable_idempotence is None else {"enable_idempotence": enable_idempotence}),
            )
        )

    def transactional_producer(self, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=10,
        )
        producer.init_transactions()
        return KafkaPythonTransactionalProducer(producer)

    def consumer(
        self,
        topic: str,
        partition: int = 0,
        auto_offset_reset: OffsetReset = "earliest",
        max_partition_fetch_bytes: int = 1_048_576,
        metadata_max_age_ms: int = 300_000,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> Consumer:
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset=auto_offset_reset,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
            fetch_max_wait_ms=FETCH_MAX_WAIT_MS,
            isolation_level=isolation_level,
            metadata_max_age_ms=metadata_max_age_ms,
        )
        adapted = KafkaPythonConsumer(consumer, TopicPartition(topic, partition))
        if auto_offset_reset == "none":
            adapted.seek_to_beginning()
        return adapted

    def group_consumer(
        self, group: str, assignor: Assignor = "range", settings: dict[str, str | int] | None = None
    ) -> GroupConsumer:
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=group,
            partition_assignment_strategy=[self.assignors[assignor]],
            **{name.replace(".", "_"): value for name, value in (GROUP_SETTINGS | (settings or {})).items()},
        )
        return KafkaPythonGroupConsumer(consumer)

    def close(self) -> None:
        self._admin.close()


class KafkaPythonProducer(Producer):
    def __init__(self, producer: KafkaProducer) -> None:
        self._producer = producer

    def send(self, topic: str, records: Sequence[ProducerRecord]) -> list[RecordMetadata]:
        futures = [
            self._producer.send(
                topic,
                record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp,
            )
            for record in records
        ]
        try:
            sent = [future.get(PATIENCE) for future in futures]
        except MessageSizeTooLargeError as error:
            raise RecordTooLargeError from error
        return [RecordMetadata(metadata.partition, metadata.offset) for metadata in sent]

    def close(self) -> None:
        self._producer.close()


class KafkaPythonTransactionalProducer(KafkaPythonProducer, TransactionalProducer):
    def send(self, topic: str, records: Sequence[ProducerRecord]) -> list[RecordMetadata]:
        with fenced():
            return super().send(topic, records)

    def begin(self) -> None:
        with fenced():
            self._producer.begin_transaction()

    def send_offsets(self, offsets: Mapping[Partition, int], member: GroupConsumer) -> None:
        assert isinstance(member, KafkaPythonGroupConsumer)
        positions = {TopicPartition(*part): OffsetAndMetadata(offset, "", -1) for part, offset in offsets.items()}
        with fenced():
            self._producer.send_offsets_to_transaction(positions, member.group_metadata())

    def commit(self) -> None:
        with fenced():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with fenced():
            self._producer.abort_transaction()


@contextlib.contextmanager
def fenced() -> Iterator[None]:
    """Under the scenarios' name."""
    try:
        yield
    except (kafka.errors.ProducerFencedError, InvalidProducerEpochError) as error:
        raise ProducerFencedError from error


class KafkaPythonConsumer(Consumer):
    def __init__(self, consumer: KafkaConsumer, partition: TopicPartition) -> None:
        self._consumer = consumer
        self._partition = partition
        consumer.assign([partition])

    def poll(self) -> list[ConsumerRecord]:
        try:
            batches = self._consumer.poll(timeout_ms=POLL_SECONDS * 1000)
        except kafka.errors.OffsetOutOfRangeError as error:
            raise OffsetOutOfRangeError from error
        return adapted_records(batches)

    def seek(self, offset: int) -> None:
        self._consumer.seek(self._partition, offset)

    def seek_to_beginning(self) -> None:
        self._consumer.seek_to_beginning(self._partition)

    def seek_to_end(self) -> None:
        self._consumer.seek_to_end(self._partition)

    def beginning_offset(self) -> int:
        return self._consumer.beginning_offsets([self._partition])[self._partition]

    def end_offset(self) -> int:
        return self._consumer.end_offsets([self._partition])[self._partition]

    def offset_for_time(self, timestamp: int) -> int | None:
        found = self._consumer.offsets_for_times({self._partition: timestamp})[self._partition]
        return None if found is None else found.offset

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonGroupConsumer(GroupConsumer, ConsumerRebalanceListener):
    """Polled all the time, by a thread of its own.

    If the answer to a join arrives while the member is not polled, it starts another join (kafka-python 3.0.12). With
    members that are polled in turn, that would never end.
    """

    def __init__(self, consumer: KafkaConsumer) -> None:
        super().__init__()
        self._consumer = consumer
        self._subscriptions: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._records: queue.SimpleQueue[list[ConsumerRecord]] = queue.SimpleQueue()
        self._assignment: set[Partition] = set()
        self._is_closing = threading.Event()
        self._executor = ThreadPoolExecutor(1)
        self._polling = self._executor.submit(self._poll_until_closing)

    def _poll_until_closing(self) -> None:
        while not self._is_closing.is_set():
            with contextlib.suppress(queue.Empty):
                self._consumer.subscribe(**self._subscriptions.get_nowait(), listener=self)
            self._records.put(adapted_records(self._consumer.poll(timeout_ms=POLL_SECONDS * 1000)))
            self._assignment = set(pairs(self._consumer.assignment()))
            # A join because of new metadata is even forgotten, if its answer comes then.
            if self._consumer._coordinator._join_task is not None:
                self._consumer._coordinator.request_rejoin()

    def subscribe(self, *topics: str) -> None:
        self._subscriptions.put({"topics": topics})

    def subscribe_pattern(self, pattern: str) -> None:
        self._subscriptions.put({"pattern": pattern})

    def poll(self) -> list[ConsumerRecord]:
        if self._polling.done():
            self._polling.result()
        try:
            return self._records.get(timeout=GROUP_POLL_SECONDS)
        except queue.Empty:
            return []

    def assignment(self) -> set[Partition]:
        return self._assignment

    def group_metadata(self) -> Any:
        return self._consumer.group_metadata()

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.assigned += pairs(assigned)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.revoked += pairs(revoked)

    def close(self) -> None:
        self._is_closing.set()
        self._executor.shutdown()
        self._consumer.close()


def adapted_records(batches: dict[TopicPartition, list[Any]]) -> list[ConsumerRecord]:
    return [
        ConsumerRecord(r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
        for records in batches.values()
        for r in records
    ]
