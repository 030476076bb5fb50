"""Apache Kafka 4.3.1, from Maven Central: the reference that tests and benchmarks hold Barnabas against.

It needs Java 17 or later, and Maven for the first time only: the jars go to `~/.cache/barnabas` (or `BARNABAS_CACHE`).

    run_tool("kafka-topics", "--bootstrap-server", address, "--list")     one of Kafka's command-line tools
    run_java(Path("Scenario.java"), address)                              a Java source file with Kafka's jars at hand
    with ApacheKafka({"num.partitions": "3"}) as kafka: ...               a broker of its own, on free loopback ports
"""

import fcntl
import hashlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.ports import HeldPort

VERSION = "4.3.1"
OLDEST_JAVA = 17

DEPENDENCIES = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    f"org.apache.kafka:kafka-tools:{VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",  # without it the broker says nothing, not even why it stopped
)
STREAMS = (f"org.apache.kafka:kafka-streams:{VERSION}", DEPENDENCIES[-1])

TOOLS = {
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}

# For programs that live a second or two: most of that time is the compiler's, and a second garbage collector thread is
# one that the broker under test would rather have. A benchmark passes its own.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")

LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = ${sys:barnabas.log.level:-warn}
rootLogger.appenderRef.console.ref = console
"""


class JavaUnavailableError(Exception):
    """What Apache Kafka needs is not on this machine."""


class JavaError(Exception):
    """A Java program failed, or did not end in time; the text has what it printed."""


def unavailable() -> str | None:
    """Why Apache Kafka cannot run here, or None. Downloads it if need be, so that no test's time pays for that."""
    try:
        java()
        libraries()
    except JavaUnavailableError as error:
        return str(error)
    return None


@cache
def java() -> str:
    """The `java` command: JAVA_HOME's, or the one on the path."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if command is None or not Path(command).exists():
        raise JavaUnavailableError(f"Java {OLDEST_JAVA} or later is needed, and there is no java command")
    report = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60).stderr
    version = re.search(r'version "(\d+)', report)
    if version is None or int(version[1]) < OLDEST_JAVA:
        raise JavaUnavailableError(f"Java {OLDEST_JAVA} or later is needed, and {command} says: {report.strip()}")
    return command


@cache
def libraries(dependencies: Sequence[str] = DEPENDENCIES) -> Path:
    """The folder with the jars, downloaded by the first process that wants it while others wait for that one."""
    folder = cache_directory() / f"apache-kafka-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    # Named by what it was made from, so that another list of dependencies never meets these jars.
    libs = folder / f"libs-{hashlib.sha256(pom(dependencies).encode()).hexdigest()[:12]}"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not libs.exists():
            with tempfile.TemporaryDirectory(dir=folder, prefix="download-") as work:
                download(Path(work), dependencies).rename(libs)
    return libs


def cache_directory() -> Path:
    own = os.environ.get("BARNABAS_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "barnabas"


def download(work: Path, dependencies: Sequence[str] = DEPENDENCIES) -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaUnavailableError(f"Maven is needed to download Apache Kafka {VERSION}, and there is no mvn command")
    (work / "pom.xml").write_text(pom(dependencies))
    done = subprocess.run(
        [maven, "-q", "-B", "--strict-checksums", "dependency:copy-dependencies", "-DoutputDirectory=libs"],
        cwd=work,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode != 0:
        raise JavaUnavailableError(f"Maven could not download Apache Kafka {VERSION}:\n{done.stdout}{done.stderr}")
    (work / "libs" / "log4j2.properties").write_text(LOGGING)
    return work / "libs"


def pom(dependencies: Sequence[str] = DEPENDENCIES) -> str:
    described = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
            *name.split(":")
        )
        for name in dependencies
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>barnabas</groupId><artifactId>apache-kafka</artifactId><version>1</version>"
        f"<dependencies>{described}</dependencies></project>"
    )


def java_command(
    program: str | Path,
    *arguments: str,
    jvm_options: Sequence[str] = SHORT_LIVED,
    dependencies: Sequence[str] = DEPENDENCIES,
) -> list[str]:
    """The command line that runs a main class of Kafka's jars (a string) or a Java source file (a path)."""
    libs = libraries(dependencies)
    log4j = f"-Dlog4j2.configurationFile={libs / 'log4j2.properties'}"
    return [java(), *jvm_options, log4j, "-cp", f"{libs}/*", str(program), *arguments]


def run_java(
    program: str | Path,
    *arguments: str,
    input: str | None = None,
    timeout: float = 60,
    check: bool = True,
    jvm_options: Sequence[str] = SHORT_LIVED,
) -> subprocess.CompletedProcess[str]:
    """Run a Java program to its end. One that fails (unless `check` is off) or takes too long is a JavaError."""
    command = java_command(program, *arguments, jvm_options=jvm_options)
    called = f"{program} {' '.join(arguments)}"
    try:
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as expired:
        printed = b"".join(part for part in (expired.stdout, expired.stderr) if isinstance(part, bytes))
        message = f"{called}\ntook more than {timeout} s and had printed:\n{printed.decode(errors='replace')}"
        raise JavaError(message) from None
    if check and done.returncode != 0:
        raise JavaError(f"{called}\nended with {done.returncode} and printed:\n{done.stdout}{done.stderr}")
    return done


def run_tool(
    name: str,
    *arguments: str,
    input: str | None = None,
    timeout: float = 60,
    check: bool = True,
    jvm_options: Sequence[str] = SHORT_LIVED,
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools by the name of its script."""
    return run_java(TOOLS[name], *arguments, input=input, timeout=timeout, check=check, jvm_options=jvm_options)


class ApacheKafka:
    """One Apache Kafka node, broker and controller in one process (KRaft), on free ports of 127.0.0.1.

    As a context manager it is started on entry and stopped on exit, and its directory goes with it unless the caller
    gave one. Between `stop` or `kill` and the next `start` the data directory stays.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        directory: Path | None = None,
        jvm_options: Sequence[str] = ("-Xmx1g",),
        start_timeout: float = 60,
    ) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="apache-kafka-")
            directory = Path(self._temporary.name)
        self.directory = directory
        self.data_directory = self.directory / "data"
        self.jvm_options = jvm_options
        self.start_timeout = start_timeout
        self.start_seconds: float | None = None  # from the start of the process to the first answer
        self._held = HeldPort(), HeldPort()
        self.port, self._controller_port = (held.number for held in self._held)
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.data_directory),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **(properties or {}),
        }

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> None:
        """Start the broker, its storage formatted the first time, and return when it answers."""
        settings = self.directory / "server.properties"
        if not settings.exists():
            settings.write_text("".join(f"{name}={value}\n" for name, value in self._properties.items()))
            cluster_id = "AAAAAAAAAAAAAAAAAAAAAQ"
            run_tool("kafka-storage", "format", "--standalone", "-t", cluster_id, "-c", str(settings))
        options = [*self.jvm_options, "-Dbarnabas.log.level=info"]
        with (self.directory / "server.log").open("ab") as log:
            command = java_command("kafka.Kafka", str(settings), jvm_options=options)
            self._process = subprocess.Popen(command, cwd=self.directory, stdout=log, stderr=log)
        started = time.monotonic()
        try:
            self._wait_until_ready(started + self.start_timeout)
        except BaseException:
            self.kill()
            raise
        self.start_seconds = time.monotonic() - started

    def stop(self, timeout: float = 60) -> None:
        """Stop it as an administrator would; if it does not end in time it is killed, and that is an error."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise JavaError(f"Apache Kafka did not stop within {timeout} s:\n{self.log_tail()}") from None
        self._process = None

    def kill(self) -> None:
        """End it at once, as a crash would."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def log_tail(self, lines: int = 40) -> str:
        text = (self.directory / "server.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._remove_directory()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._process is not None:
                self.stop()
        finally:
            self._remove_directory()

    def _remove_directory(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise JavaError("Apache Kafka is not running")
        return self._process

    def _wait_until_ready(self, deadline: float) -> None:
        process = self._running()
        while not knows_a_broker(self.port):
            if process.poll() is not None:
                raise JavaError(f"Apache Kafka ended with {process.returncode} while starting:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise JavaError(f"Apache Kafka was not ready within {self.start_timeout} s:\n{self.log_tail()}")
            time.sleep(0.01)  # nothing tells another process that a port has been opened; asking is all there is


def knows_a_broker(port: int) -> bool:
    """Whether something on this port answers a Metadata request and names a broker, as it does once it may be used."""
    request = struct.pack(">hhihi", 3, 1, 0, -1, 0)  # key, version, correlation id, no client id, no topics
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answer:
                head = answer.read(12)
    except OSError:
        return False
    return len(head) == 12 and struct.unpack(">iii", head)[2] > 0  # size, correlation id, number of brokers
