"""aiokafka: asyncio. Its event loop runs in a thread here, so that scenarios are written once for all clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import InvalidProducerEpoch, MessageSizeTooLargeError, ProducerFenced, for_code

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

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(coroutine, PATIENCE), self._loop).result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class AioKafkaClient(Client):
    name = "aiokafka"
    assignors: ClassVar[dict[Assignor, Any]] = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._loop = LoopThread()
        self._admin = self._loop.run(self._started(lambda: AIOKafkaAdminClient(bootstrap_servers=bootstrap)))

    @staticmethod
    async def _started(make: Any) -> Any:
        """Its objects belong to the loop in which they are created."""
        made = make()
        await made.start()
        return made

    def create_topic(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        topic = NewTopic(name, partitions, 1, topic_configs=configs or {})
        topic.replication_factor = -1  # the broker's default, which the constructor does not accept
        answer = self._loop.run(self._admin.create_topics([topic]))
        check(code for _, code, *_ in answer.topic_errors)

    def delete_topic(self, name: str) -> None:
        check(code for _, code, *_ in self._loop.run(self._admin.delete_topics([name])).topic_error_codes)

    def create_partitions(self, topic: str, total_count: int) -> None:
        self._loop.run(self._admin.create_partitions({topic: NewPartitions(total_count)}))

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
        for answer in self._loop.run(self._admin.alter_configs([resource])):
            check(code for code, *_ in answer.resources)

    def delete_records(self, topic: str, before_offset: int) -> None:
        self._loop.run(self._admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset)}))

    def partition_count(self, topic: str) -> int:
        (description,) = self._loop.run(self._admin.describe_topics([topic]))
        return len(description["partitions"])

    def producer(
        self,
        compression: Compression = "none",
        acks: Acks = "all",
        enable_idempotence: bool | None = None,
        metadata_max_age_ms: int = 300_000,
    ) -> Producer:
        def make() -> AIOKafkaProducer:
            return AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if compression == "none" else compression,
                acks=acks if acks == "all" else int(acks),
                enable_idempotence=bool(enable_idempotence),
                max_request_size=MAX_REQUEST_SIZE,
                metadata_max_age_ms=metadata_max_age_ms,
                linger_ms=10,
            )

        return AioKafkaProducer(self._loop, self._loop.run(self._started(make)))

    def transactional_producer(self, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        def make() -> AIOKafkaProducer:
            return AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                linger_ms=10,
            )

        return AioKafkaTransactionalProducer(self._loop, self._loop.run(self._started(make)))

    def consumer(
        self,
        topic: str,
        partition: int = 0,
        auto_offset_reset: OffsetReset = "earliest",
        max_partition_fetch_bytes: int = 1_048_576,
        metadata_max_age_ms: int = 300_000,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> Consumer:
        def make() -> AIOKafkaConsumer:
            return AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap,
                auto_offset_reset=auto_offset_reset,
                max_partition_fetch_bytes=max_partition_fetch_bytes,
                fetch_max_wait_ms=FETCH_MAX_WAIT_MS,
                isolation_level=isolation_level,
                metadata_max_age_ms=metadata_max_age_ms,
            )

        adapted = AioKafkaConsumer(self._loop, self._loop.run(self._started(make)), TopicPartition(topic, partition))
        if auto_offset_reset == "none":
            adapted.seek_to_beginning()
        return adapted

    def group_consumer(
        self, group: str, assignor: Assignor = "range", settings: dict[str, str | int] | None = None
    ) -> GroupConsumer:
        # An assignor's class remembers what its member has, so each member needs one, as in a process of its own.
        members_own = type("MembersOwn", (self.assignors[assignor],), {})

        def make() -> AIOKafkaConsumer:
            return AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap,
                group_id=group,
                partition_assignment_strategy=[members_own],
                **{name.replace(".", "_"): value for name, value in (GROUP_SETTINGS | (settings or {})).items()},
            )

        return AioKafkaGroupConsumer(self._loop, self._loop.run(self._started(make)), group)

    def close(self) -> None:
        self._loop.run(self._admin.close())
        self._loop.stop()


def check(codes: Any) -> None:
    for code in codes:
        if code:
            raise for_code(code)


class AioKafkaProducer(Producer):
    def __init__(self, loop: LoopThread, producer: AIOKafkaProducer) -> None:
        self._loop = loop
        self._producer = producer

    def send(self, topic: str, records: Sequence[ProducerRecord]) -> list[RecordMetadata]:
        return self._loop.run(self._send(topic, records))

    async def _send(self, topic: str, records: Sequence[ProducerRecord]) -> list[RecordMetadata]:
        futures = [
            await self._producer.send(
                topic,
                record.value,
                key=record.key,
                partition=record.partition,
                timestamp_ms=record.timestamp,
                headers=list(record.headers),
            )
            for record in records
        ]
        try:
            sent = [await future for future in futures]
        except MessageSizeTooLargeError as error:
            raise RecordTooLargeError from error
        return [RecordMetadata(each.partition, each.offset) if each else RecordMetadata(-1, -1) for each in sent]

    def close(self) -> None:
        self._loop.run(self._producer.stop())


class AioKafkaTransactionalProducer(AioKafkaProducer, TransactionalProducer):
    def send(self, topic: str, records: Sequence[ProducerRecord]) -> list[RecordMetadata]:
        with fenced():
            return super().send(topic, records)

    def begin(self) -> None:
        with fenced():
            self._loop.run(self._producer.begin_transaction())

    def send_offsets(self, offsets: Mapping[Partition, int], member: GroupConsumer) -> None:
        assert isinstance(member, AioKafkaGroupConsumer)
        positions = {TopicPartition(*part): offset for part, offset in offsets.items()}
        with fenced():
            self._loop.run(self._producer.send_offsets_to_transaction(positions, member.group))

    def commit(self) -> None:
        with fenced():
            self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        with fenced():
            self._loop.run(self._producer.abort_transaction())


@contextmanager
def fenced() -> Iterator[None]:
    """Under the scenarios' name."""
    try:
        yield
    except (ProducerFenced, InvalidProducerEpoch) as error:
        raise ProducerFencedError from error


class AioKafkaConsumer(Consumer):
    def __init__(self, loop: LoopThread, consumer: AIOKafkaConsumer, partition: TopicPartition) -> None:
        self._loop = loop
        self._consumer = consumer
        self._partition = partition
        self._loop.run(self._assign())

    async def _assign(self) -> None:
        self._consumer.assign([self._partition])

    def poll(self) -> list[ConsumerRecord]:
        try:
            batches = self._loop.run(self._consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000)))
        except aiokafka.errors.OffsetOutOfRangeError as error:
            raise OffsetOutOfRangeError from error
        return adapted_records(batches)

    def seek(self, offset: int) -> None:
        async def seek() -> None:
            self._consumer.seek(self._partition, offset)

        self._loop.run(seek())

    def seek_to_beginning(self) -> None:
        self._loop.run(self._consumer.seek_to_beginning(self._partition))

    def seek_to_end(self) -> None:
        self._loop.run(self._consumer.seek_to_end(self._partition))

    def beginning_offset(self) -> int:
        return self._loop.run(self._consumer.beginning_offsets([self._partition]))[self._partition]

    def end_offset(self) -> int:
        return self._loop.run(self._consumer.end_offsets([self._partition]))[self._partition]

    def offset_for_time(self, timestamp: int) -> int | None:
        found = self._loop.run(self._consumer.offsets_for_times({self._partition: timestamp}))[self._partition]
        return None if found is None else found.offset

    def close(self) -> None:
        self._loop.run(self._consumer.stop())


class AioKafkaGroupConsumer(GroupConsumer, ConsumerRebalanceListener):
    def __init__(self, loop: LoopThread, consumer: AIOKafkaConsumer, group: str) -> None:
        super().__init__()
        self.group = group
        self._loop = loop
        self._consumer = consumer
        self._getting: asyncio.Future[dict[TopicPartition, list[Any]]] | None = None

    def subscribe(self, *topics: str) -> None:
        self._loop.run(self._subscribe(topics=topics))

    def subscribe_pattern(self, pattern: str) -> None:
        self._loop.run(self._subscribe(pattern=pattern))

    async def _subscribe(self, **what: Any) -> None:
        self._consumer.subscribe(**what, listener=self)

    def poll(self) -> list[ConsumerRecord]:
        return self._loop.run(self._poll())

    async def _poll(self) -> list[ConsumerRecord]:
        """During a rebalance it waits for other members, which have to be polled too: then it continues later."""
        if self._getting is None:
            self._getting = asyncio.ensure_future(self._consumer.getmany(timeout_ms=int(GROUP_POLL_SECONDS * 1000)))
        await asyncio.wait([self._getting], timeout=2 * GROUP_POLL_SECONDS)
        if not self._getting.done():
            return []
        batches = self._getting.result()
        self._getting = None
        return adapted_records(batches)

    def assignment(self) -> set[Partition]:
        return self._loop.run(self._assignment())

    async def _assignment(self) -> set[Partition]:
        return set(pairs(self._consumer.assignment()))

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.assigned += pairs(assigned)

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.revoked += pairs(revoked)

    def close(self) -> None:
        self._loop.run(self._close())

    async def _close(self) -> None:
        if self._getting is not None:
            self._getting.cancel()
        await self._consumer.stop()


def adapted_records(batches: dict[TopicPartition, list[Any]]) -> list[ConsumerRecord]:
    return [
        ConsumerRecord(r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
        for records in batches.values()
        for r in records
    ]
