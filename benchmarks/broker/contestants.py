"""The two brokers, both always running, each with its usual settings and its own data directory."""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Final, Self

import psutil

from barnabas.client.requests.admin import create_topics, delete_topics, new_topic
from barnabas.client.requests.data import LATEST, list_offsets
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsPartitionResponse
from tests.support import certificates
from tests.support.apache_kafka import LONG_LIVED, ApacheKafka, knows_a_broker
from tests.support.broker_process import BrokerProcess
from tests.support.ports import HeldPort

KAFKA: Final = "Apache Kafka"
BARNABAS: Final = "Barnabas"
BARE: Final = "bare loop"


class Contestant(AbstractContextManager["Contestant"], ABC):
    """A broker on a port of 127.0.0.1."""

    name: str
    port: int
    tls_port: int
    seconds_to_ready: float  # from process start to a response that names a broker

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._partitions: dict[str, int] = {}  # the count per topic

    @abstractmethod
    def start(self) -> int:
        """Start it, wait until it answers, and return the id of its process."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._stack = stack
            self._certificates = certificates.Files(
                Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="certificates-")))
            )
            self.process = psutil.Process(self.start())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def tls_bootstrap(self) -> str:
        return f"127.0.0.1:{self.tls_port}"

    @property
    def tls(self) -> dict[str, str]:
        """The settings of librdkafka for the listener with TLS."""
        return {"security.protocol": "SSL", "ssl.ca.location": str(self._certificates.ca)}

    def resident_bytes(self) -> int:
        return int(self.process.memory_info().rss)

    def served_apis(self) -> set[int]:
        with Wire("127.0.0.1", self.port) as wire:
            return {api.api_key for api in wire.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0).api_keys}

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic, and wait until the leader of each partition has its log."""
        deadline = time.monotonic() + 30
        with Wire("127.0.0.1", self.port) as wire:
            (created,) = wire.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic(name, partitions)), 5).topics
            if created.error_code != ErrorCode.NONE:
                raise RuntimeError(f"{self.name} did not create {name}: {created.error_message}")
            self._partitions[name] = partitions
            while any(each.error_code != ErrorCode.NONE for each in self._latest(wire, name)):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.name} did not create {name}")
                time.sleep(0.01)  # nothing tells a client that an election is over, so poll

    def delete_topic(self, name: str) -> None:
        with Wire("127.0.0.1", self.port) as wire:
            (answer,) = wire.ask(ApiKey.DELETE_TOPICS, delete_topics(name), 5).responses
        if answer.error_code != ErrorCode.NONE:
            raise RuntimeError(f"{self.name} did not delete {name}: {answer.error_message}")

    def end_offset(self, topic: str) -> int:
        """The end offset of the topic's log, summed over its partitions."""
        with Wire("127.0.0.1", self.port) as wire:
            return sum(each.offset for each in self._latest(wire, topic))

    def _latest(self, wire: Wire, topic: str) -> list[ListOffsetsPartitionResponse]:
        request = list_offsets(*((topic, index, LATEST) for index in range(self._partitions[topic])))
        (answer,) = wire.ask(ApiKey.LIST_OFFSETS, request, 5).topics
        found: list[ListOffsetsPartitionResponse] = answer.partitions
        return found


class Kafka(Contestant):
    name = KAFKA

    def start(self) -> int:
        kafka = ApacheKafka(self._certificates.server_settings, jvm_options=LONG_LIVED)
        self.tls_port = kafka.add_listener("SSL")
        self._stack.enter_context(kafka)
        self.port = kafka.port
        self.seconds_to_ready = kafka.start_seconds or 0.0
        return kafka.pid


class Barnabas(Contestant):
    name = BARNABAS

    def start(self) -> int:
        data = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-"))
        began = time.monotonic()
        ports = HeldPort(), HeldPort()
        self.tls_port = ports[1].number
        listeners = f"PLAINTEXT://127.0.0.1:{ports[0].number},SSL://127.0.0.1:{self.tls_port}"
        settings = {"listeners": listeners, **self._certificates.server_settings}
        broker = self._stack.enter_context(BrokerProcess(Path(data), settings=settings))
        self.port = broker.port
        if not knows_a_broker(self.port):
            raise RuntimeError(f"the broker says that it is ready but does not respond:\n{broker.log}")
        self.seconds_to_ready = time.monotonic() - began
        return broker.process.pid
