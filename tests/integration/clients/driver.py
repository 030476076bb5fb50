"""Client libraries of other languages: a process for all scenarios, which performs the calls that it is sent."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from tests.integration.clients.interface import (
    GROUP_POLL_SECONDS,
    PATIENCE,
    Closing,
    ConsumerRecord,
    GroupConsumer,
    Partition,
    Producer,
    ProducerRecord,
    RecordMetadata,
)


class DriverError(Exception):
    """A call failed, or the process has ended."""


class Driver(Closing):
    """The process. A call is one line sent to it, and the answer one line read from it."""

    def __init__(self, command: Sequence[str], errors: Mapping[str, type[Exception]] | None = None) -> None:
        self._errors = errors or {}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, name: str, **arguments: Any) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise DriverError("the process has no pipes")
        try:
            print(json.dumps({"call": name, **arguments}), file=stdin, flush=True)
            line = stdout.readline()
        except BaseException:
            self._process.kill()  # or the next call would get this one's answer
            raise
        if not line:
            raise DriverError(f"the process ended with {self._process.wait(PATIENCE)}")
        answer = json.loads(line)
        if "error" in answer:
            raise self._errors.get(answer["error"], DriverError)(f"{answer['error']}: {answer['message']}")
        return answer["result"]

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE)


class Opened(Closing):
    """Something that was opened there."""

    def __init__(self, driver: Driver, kind: str, **arguments: Any) -> None:
        self._driver = driver
        self.number = driver.call(f"open_{kind}", **arguments)

    def call(self, name: str, **arguments: Any) -> Any:
        return self._driver.call(name, on=self.number, **arguments)

    def close(self) -> None:
        self.call("close")


class DrivenProducer(Producer):
    def __init__(self, producer: Opened) -> None:
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


class DrivenGroupConsumer(GroupConsumer):
    def __init__(self, consumer: Opened) -> None:
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
