"""The two brokers, both up all the time, each with its usual settings and a data directory of its own."""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Final, Self

import psutil

from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.support.apache_kafka import ApacheKafka, knows_a_broker
from tests.support.broker_process import BrokerProcess
from tests.support.wire import Wire

KAFKA: Final = "Apache Kafka"
BARNABAS: Final = "Barnabas"
BARE: Final = "bare loop"

LATEST: Final = -1


class Contestant(AbstractContextManager["Contestant"], ABC):
    """A broker on a port of 127.0.0.1."""

    name: str
    port: int
    seconds_to_ready: float  # from the start of its process to an answer that names a broker

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._partitions: dict[str, int] = {}  # topic by topic, how many

    @abstractmethod
    def start(self) -> int:
        """Start it, wait until it answers, and return the id of its process."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._stack = stack
            self.process = psutil.Process(self.start())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def resident_bytes(self) -> int:
        return int(self.process.memory_info().rss)

    def served_apis(self) -> set[int]:
        with Wire("127.0.0.1", self.port) as wire:
            return {api.api_key for api in wire.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0).api_keys}

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic, and wait until the leader of each partition has its log."""
        deadline = time.monotonic() + 30
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
        with Wire("127.0.0.1", self.port) as wire:
            (created,) = wire.ask(
                ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5
            ).topics
            if created.error_code != ErrorCode.NONE:
                raise RuntimeError(f"{self.name} did not create {name}: {created.error_message}")
            self._partitions[name] = partitions
            while any(each.error_code != ErrorCode.NONE for each in self._latest(wire, name)):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.name} did not create {name}")
                time.sleep(0.01)  # nothing tells a client that an election is over; asking is all there is

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
        with Wire("127.0.0.1", self.port) as wire:
            (answer,) = wire.ask(ApiKey.DELETE_TOPICS, request, 5).responses
        if answer.error_code != ErrorCode.NONE:
            raise RuntimeError(f"{self.name} did not delete {name}: {answer.error_message}")

    def end_offset(self, topic: str) -> int:
        """Where the topic's log ends; of several partitions, the sum."""
        with Wire("127.0.0.1", self.port) as wire:
            return sum(each.offset for each in self._latest(wire, topic))

    def _latest(self, wire: Wire, topic: str) -> list[ListOffsetsPartitionResponse]:
        indexes = range(self._partitions[topic])
        partitions = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in indexes]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=partitions)])
        (answer,) = wire.ask(ApiKey.LIST_OFFSETS, request, 5).topics
        found: list[ListOffsetsPartitionResponse] = answer.partitions
        return found


class Kafka(Contestant):
    name = KAFKA

    def start(self) -> int:
        kafka = self._stack.enter_context(ApacheKafka())
        self.port = kafka.port
        self.seconds_to_ready = kafka.start_seconds or 0.0
        return kafka.pid


class Barnabas(Contestant):
    name = BARNABAS

    def start(self) -> int:
        data = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-"))
        began = time.monotonic()
        broker = self._stack.enter_context(BrokerProcess(Path(data)))
        self.port = broker.port
        if not knows_a_broker(self.port):
            raise RuntimeError(f"the broker says that it is ready, but does not answer:\n{broker.log}")
        self.seconds_to_ready = time.monotonic() - began
        return broker.process.pid
