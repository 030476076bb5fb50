"""What the scenarios need from a client library, under Kafka's names. One module per library implements it.

A `Consumer` is assigned its partition and needs no group; a `GroupConsumer` is a member of one.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from tests.support.polling import pause

Headers = tuple[tuple[str, bytes | None], ...]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["0", "1", "all"]
OffsetReset = Literal["earliest", "latest", "none"]
IsolationLevel = Literal["read_uncommitted", "read_committed"]
Assignor = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]
Partition = tuple[str, int]  # of which topic, and its number

# How many seconds to wait for something before it counts as missing.
PATIENCE = 90.0
# After how many seconds a poll returns when there is nothing.
POLL_SECONDS = 0.2
# How long a Fetch waits for records. A consumer sends its other requests over the same connection, after it.
FETCH_MAX_WAIT_MS = 50
# What clients may send: more than the broker accepts by default, so that the broker is the one to refuse it.
MAX_REQUEST_SIZE = 8 * 1024 * 1024

# A group's members are polled in turn, so each poll is short.
GROUP_POLL_SECONDS = 0.05
# What members of groups are told, under Kafka's names. A rebalance is noticed by the next heartbeat, and no member is
# removed as long as a scenario waits.
GROUP_SETTINGS: dict[str, str | int] = {
    "auto.offset.reset": "earliest",
    "fetch.max.wait.ms": FETCH_MAX_WAIT_MS,
    "heartbeat.interval.ms": 100,
    "session.timeout.ms": int(2 * PATIENCE * 1000),
}


# With group.protocol=consumer, the broker decides about these.
OF_THE_CLASSIC_PROTOCOL = ("heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy")


def group_settings(strategy: str, settings: dict[str, str | int] | None) -> dict[str, str | int]:
    """The settings of a member of a group: its assignor, and what comes on top of GROUP_SETTINGS."""
    merged = {"partition.assignment.strategy": strategy, **GROUP_SETTINGS, **(settings or {})}
    if merged.get("group.protocol") != "consumer":
        return merged
    return {name: value for name, value in merged.items() if name not in OF_THE_CLASSIC_PROTOCOL}


class OffsetOutOfRangeError(Exception):
    """The consumer's position is not in the log, and its `auto.offset.reset` is none."""


class RecordTooLargeError(Exception):
    """The broker did not accept a record because of its size."""


class ProducerFencedError(Exception):
    """Another producer has the same transactional id now, or the coordinator has ended this one's transaction."""


class InvalidTxnStateError(Exception):
    """The transaction cannot be ended in this way: it has been ended in the other."""


@dataclass(frozen=True)
class ProducerRecord:
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None


@dataclass(frozen=True)
class ConsumerRecord:
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True)
class RecordMetadata:
    """Where a record has been put. With acks 0 it is unknown, and what a library says then means nothing."""

    partition: int
    offset: int


class Closing(ABC):
    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Producer(Closing):
    @abstractmethod
    def send(self, topic: str, records: Sequence[ProducerRecord]) -> list[RecordMetadata]:
        """Send records together and wait until all are acknowledged."""


class TransactionalProducer(Producer):
    """A producer with a transactional id, which is registered with the coordinator when it is opened."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send_offsets(self, offsets: Mapping[Partition, int], member: GroupConsumer) -> None:
        """Make what a member of a group has read part of the transaction."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...


class Consumer(Closing):
    """A consumer of one partition."""

    @abstractmethod
    def poll(self) -> list[ConsumerRecord]:
        """What has arrived; an empty list if nothing does for a moment."""

    @abstractmethod
    def seek(self, offset: int) -> None: ...

    @abstractmethod
    def seek_to_beginning(self) -> None: ...

    @abstractmethod
    def seek_to_end(self) -> None: ...

    @abstractmethod
    def beginning_offset(self) -> int: ...

    @abstractmethod
    def end_offset(self) -> int: ...

    @abstractmethod
    def offset_for_time(self, timestamp: int) -> int | None:
        """The offset of the first record that is not older, or None."""

    def read(self, count: int) -> list[ConsumerRecord]:
        """The next records, `count` at least: those that came together with the last of them are not held back."""
        records: list[ConsumerRecord] = []

        def enough() -> bool:
            records.extend(self.poll())
            return len(records) >= count

        wait_until(enough, lambda: f"{count} records to read; there were {len(records)}")
        return records


class GroupConsumer(Closing):
    """A member of a group. It takes part in the group's rebalances while it is polled."""

    def __init__(self) -> None:
        # What its rebalance listener has been told since it was opened.
        self.assigned: list[Partition] = []
        self.revoked: list[Partition] = []

    @abstractmethod
    def subscribe(self, *topics: str) -> None: ...

    @abstractmethod
    def subscribe_pattern(self, pattern: str) -> None:
        """Subscribe to the topics whose names match a regular expression that begins with ^."""

    @abstractmethod
    def poll(self) -> list[ConsumerRecord]: ...

    @abstractmethod
    def assignment(self) -> set[Partition]: ...


class GroupClient(ABC):
    """A client library as far as groups need it, and the broker that it talks to."""

    name: ClassVar[str]
    # The assignors that it has, and what they are called there.
    assignors: ClassVar[dict[Assignor, Any]]

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def producer(
        self,
        compression: Compression = "none",
        acks: Acks = "all",
        enable_idempotence: bool | None = None,
        metadata_max_age_ms: int = 300_000,
    ) -> Producer:
        """A producer. By default the library chooses whether it is idempotent."""

    @abstractmethod
    def group_consumer(
        self, group: str, assignor: Assignor = "range", settings: dict[str, str | int] | None = None
    ) -> GroupConsumer:
        """A member of a group, not subscribed to anything yet. The settings come on top of GROUP_SETTINGS."""

    @abstractmethod
    def close(self) -> None: ...

    def write(self, topic: str, *records: ProducerRecord, compression: Compression = "none") -> list[RecordMetadata]:
        """Write records together with a producer made for that."""
        with self.producer(compression) as producer:
            return producer.send(topic, records)


class Client(GroupClient):
    """A client library in full."""

    def cannot_compress(self, compression: Compression) -> str | None:
        """Why this library cannot use a codec here, if so."""
        return None

    @abstractmethod
    def create_topic(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None: ...

    @abstractmethod
    def delete_topic(self, name: str) -> None: ...

    @abstractmethod
    def create_partitions(self, topic: str, total_count: int) -> None: ...

    @abstractmethod
    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        """Set these settings of a topic. What happens to its other settings differs between the libraries."""

    @abstractmethod
    def delete_records(self, topic: str, before_offset: int) -> None:
        """Delete the records of partition 0 that come before an offset."""

    @abstractmethod
    def partition_count(self, topic: str) -> int:
        """How many partitions the topic has; 0 if there is no such topic."""

    @abstractmethod
    def transactional_producer(self, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer: ...

    @abstractmethod
    def consumer(
        self,
        topic: str,
        partition: int = 0,
        auto_offset_reset: OffsetReset = "earliest",
        max_partition_fetch_bytes: int = 1_048_576,
        metadata_max_age_ms: int = 300_000,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> Consumer:
        """A consumer that starts where `auto_offset_reset` says; with none, at the beginning."""


def pairs(partitions: Iterable[Any]) -> list[Partition]:
    """Partitions as the Python libraries represent them, each with its own class."""
    return [(each.topic, each.partition) for each in partitions]


def wait_until(condition: Callable[[], bool], awaited: str | Callable[[], str]) -> None:
    """Ask until the answer is yes."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {awaited if isinstance(awaited, str) else awaited()}")
        pause()


def first_while_writing(client: Client, consumer: Consumer, topic: str) -> ConsumerRecord:
    """Write records until the consumer gets one. Only this shows where the end was when it looked."""
    records: list[ConsumerRecord] = []
    with client.producer() as producer:

        def read_one() -> bool:
            producer.send(topic, [ProducerRecord(b"new")])
            records.extend(consumer.poll())
            return bool(records)

        wait_until(read_one, "a new record to be read")
    return records[0]
