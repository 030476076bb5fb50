"""A broker of a cluster, as a process: Apache Kafka 3.9.1 around ZooKeeper, or Barnabas in the same place."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from barnabas.client.requests.lookup import metadata
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ProtocolError
from tests.support.apache_kafka import LONG_LIVED, java, java_version, libraries
from tests.support.cache import made_once
from tests.support.ports import HeldPort
from tests.support.zookeeper import KAFKA, KAFKA_VERSION

SMALL = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Xss512k")
LOGGING = """\
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class BrokerError(Exception):
    """A broker did not do what the test needs; the text has the end of its log."""


class BrokerNode:
    """What both makes have in common. Its port for clients and its folder stay the same through all restarts."""

    make: ClassVar[str]
    ready_line: ClassVar[str]  # printed when it serves

    def __init__(self, id: int, folder: Path, settings: Mapping[str, str]) -> None:
        self.id = id
        self.folder = folder
        self.data = folder / "data"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.settings = dict(settings)
        self._held = HeldPort(), HeldPort()
        self.port, self.internal_port = (held.number for held in self._held)
        self.advertised_internal_port = self.internal_port  # a proxy's, if there is a network in between
        self.process: subprocess.Popen[bytes] | None = None
        self._should_run = False
        self._ready = threading.Event()
        self._ended = threading.Event()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def has_ended_by_itself(self) -> bool:
        return self._should_run and not self.is_running

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    # --- starting and stopping ---

    def launch(self) -> None:
        """Start it; `await_ready` waits until it is ready."""
        if self.is_running:
            raise BrokerError(f"broker {self.id} runs already")
        (self.folder / "server.properties").write_text(
            "".join(f"{name}={value}\n" for name, value in self.properties.items())
        )
        self._ready.clear()
        self._ended.clear()
        self._should_run = True
        self.process = subprocess.Popen(
            self._command(), cwd=self.folder, env=self._environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        threading.Thread(target=self._follow, args=(self.process,), name=f"broker-{self.id}", daemon=True).start()

    def start(self, timeout: float = 60) -> None:
        self.launch()
        self.await_ready(timeout)

    def await_ready(self, timeout: float = 60) -> None:
        """Wait until it says so, and until the controller has told it that it belongs to the cluster."""
        end = time.monotonic() + timeout
        self._ready.wait(timeout)
        while not (self._ready.is_set() and self.knows_itself()):
            if self._ended.is_set():
                raise BrokerError(f"broker {self.id} ended while it started:\n{self.log_tail()}")
            if time.monotonic() > end:
                raise BrokerError(f"broker {self.id} was not ready within {timeout} s:\n{self.log_tail()}")
            time.sleep(0.05)  # nothing announces what the controller has told it

    def knows_itself(self) -> bool:
        try:
            with Wire("127.0.0.1", self.port, timeout=5) as wire:
                answer = wire.ask(ApiKey.METADATA, metadata([]), 9)
        except (OSError, ProtocolError):
            return False
        return any(each.node_id == self.id for each in answer.brokers)

    def kill(self) -> None:
        """As a crash would: kill -9."""
        self._should_run = False
        if self.is_running:
            assert self.process is not None
            self.process.kill()
        self._wait(60)

    def stop(self, timeout: float = 60) -> None:
        """SIGTERM, for a controlled shutdown. A broker that does not end in time is killed, and that is an error."""
        assert self.process is not None
        self._should_run = False
        self.process.send_signal(signal.SIGTERM)
        try:
            self._wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerError(f"broker {self.id} did not stop within {timeout} s:\n{self.log_tail()}") from None

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def wipe(self) -> None:
        """Give it an empty disk. It must not run."""
        assert not self.is_running
        shutil.rmtree(self.data, ignore_errors=True)

    def _wait(self, timeout: float) -> None:
        if self.process is not None:
            self.process.wait(timeout)
            self._ended.wait(60)

    # --- what it is made of ---

    @property
    def properties(self) -> dict[str, str]:
        return {
            "broker.id": str(self.id),
            "listeners": f"INTERNAL://127.0.0.1:{self.internal_port},CLIENT://127.0.0.1:{self.port}",
            "advertised.listeners": (
                f"INTERNAL://127.0.0.1:{self.advertised_internal_port},CLIENT://127.0.0.1:{self.port}"
            ),
            "listener.security.protocol.map": "INTERNAL:PLAINTEXT,CLIENT:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "inter.broker.protocol.version": "3.9",
            "log.dirs": str(self.data),
            **self.settings,
        }

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _environment(self) -> dict[str, str] | None:
        return None

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with (self.folder / "log").open("ab") as log:
            for line in process.stdout:
                log.write(line)
                log.flush()
                if self.ready_line.encode() in line:
                    self._ready.set()
        process.wait()
        process.stdout.close()
        self._ended.set()
        self._ready.set()

    def log_tail(self, lines: int = 40) -> str:
        with contextlib.suppress(FileNotFoundError):
            text = (self.folder / "log").read_text(errors="replace")
            return "\n".join(text.splitlines()[-lines:])
        return "(nothing)"

    def segments(self, topic: str, partition: int) -> bytes:
        """Everything in a partition's segment files, in order: replicas need not roll segments at the same offset."""
        files = sorted((self.data / f"{topic}-{partition}").glob("*.log"))
        return b"".join(each.read_bytes() for each in files)


class KafkaNode(BrokerNode):
    make = "kafka"
    ready_line = "started (kafka.server.KafkaServer)"

    jvm_options: ClassVar[Sequence[str]] = SMALL
    defaults: ClassVar[Mapping[str, str]] = {
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "log.cleaner.dedupe.buffer.size": str(4 << 20),
        "socket.send.buffer.bytes": "-1",
        "socket.receive.buffer.bytes": "-1",
    }

    @property
    def properties(self) -> dict[str, str]:
        return {**self.defaults, **super().properties}

    def _command(self) -> list[str]:
        archive = f"-XX:SharedArchiveFile={class_archive()}"
        return kafka_command(self.folder, *self.jvm_options, archive)


class FullSizeKafkaNode(KafkaNode):
    """With all its threads and compilers, for measurements."""

    make = "kafka, full size"
    jvm_options = LONG_LIVED
    defaults: ClassVar[Mapping[str, str]] = {}


class BarnabasNode(BrokerNode):
    make = "barnabas"
    ready_line = "barnabas ready on"

    def _command(self) -> list[str]:
        options = ["-P"] if os.environ.get("BARNABAS_BUILD") else []
        return [sys.executable, *options, "-m", "barnabas", "serve", str(self.folder / "server.properties")]

    def _environment(self) -> dict[str, str]:
        # With BARNABAS_BUILD, the broker is the one in that folder instead of the sources here.
        here = str(Path(__file__).parents[3])
        return {**os.environ, "PYTHONPATH": os.environ.get("BARNABAS_BUILD") or here}


MAKES: dict[str, type[BrokerNode]] = {each.make: each for each in (KafkaNode, FullSizeKafkaNode, BarnabasNode)}


def kafka_command(folder: Path, *jvm_options: str) -> list[str]:
    """Apache Kafka 3.9.1 with the settings in this folder."""
    libs = libraries(KAFKA)
    logging = folder / "log4j.properties"  # two bindings of slf4j are among the jars: either one finds its settings
    logging.write_text(LOGGING)
    options = (
        *("-Xlog:disable", *jvm_options),
        f"-Dlog4j.configuration=file:{logging}",
        f"-Dlog4j2.configurationFile={libs / 'log4j2.properties'}",
        "-Dbarnabas.log.level=info",
    )
    return [java(), *options, "-cp", f"{libs}/*", "kafka.Kafka", str(folder / "server.properties")]


def class_archive() -> Path:
    """The classes that Apache Kafka 3.9.1 loads when it starts, as the JVM keeps them (class data sharing)."""

    def make(work: Path) -> Path:
        from tests.support.zookeeper import ZooKeeper

        archive = work / "classes.jsa"

        class Recorded(KafkaNode):
            def _command(self) -> list[str]:
                return kafka_command(self.folder, *self.jvm_options, f"-XX:ArchiveClassesAtExit={archive}")

        with ZooKeeper() as zookeeper:
            node = Recorded(1, work / "broker", {"zookeeper.connect": zookeeper.connect})
            node.start()
            node.stop()
        return archive

    made_from = java_version(java()) + str(libraries(KAFKA))
    return made_once(f"apache-kafka-{KAFKA_VERSION}/classes", made_from, make)
