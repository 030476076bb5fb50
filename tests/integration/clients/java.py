"""Java kafka-clients: one virtual machine for all scenarios, which tests/java/ClientDriver.java drives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.integration.clients.driver import DrivenGroupConsumer, DrivenProducer, Driver, Opened, adapted_record
from tests.integration.clients.interface import (
    FETCH_MAX_WAIT_MS,
    MAX_REQUEST_SIZE,
    POLL_SECONDS,
    Acks,
    Assignor,
    Client,
    Compression,
    Consumer,
    ConsumerRecord,
    GroupConsumer,
    InvalidTxnStateError,
    IsolationLevel,
    OffsetOutOfRangeError,
    OffsetReset,
    Partition,
    Producer,
    ProducerFencedError,
    RecordTooLargeError,
    TransactionalProducer,
    group_settings,
)
from tests.support.apache_kafka import java_command
from tests.support.java_client import PROGRAMS

ERRORS: dict[str, type[Exception]] = {
    "OffsetOutOfRangeException": OffsetOutOfRangeError,
    "RecordTooLargeException": RecordTooLargeError,
    "ProducerFencedException": ProducerFencedError,
    "InvalidProducerEpochException": ProducerFencedError,
    "InvalidTxnStateException": InvalidTxnStateError,
}


class JavaDriver(Driver):
    def __init__(self) -> None:
        super().__init__(java_command(PROGRAMS / "ClientDriver.java"), ERRORS)


class JavaClient(Client):
    name = "java"
    assignors: ClassVar[dict[Assignor, Any]] = {
        "range": "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    }

    def __init__(self, bootstrap: str, driver: JavaDriver) -> None:
        super().__init__(bootstrap)
        self._driver = driver
        self._admin = Opened(driver, "admin", settings={"bootstrap.servers": bootstrap})

    def create_topic(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        self._admin.call("create_topic", topic=name, partitions=partitions, configs=configs or {})

    def delete_topic(self, name: str) -> None:
        self._admin.call("delete_topic", topic=name)

    def create_partitions(self, topic: str, total_count: int) -> None:
        self._admin.call("create_partitions", topic=topic, total_count=total_count)

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        self._admin.call("alter_configs", topic=topic, configs=configs)

    def delete_records(self, topic: str, before_offset: int) -> None:
        self._admin.call("delete_records", topic=topic, before_offset=before_offset)

    def partition_count(self, topic: str) -> int:
        count: int = self._admin.call("partition_count", topic=topic)
        return count

    def producer(
        self,
        compression: Compression = "none",
        acks: Acks = "all",
        enable_idempotence: bool | None = None,
        metadata_max_age_ms: int = 300_000,
    ) -> Producer:
        settings = {
            "bootstrap.servers": self.bootstrap,
            "compression.type": compression,
            "acks": acks,
            "max.request.size": str(MAX_REQUEST_SIZE),
            "metadata.max.age.ms": str(metadata_max_age_ms),
            "linger.ms": "10",
        }
        if enable_idempotence is not None:
            settings["enable.idempotence"] = str(enable_idempotence)
        return DrivenProducer(Opened(self._driver, "producer", settings=settings))

    def transactional_producer(self, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        settings = {
            "bootstrap.servers": self.bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": str(timeout_ms),
            "linger.ms": "10",
        }
        producer = Opened(self._driver, "producer", settings=settings)
        producer.call("init_transactions")
        return JavaTransactionalProducer(producer)

    def consumer(
        self,
        topic: str,
        partition: int = 0,
        auto_offset_reset: OffsetReset = "earliest",
        max_partition_fetch_bytes: int = 1_048_576,
        metadata_max_age_ms: int = 300_000,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> Consumer:
        settings = {
            "bootstrap.servers": self.bootstrap,
            "auto.offset.reset": auto_offset_reset,
            "max.partition.fetch.bytes": str(max_partition_fetch_bytes),
            "fetch.max.wait.ms": str(FETCH_MAX_WAIT_MS),
            "isolation.level": isolation_level,
            "metadata.max.age.ms": str(metadata_max_age_ms),
        }
        adapted = JavaConsumer(Opened(self._driver, "consumer", settings=settings, topic=topic, partition=partition))
        if auto_offset_reset == "none":
            adapted.seek_to_beginning()
        return adapted

    def group_consumer(
        self, group: str, assignor: Assignor = "range", settings: dict[str, str | int] | None = None
    ) -> GroupConsumer:
        all_settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": group,
            **group_settings(self.assignors[assignor], settings),
        }
        return DrivenGroupConsumer(Opened(self._driver, "group_consumer", settings=all_settings))

    def close(self) -> None:
        self._admin.close()


class JavaTransactionalProducer(DrivenProducer, TransactionalProducer):
    def begin(self) -> None:
        self._producer.call("begin_transaction")

    def send_offsets(self, offsets: Mapping[Partition, int], member: GroupConsumer) -> None:
        assert isinstance(member, DrivenGroupConsumer)
        positions = [{"topic": topic, "partition": part, "offset": at} for (topic, part), at in offsets.items()]
        self._producer.call("send_offsets_to_transaction", offsets=positions, member=member.number)

    def commit(self) -> None:
        self._producer.call("commit_transaction")

    def abort(self) -> None:
        self._producer.call("abort_transaction")


class JavaConsumer(Consumer):
    def __init__(self, consumer: Opened) -> None:
        self._consumer = consumer

    def poll(self) -> list[ConsumerRecord]:
        return [adapted_record(each) for each in self._consumer.call("poll", ms=int(POLL_SECONDS * 1000))]

    def seek(self, offset: int) -> None:
        self._consumer.call("seek", offset=offset)

    def seek_to_beginning(self) -> None:
        self._consumer.call("seek_to_beginning")

    def seek_to_end(self) -> None:
        self._consumer.call("seek_to_end")

    def beginning_offset(self) -> int:
        offset: int = self._consumer.call("beginning_offset")
        return offset

    def end_offset(self) -> int:
        offset: int = self._consumer.call("end_offset")
        return offset

    def offset_for_time(self, timestamp: int) -> int | None:
        offset: int | None = self._consumer.call("offset_for_time", timestamp=timestamp)
        return offset

    def close(self) -> None:
        self._consumer.close()
