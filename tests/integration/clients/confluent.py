"""confluent-kafka: librdkafka, in C, with its own threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic

from tests.integration.clients.interface import (
    FETCH_MAX_WAIT_MS,
    GROUP_POLL_SECONDS,
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
    group_settings,
    pairs,
)

# Kafka's names of settings that have other names here.
SETTINGS = {"fetch.max.wait.ms": "fetch.wait.max.ms", "metadata.max.age.ms": "topic.metadata.refresh.interval.ms"}


class ConfluentClient(Client):
    name = "confluent-kafka"
    assignors: ClassVar[dict[Assignor, Any]] = {
        "range": "range",
        "roundrobin": "roundrobin",
        "cooperative-sticky": "cooperative-sticky",
    }

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        done(self._admin.create_topics([NewTopic(name, partitions, -1, config=configs or {})]))

    def delete_topic(self, name: str) -> None:
        done(self._admin.delete_topics([name]))

    def create_partitions(self, topic: str, total_count: int) -> None:
        done(self._admin.create_partitions([NewPartitions(topic, total_count)]))

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        done(self._admin.incremental_alter_configs([resource]))

    def delete_records(self, topic: str, before_offset: int) -> None:
        done(self._admin.delete_records([TopicPartition(topic, 0, before_offset)]))

    def partition_count(self, topic: str) -> int:
        return len(self._admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions)

    def producer(
        self,
        compression: Compression = "none",
        acks: Acks = "all",
        enable_idempotence: bool | None = None,
        metadata_max_age_ms: int = 300_000,
    ) -> Producer:
        return ConfluentProducer(
            confluent_kafka.Producer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "compression.type": compression,
                    "acks": acks,
                    "enable.idempotence": bool(enable_idempotence),
                    "message.max.bytes": MAX_REQUEST_SIZE,
                    "topic.metadata.refresh.interval.ms": metadata_max_age_ms,
                    "linger.ms": 10,
                }
            )
        )

    def transactional_producer(self, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,  # it must not be more than that
                "linger.ms": 10,
            }
        )
        producer.init_transactions(PATIENCE)
        return ConfluentTransactionalProducer(producer)

    def consumer(
        self,
        topic: str,
        partition: int = 0,
        auto_offset_reset: OffsetReset = "earliest",
        max_partition_fetch_bytes: int = 1_048_576,
        metadata_max_age_ms: int = 300_000,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> Consumer:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "unused",  # it wants a name, even if nothing is subscribed or committed
                "enable.auto.commit": False,
                "auto.offset.reset": "error" if auto_offset_reset == "none" else auto_offset_reset,
                "fetch.message.max.bytes": max_partition_fetch_bytes,
                "fetch.wait.max.ms": FETCH_MAX_WAIT_MS,
                "isolation.level": isolation_level,
                "queued.min.messages": 1,  # read ahead as little as the others do,
                "fetch.queue.backoff.ms": 10,  # and when that is read, continue at once
                "topic.metadata.refresh.interval.ms": metadata_max_age_ms,
            }
        )
        start = OFFSET_END if auto_offset_reset == "latest" else OFFSET_BEGINNING
        return ConfluentConsumer(consumer, topic, partition, start)

    def group_consumer(
        self, group: str, assignor: Assignor = "range", settings: dict[str, str | int] | None = None
    ) -> GroupConsumer:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                **{
                    SETTINGS.get(name, name): value
                    for name, value in group_settings(self.assignors[assignor], settings).items()
                },
            }
        )
        return ConfluentGroupConsumer(consumer)

    def close(self) -> None:
        del self._admin  # nothing else ends it, and it would keep looking for a broker that has stopped


def done(futures: dict[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(PATIENCE)


class ConfluentProducer(Producer):
    def __init__(self, producer: confluent_kafka.Producer) -> None:
        self._producer = producer

    def send(self, topic: str, records: Sequence[ProducerRecord]) -> list[RecordMetadata]:
        reports: dict[int, tuple[KafkaError | None, confluent_kafka.Message]] = {}  # by the record's number
        for number, record in enumerate(records):
            self._producer.produce(
                topic,
                record.value,
                record.key,
                partition=-1 if record.partition is None else record.partition,
                timestamp=record.timestamp or 0,
                headers=list(record.headers),
                on_delivery=lambda error, message, number=number: reports.update({number: (error, message)}),
            )
        left = self._producer.flush(PATIENCE)
        if left:
            raise AssertionError(f"{left} of {len(records)} records were not acknowledged")
        for error, _ in reports.values():
            if error is not None and error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                raise RecordTooLargeError(error)
            if error is not None:
                raise KafkaException(error)
        messages = [reports[number][1] for number in range(len(records))]
        return [RecordMetadata(message.partition(), message.offset()) for message in messages]

    def close(self) -> None:
        self._producer.close()


class ConfluentTransactionalProducer(ConfluentProducer, TransactionalProducer):
    def send(self, topic: str, records: Sequence[ProducerRecord]) -> list[RecordMetadata]:
        with fenced():
            return super().send(topic, records)

    def begin(self) -> None:
        with fenced():
            self._producer.begin_transaction()

    def send_offsets(self, offsets: Mapping[Partition, int], member: GroupConsumer) -> None:
        assert isinstance(member, ConfluentGroupConsumer)
        positions = [TopicPartition(*part, offset) for part, offset in offsets.items()]
        with fenced():
            self._producer.send_offsets_to_transaction(positions, member.group_metadata(), PATIENCE)

    def commit(self) -> None:
        with fenced():
            self._producer.commit_transaction(PATIENCE)

    def abort(self) -> None:
        with fenced():
            self._producer.abort_transaction(PATIENCE)

    def close(self) -> None:
        with suppress(ProducerFencedError), fenced():  # which it reports once more
            super().close()


@contextmanager
def fenced() -> Iterator[None]:
    """Under the scenarios' name."""
    try:
        yield
    except KafkaException as error:
        codes = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
        if error.args[0].code() in codes:
            raise ProducerFencedError from error
        raise


class ConfluentConsumer(Consumer):
    """The partition is assigned at the first poll: a seek is lost while the start of an assignment is looked up."""

    def __init__(self, consumer: confluent_kafka.Consumer, topic: str, partition: int, start: int) -> None:
        self._consumer = consumer
        self._topic = topic
        self._partition = partition
        self._start = start
        self._is_assigned = False

    def _assign(self) -> None:
        # Without knowing the leader it would look for the first offset in vain, and again half a second later.
        self._consumer.list_topics(self._topic, timeout=PATIENCE)
        self._consumer.assign([TopicPartition(self._topic, self._partition, self._start)])
        self._is_assigned = True

    def poll(self) -> list[ConsumerRecord]:
        if not self._is_assigned:
            self._assign()
        message = self._consumer.poll(POLL_SECONDS)
        if message is None:
            return []
        error = message.error()
        if error is None:
            return [adapted_record(message)]
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise OffsetOutOfRangeError(error)
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return []  # reported once for a topic that is gone; the consumer keeps looking for it
        raise KafkaException(error)

    def seek(self, offset: int) -> None:
        if self._is_assigned:
            self._consumer.seek(TopicPartition(self._topic, self._partition, offset))
        else:
            self._start = offset

    def seek_to_beginning(self) -> None:
        self.seek(OFFSET_BEGINNING)

    def seek_to_end(self) -> None:
        self.seek(OFFSET_END)

    def beginning_offset(self) -> int:
        return self._watermarks()[0]

    def end_offset(self) -> int:
        return self._watermarks()[1]

    def _watermarks(self) -> tuple[int, int]:
        partition = TopicPartition(self._topic, self._partition)
        low, high = self._consumer.get_watermark_offsets(partition, timeout=PATIENCE)
        return low, high

    def offset_for_time(self, timestamp: int) -> int | None:
        wanted = TopicPartition(self._topic, self._partition, timestamp)
        (found,) = self._consumer.offsets_for_times([wanted], timeout=PATIENCE)
        return None if found.offset == OFFSET_END else found.offset

    def close(self) -> None:
        self._consumer.close()


class ConfluentGroupConsumer(GroupConsumer):
    def __init__(self, consumer: confluent_kafka.Consumer) -> None:
        super().__init__()
        self._consumer = consumer

    def subscribe(self, *topics: str) -> None:
        self._consumer.subscribe(list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke)

    def subscribe_pattern(self, pattern: str) -> None:
        self.subscribe(pattern)  # the ^ tells it from a name

    def _on_assign(self, _: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned += pairs(partitions)

    def _on_revoke(self, _: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        self.revoked += pairs(partitions)

    def poll(self) -> list[ConsumerRecord]:
        message = self._consumer.poll(GROUP_POLL_SECONDS)
        if message is None:
            return []
        error = message.error()
        if error is None:
            return [adapted_record(message)]
        if error.code() == KafkaError._MAX_POLL_EXCEEDED:
            return []  # said once; it joins again at the next poll
        if error.code() == KafkaError.NOT_COORDINATOR and "committed offsets" in error.str():
            # It asked a former coordinator for the offsets of what it was assigned. It finds the new one, and never
            # asks that one: https://github.com/confluentinc/librdkafka/issues/5586
            self._consumer.assign(self._consumer.assignment())
            return []
        raise KafkaException(error)

    def assignment(self) -> set[Partition]:
        return set(pairs(self._consumer.assignment()))

    def group_metadata(self) -> Any:
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        self._consumer.close()


def adapted_record(message: confluent_kafka.Message) -> ConsumerRecord:
    timestamp = message.timestamp()[1]
    headers = tuple(message.headers() or ())
    return ConsumerRecord(message.partition(), message.offset(), timestamp, message.key(), message.value(), headers)
