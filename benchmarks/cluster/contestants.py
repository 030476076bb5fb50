"""Clusters: Apache Kafka around ZooKeeper, Barnabas in the same place, and Barnabas as one process.

Apache Kafka is 3.9.1, the last version that has ZooKeeper: a session's time-out means the same there, and each make has
as many processes. Its replication is what 4.3 has. Brokers reach each other directly, over the loopback interface.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, Self

import psutil

from barnabas.client.requests.admin import create_topics, delete_topics, new_topic
from barnabas.client.requests.data import LATEST, list_offsets
from barnabas.client.requests.lookup import metadata
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode, ProtocolError
from tests.support.cluster import BrokerNode, Cluster

KAFKA: Final = "Apache Kafka"
BARNABAS: Final = "Barnabas"
IN_ONE: Final = "Barnabas in one process"

SESSION_MS: Final = 6000
REPLICAS: Final = 3
# What both makes are told. Everything else is as each has it by itself.
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "default.replication.factor": str(REPLICAS),
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": str(REPLICAS),
    "transaction.state.log.replication.factor": str(REPLICAS),
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",  # leaders stay where a line expects them
}
WHOLE_TIMEOUT: Final = 300.0
_LOOK_AGAIN: Final = 0.02


class Brokers(AbstractContextManager["Brokers"], ABC):
    """Some brokers that are one cluster."""

    name: str
    seconds_to_ready: float  # from the start of the first process until the last broker serves

    def __init__(self, count: int = 3) -> None:
        self.count = count
        self.ports: dict[int, int] = {}  # by the broker's id
        self._stack = ExitStack()
        self._partitions: dict[str, int] = {}  # the count per topic

    @abstractmethod
    def start(self) -> None:
        """Start all and wait until they serve."""

    @abstractmethod
    def restart(self) -> None:
        """Stop all in good order, and start them again."""

    @abstractmethod
    def pids(self) -> list[int]: ...

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._stack = stack
            self.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    # --- what it costs ---

    def resident_bytes(self) -> int:
        return sum(psutil.Process(pid).memory_info().rss for pid in self.pids())

    def cpu_seconds(self) -> float:
        return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in self.pids())

    @contextmanager
    def cpu(self) -> Iterator[list[float]]:
        """The CPU time of all brokers during the block, as the only element of the list after it."""
        taken: list[float] = []
        before = self.cpu_seconds()
        yield taken
        taken.append(self.cpu_seconds() - before)

    # --- topics ---

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, and wait until it is whole in the eyes of every broker."""
        replicas = min(REPLICAS, self.count)
        request = create_topics(new_topic(name, partitions, replicas), timeout_ms=int(WHOLE_TIMEOUT * 1000))
        with self.wire(self.controller()) as wire:
            (created,) = wire.ask(ApiKey.CREATE_TOPICS, request, 5).topics
        if created.error_code != ErrorCode.NONE:
            raise RuntimeError(f"{self.name} did not create {name}: {created.error_message}")
        self._partitions[name] = partitions
        self.await_whole()

    def delete_topic(self, name: str) -> None:
        with self.wire(self.controller()) as wire:
            (answer,) = wire.ask(ApiKey.DELETE_TOPICS, delete_topics(name), 5).responses
        if answer.error_code != ErrorCode.NONE:
            raise RuntimeError(f"{self.name} did not delete {name}: {answer.error_message}")
        del self._partitions[name]

    def await_whole(self, brokers: Iterable[int] | None = None) -> None:
        """Until every broker, or each of these, says that all partitions have a leader and all replicas in sync."""
        deadline = time.monotonic() + WHOLE_TIMEOUT
        for broker in list(self.ports if brokers is None else brokers):
            while not self._is_whole(broker):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.name}: not every partition has its leader and its replicas")
                time.sleep(_LOOK_AGAIN)  # nothing tells a client, so poll

    def _is_whole(self, broker: int) -> bool:
        try:
            found = self.partitions(broker, self._partitions)
        except (OSError, ProtocolError):
            return False
        return len(found) == sum(self._partitions.values()) and all(
            each.leader_id >= 0 and len(each.isr_nodes) == len(each.replica_nodes) for each in found.values()
        )

    # --- questions ---

    def wire(self, broker: int) -> Wire:
        return Wire("127.0.0.1", self.ports[broker], timeout=WHOLE_TIMEOUT)

    def controller(self) -> int:
        with self.wire(next(iter(self.ports))) as wire:
            found: int = wire.ask(ApiKey.METADATA, metadata([]), 9).controller_id
        return found

    def partitions(self, broker: int, topics: Iterable[str]) -> dict[tuple[str, int], Any]:
        """What a broker says of the partitions of these topics."""
        with self.wire(broker) as wire:
            return described(wire, topics)

    def leader(self, topic: str, partition: int = 0) -> int:
        found: int = self.partitions(next(iter(self.ports)), [topic])[topic, partition].leader_id
        return found

    def end_offset(self, topic: str) -> int:
        """The end offset of the topic's log, summed over its partitions."""
        leaders: dict[int, list[int]] = {}
        for (_, index), each in self.partitions(next(iter(self.ports)), [topic]).items():
            leaders.setdefault(each.leader_id, []).append(index)
        total = 0
        for leader, indexes in leaders.items():
            with self.wire(leader) as wire:
                request = list_offsets(*((topic, index, LATEST) for index in indexes))
                (answer,) = wire.ask(ApiKey.LIST_OFFSETS, request, 5).topics
            total += sum(each.offset for each in answer.partitions)
        return total


def described(wire: Wire, topics: Iterable[str]) -> dict[tuple[str, int], Any]:
    answer = wire.ask(ApiKey.METADATA, metadata(list(topics)), 9)
    return {
        (topic.name, partition.partition_index): partition
        for topic in answer.topics
        if topic.error_code == ErrorCode.NONE
        for partition in topic.partitions
    }


class AroundZooKeeper(Brokers):
    """Processes around a ZooKeeper, which is not counted among what they cost."""

    make: str

    def __init__(self, count: int = 3, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(count)
        replicas = str(min(REPLICAS, count))
        fewer = {key: replicas for key in SETTINGS if key.endswith("replication.factor")}
        self._settings = {**SETTINGS, **fewer, **(settings or {})}
        if count < REPLICAS:
            self._settings["min.insync.replicas"] = "1"

    def start(self) -> None:
        # Only what is here, and not the short times that tests have.
        self.cluster = self._stack.enter_context(_Cluster([self.make] * self.count, self._settings))
        self.ports = {each.id: each.port for each in self.cluster.brokers}
        self.seconds_to_ready = self.cluster.seconds_to_ready

    def restart(self) -> None:
        self.cluster.stop_brokers()
        self.cluster.start_brokers(self.cluster.brokers)

    def node(self, broker: int) -> BrokerNode:
        return self.cluster.broker(broker)

    def pids(self) -> list[int]:
        return [each.pid for each in self.cluster.brokers if each.is_running]


class _Cluster(Cluster):
    def __init__(self, makes: list[str], settings: Mapping[str, str]) -> None:
        super().__init__(makes, proxies=False)
        for each in self.brokers:
            each.settings = {"zookeeper.connect": each.settings["zookeeper.connect"], **settings}
        self.seconds_to_ready = 0.0

    def start_brokers(self, brokers: Iterable[BrokerNode], timeout: float = 120) -> None:
        began = time.monotonic()
        super().start_brokers(brokers, timeout)
        self.seconds_to_ready = time.monotonic() - began


class Kafka(AroundZooKeeper):
    name = KAFKA
    make = "kafka, full size"


class Barnabas(AroundZooKeeper):
    name = BARNABAS
    make = "barnabas"


class InOneProcess(Brokers):
    """`barnabas serve --brokers N`, without ZooKeeper."""

    name = IN_ONE

    def start(self) -> None:
        self._data = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-"))
        self._stack.callback(self._stop)
        self._log = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115, open as long as this object
        self._launch("0")

    def _launch(self, ports: str) -> None:
        build = os.environ.get("BARNABAS_BUILD")
        settings = {key: value for key, value in SETTINGS.items() if not key.startswith("zookeeper")}
        if self.count < REPLICAS:
            settings = {key: "1" if "repl" in key else value for key, value in settings.items()}
        command = [
            *(sys.executable, *(["-P"] if build else []), "-m", "barnabas", "serve"),
            *("--brokers", str(self.count), "--listen", f"127.0.0.1:{ports}", "--data", self._data),
            *(f"--config={name}={value}" for name, value in settings.items()),
        ]
        environment = {**os.environ, "PYTHONPATH": build} if build else None
        began = time.monotonic()
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.seconds_to_ready = time.monotonic() - began
        found = re.findall(r"127\.0\.0\.1:(\d+)", line)
        if not line.startswith("barnabas ready on ") or len(found) != self.count:
            self._process.wait()
            raise RuntimeError(f"the brokers did not start: {line}")
        self.ports = {id: int(port) for id, port in enumerate(found)}

    def restart(self) -> None:
        self._stop()
        self._launch(",".join(map(str, self.ports.values())))

    def _stop(self) -> None:
        process = self._process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(WHOLE_TIMEOUT)  # each broker hands over what it leads
        if process.stdout is not None:
            process.stdout.close()

    def pids(self) -> list[int]:
        return [self._process.pid]
