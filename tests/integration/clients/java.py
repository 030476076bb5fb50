"""Java kafka-clients: one virtual machine for all scenarios, which tests/java/ClientDriver.java drives."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tests.integration.clients.interface import (
    FETCH_MAX_WAIT_MS,
    GROUP_POLL_SECONDS,
    MAX_REQUEST_SIZE,
    PATIENCE,
    POLL_SECONDS,
    Acks,
    Assignor,
    Client,
    Closing,
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
    ProducerRecord,
    RecordMetadata,
    RecordTooLargeError,
    TransactionalProducer,
    group_settings,
)
from tests.support.apache_kafka import JavaError, java_command
from tests.support.java_client import PROGRAMS

ERRORS: dict[str, type[Exception]] = {
    "OffsetOutOfRangeException": OffsetOutOfRangeError,
    "RecordTooLargeException": RecordTooLargeError,
    "ProducerFencedException": ProducerFencedError,
    "InvalidProducerEpochException": ProducerFencedError,
    "InvalidTxnStateException": InvalidTxnStateError,
}


class JavaDriver(Closing):
    """The process. A call is one line sent to it, and the answer one line read from it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command(PROGRAMS / "ClientDriver.java"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def call(self, name: str, **arguments: Any) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise JavaError("the Java process has no pipes")
        try:
            print(json.dumps({"call": name, **arguments}), file=stdin, flush=True)
            line = stdout.readline()
        except BaseException:
            self._process.kill()  # or the next call would get this one's answer
            raise
        if not line:
            raise JavaError(f"the Java process ended with {self._process.wait(PATIENCE)}")
        answer = json.loads(line)
        if "error" in answer:
            raise ERRORS.get(answer["error"], JavaError)(f"{answer['error']}: {answer['message']}")
        return answer["result"]

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE)


class JavaObject(Closing):
    """Something that was opened there."""

    def __init__(self, driver: JavaDriver, kind: str, **arguments: Any) -> None:
        self._driver = driver
        self.number = driver.call(f"open_{kind}", **arguments)

    def call(self, name: str, **arguments: Any) -> Any:
        return self._driver.call(name, on=self.number, **arguments)

    def close(self) -> None:
        self.call("close")


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
        self._admin = JavaObject(driver, "admin", settings={"bootstrap.servers": bootstrap})

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
        return JavaProducer(JavaObject(self._driver, "producer", settings=settings))

    def transactional_producer(self, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        settings = {
            "bootstrap.servers": self.bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": str(timeout_ms),
            "linger.ms": "10",
        }
        producer = JavaObject(self._driver, "producer", settings=settings)
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
        adapted = JavaConsumer(
            JavaObject(self._driver, "consumer", settings=settings, topic=topic, partition=partition)
        )
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
        return JavaGroupConsumer(JavaObject(self._driver, "group_consumer", settings=all_settings))

    def close(self) -> None:
        self._admin.close()


class JavaProducer(Producer):
    def __init__(self, producer: JavaObject) -> None:
        self._producer = producer

    def send(self, topic: str, records: Sequence[ProducerRecord]) -> list[RecordMetadata]:
        lines = [
            {
                "key": encoded(record.key),
                "value": encoded(record.value),
                "headers": [(name, encoded(value)) for name, value in record.headers],
                "timestamp": record.timestamp,
                "partition": record.partition,
            }
            for record in records
        ]
        return [RecordMetadata(**sent) for sent in self._producer.call("send", topic=topic, records=lines)]

    def close(self) -> None:
        self._producer.close()


class JavaTransactionalProducer(JavaProducer, TransactionalProducer):
    def begin(self) -> None:
        self._producer.call("begin_transaction")

    def send_offsets(self, offsets: Mapping[Partition, int], member: GroupConsumer) -> None:
        assert isinstance(member, JavaGroupConsumer)
        positions = [{"topic": topic, "partition": part, "offset": at} for (topic, part), at in offsets.items()]
        self._producer.call("send_offsets_to_transaction", offsets=positions, member=member.number)

    def commit(self) -> None:
        self._producer.call("commit_transaction")

    def abort(self) -> None:
        self._producer.call("abort_transaction")


class JavaConsumer(Consumer):
    def __init__(self, consumer: JavaObject) -> None:
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


class JavaGroupConsumer(GroupConsumer):
    def __init__(self, consumer: JavaObject) -> None:
        super().__init__()
        self._consumer = consumer

    @property
    def number(self) -> int:
        number: int = self._consumer.number
        return number

    def subscribe(self, *topics: str) -> None:
        self._consumer.call("subscribe", topics=topics)

    def subscribe_pattern(self, pattern: str) -> None:
        self._consumer.call("subscribe_pattern", pattern=pattern)

    def poll(self) -> list[ConsumerRecord]:
        records = [adapted_record(each) for each in self._consumer.call("poll", ms=int(GROUP_POLL_SECONDS * 1000))]
        told = self._consumer.call("rebalances")
        self.assigned += pairs(told["assigned"])
        self.revoked += pairs(told["revoked"])
        return records

    def assignment(self) -> set[Partition]:
        return set(pairs(self._consumer.call("assignment")))

    def close(self) -> None:
        self._consumer.close()


def adapted_record(record: dict[str, Any]) -> ConsumerRecord:
    return ConsumerRecord(
        partition=record["partition"],
        offset=record["offset"],
        timestamp=record["timestamp"],
        key=decoded(record["key"]),
        value=decoded(record["value"]),
        headers=tuple((name, decoded(value)) for name, value in record["headers"]),
    )


def pairs(partitions: list[dict[str, Any]]) -> list[Partition]:
    return [(each["topic"], each["partition"]) for each in partitions]


def encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
