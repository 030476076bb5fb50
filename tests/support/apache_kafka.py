"""Apache Kafka 4.3.1, from Maven Central: the reference with which tests and benchmarks compare Barnabas.

It needs Java 17 or later, and Maven for the first time only: the jars go to `~/.cache/barnabas` (or `BARNABAS_CACHE`),
and so does what makes it start faster.

    run_tool("kafka-topics", "--bootstrap-server", address, "--list")     one of Kafka's command-line tools
    run_java(Path("Scenario.java"), address)                              a Java source file with Kafka's jars at hand
    with ApacheKafka({"num.partitions": "3"}) as kafka: ...               a broker of its own, on free loopback ports
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.support.cache import made_once
from tests.support.java_tools import JavaTools, ToolsGoneError
from tests.support.ports import HeldPort

VERSION = "4.3.1"
OLDEST_JAVA = 17
FOLDER = f"apache-kafka-{VERSION}"  # in the cache

DEPENDENCIES = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    f"org.apache.kafka:kafka-tools:{VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",  # without it the broker says nothing, not even why it stopped
)
STREAMS = (f"org.apache.kafka:kafka-streams:{VERSION}", DEPENDENCIES[-1])

TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}

# For processes that live for seconds: the full compiler never pays for itself, and a second garbage collector thread
# takes a core from the broker under test.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
LONG_LIVED = ("-Xmx1g",)  # for benchmarks

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
    """Why Apache Kafka cannot run here, or None. Downloads and prepares it first, so that no test waits for that."""
    try:
        java()
        libraries()
        class_archive()
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
    report = java_version(command)
    version = re.search(r'version "(\d+)', report)
    if version is None or int(version[1]) < OLDEST_JAVA:
        raise JavaUnavailableError(f"Java {OLDEST_JAVA} or later is needed, and {command} says: {report.strip()}")
    return command


@cache
def java_version(command: str) -> str:
    return subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60).stderr


@cache
def libraries(dependencies: Sequence[str] = DEPENDENCIES) -> Path:
    """The folder with the jars."""
    return made_once(f"{FOLDER}/libs", pom(dependencies), lambda work: download(work, dependencies))


@cache
def class_archive() -> Path:
    """The classes that Kafka loads when it starts, as the JVM keeps them in memory (class data sharing).

    With it, Kafka starts with a quarter of the work and its tools with half of it.
    """

    def make(work: Path) -> Path:
        archive = work / "classes.jsa"
        with ApacheKafka(jvm_options=(*SHORT_LIVED, "-Xlog:disable", f"-XX:ArchiveClassesAtExit={archive}")):
            pass
        return archive

    return made_once(f"{FOLDER}/classes", java_version(java()) + str(libraries()), make)


def compiled(source: Path, dependencies: Sequence[str]) -> Path:
    """The folder with the classes of a Java source file."""

    def make(work: Path) -> Path:
        classpath = ":".join(map(str, libraries(dependencies).glob("*.jar")))
        compiler = [java(), *SHORT_LIVED, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"]
        done = subprocess.run(
            [*compiler, "-cp", classpath, "-d", str(work / "classes"), str(source)], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise JavaError(f"{source} does not compile:\n{done.stdout}{done.stderr}")
        return work / "classes"

    made_from = java_version(java()) + str(libraries(dependencies)) + source.read_text()
    return made_once(f"{FOLDER}/{source.stem}", made_from, make)


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
    jvm_options: Sequence[str] | None = None,
    dependencies: Sequence[str] = DEPENDENCIES,
) -> list[str]:
    """The command line that runs a main class of Kafka's jars (a string) or a Java source file (a path).

    Without options of its own it runs as a process that lives for seconds.
    """
    libs = libraries(dependencies)
    if jvm_options is None:
        jvm_options = SHORT_LIVED
        if dependencies == DEPENDENCIES:
            # "disable": the JVM would print to stdout if it could not use the archive, for example with copied jars.
            jvm_options = (*SHORT_LIVED, "-Xlog:disable", f"-XX:SharedArchiveFile={class_archive()}")
    log4j = f"-Dlog4j2.configurationFile={libs / 'log4j2.properties'}"
    classpath = f"{libs}/*"
    if isinstance(program, Path):
        classpath += f":{compiled(program, dependencies)}"
        program = program.stem
    return [java(), *jvm_options, log4j, "-cp", classpath, program, *arguments]


def run_java(
    program: str | Path,
    *arguments: str,
    input: str | None = None,
    timeout: float = 60,
    check: bool = True,
    jvm_options: Sequence[str] | None = None,
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
    jvm_options: Sequence[str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools by the name of its script: in a JVM with these options, or in `tools()`."""
    if jvm_options is not None:
        return run_java(TOOLS[name], *arguments, input=input, timeout=timeout, check=check, jvm_options=jvm_options)
    called = f"{name} {' '.join(arguments)}"
    with _one_tool_at_a_time:
        try:
            if tools().has_ended:
                tools.cache_clear()
            done = tools().run(TOOLS[name], arguments, input, timeout)
        except (ToolsGoneError, OSError) as error:
            tools.cache_clear()
            raise JavaError(f"{called}\n{error}") from None
    if check and done.returncode != 0:
        raise JavaError(f"{called}\nended with {done.returncode} and printed:\n{done.stdout}{done.stderr}")
    return done


@cache
def tools() -> JavaTools:
    """The JVM that all tools of this process share."""
    return JavaTools(java_command(Path(__file__).parents[1] / "java" / "Tools.java"))


_one_tool_at_a_time = threading.Lock()


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
        jvm_options: Sequence[str] | None = None,
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
        self._held: tuple[HeldPort, ...] = HeldPort(), HeldPort()
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

    def add_listener(self, security_protocol: str) -> int:
        """Have it listen on another free port as well, before it is started."""
        self._held = (*self._held, HeldPort())
        port = self._held[-1].number
        self._properties["listeners"] += f",{security_protocol}://127.0.0.1:{port}"
        protocols = f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{security_protocol}:{security_protocol}"
        self._properties["listener.security.protocol.map"] = protocols
        return port

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
            format = ("kafka-storage", "format", "--standalone", "-t", cluster_id, "-c", str(settings))
            run_tool(*format, jvm_options=self.jvm_options)
        java, *command = java_command("kafka.Kafka", str(settings), jvm_options=self.jvm_options)
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [java, "-Dbarnabas.log.level=info", *command], cwd=self.directory, stdout=log, stderr=log
            )
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
            time.sleep(0.01)  # nothing tells another process that a port has been opened; polling is the only way


def knows_a_broker(port: int) -> bool:
    """Whether something on this port answers a Metadata request and names a broker, as it does once it may be used."""
    try:
        with Wire("127.0.0.1", port, timeout=5) as wire:
            return bool(wire.ask(ApiKey.METADATA, MetadataRequest(topics=[]), 1).brokers)
    except (OSError, ProtocolError):
        return False
