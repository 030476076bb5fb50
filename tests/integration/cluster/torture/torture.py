"""Three brokers and a ZooKeeper under faults from a seed, clients of every library, and the reckoning afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.client.requests.data import LATEST, list_offsets
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from tests.integration.cluster.torture.faults import PATIENCE, Faults
from tests.integration.cluster.torture.seat import Task
from tests.support.apache_kafka import java_command
from tests.support.cluster import Cluster
from tests.support.history import Event, Found, History, Log, check
from tests.support.second_opinion import second_opinion

TOPIC = "tortured"
PARTITIONS = 4
JAVA = "java"
LIBRDKAFKA = "confluent-kafka/"  # how the values of its clients begin
LIBRARIES = ("kafka-python", "confluent-kafka", "aiokafka", JAVA)
JAVA_PROGRAM = Path(__file__).parents[3] / "java" / "ClusterClient.java"
READ_COMMITTED = 1


class Clients:
    """The process of a library's clients. It is started again whenever it has ended by itself."""

    def __init__(self, task: Task, folder: Path) -> None:
        self._folder = folder
        self._is_finishing = False
        self._begin(task)

    def _begin(self, task: Task) -> None:
        path = self._folder / f"{task.library}-{task.life}.jsonl"
        self.task = dataclasses.replace(task, journal=str(path))
        path.touch()
        given = json.dumps(dataclasses.asdict(self.task))
        if task.library == JAVA:
            command = java_command(JAVA_PROGRAM, given)
        else:
            command = [sys.executable, "-m", "tests.integration.cluster.torture.client", given]
        with (self._folder / f"{task.library}.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        self.producers_finished = threading.Event()
        threading.Thread(target=self._listen, args=(self.process, self.producers_finished), daemon=True).start()

    @staticmethod
    def _listen(process: subprocess.Popen[bytes], producers_finished: threading.Event) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line == b"finished\n":
                producers_finished.set()
        process.stdout.close()

    def supervise(self) -> bool:
        """Whether it had to be started again."""
        if self.process.poll() is None:
            return False
        roles = ("member",) if self._is_finishing else self.task.roles
        self._begin(dataclasses.replace(self.task, life=self.task.life + 1, roles=roles))
        return True

    def finish_producers(self) -> None:
        self._is_finishing = True
        self.process.terminate()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def last_words(self) -> str:
        text = (self._folder / f"{self.task.library}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-8:])


class Torture:
    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        seed: int,
        *,
        libraries: Sequence[str] = LIBRARIES,
        topic_settings: dict[str, str] | None = None,
        **task: object,
    ) -> None:
        self.cluster = cluster
        self.chance = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.restarted: Counter[str] = Counter()
        self._folder = folder / "clients"
        self._folder.mkdir()
        self.second_opinion: list[str] = []  # of the simulation's checker, after the reckoning
        self._acks = str(task.get("acks", "all"))
        self.faults = Faults(cluster, self.chance, TOPIC, PARTITIONS)
        self._create_topic(topic_settings or {})
        self.clients = [
            Clients(Task(library, 0, cluster.bootstrap, TOPIC, PARTITIONS, "", seed, **task), self._folder)  # type: ignore[arg-type]
            for library in libraries
        ]

    def _create_topic(self, settings: dict[str, str]) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        for each in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, config=settings)]).values():
            each.result(60)
        self.cluster.await_whole()

    def __enter__(self) -> Torture:
        return self

    def __exit__(self, *error: object) -> None:
        for each in self.clients:
            each.end()

    def supervise(self) -> None:
        self.cluster.start_those_that_ended()
        for each in self.clients:
            if each.supervise():
                self.restarted[each.task.library] += 1

    def torment(self, seconds: float, faults: dict[str, Callable[[], None]]) -> None:
        """One fault after another; each comes once before one comes again. Most come before the last has healed."""
        deadline = time.monotonic() + seconds
        names: list[str] = []
        while time.monotonic() < deadline:
            time.sleep(self.chance.uniform(0.5, 3))  # for clients to work
            self.supervise()
            names = names or self.chance.sample(list(faults), len(faults))
            name = names.pop()
            self.faults.tell(name)
            faults[name]()
            self.done[name] += 1
            self.faults.tell("is over")

    # --- the reckoning ---

    def reckon(self) -> list[Found]:
        """After the last fault: the cluster heals, producers finish, groups read to the end, and all is checked."""
        self.cluster.network.heal()
        self._await_whole()
        self.faults.tell("healed")
        self._finish_producers()
        self.faults.tell("producers have finished")
        committed, everything = self.read(committed=True), self.read(committed=False)
        visible = {value for log in committed.values() for value in log.values()}
        history = self._await_groups(visible)
        self.faults.tell("groups have read everything")
        lost = {value: there for value, there in history.swallowed(everything).items() if value.startswith(LIBRDKAFKA)}
        if lost:
            self.faults.tell(f"lost by librdkafka, with the records whose sequence numbers it used again: {lost}")
            history = history.without(lost)
        self.second_opinion = second_opinion(history, committed, acks=-1 if self._acks == "all" else int(self._acks))
        return check(history, everything, committed)

    def _await_whole(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while (missing := self.cluster.what_is_missing()) and time.monotonic() < deadline:
            self.supervise()
            time.sleep(0.5)
        if missing:
            self.cluster.await_whole(1)  # which says more

    def replicas_that_differ(self) -> list[str]:
        """Replicas of a topic that nobody writes to any more, once the followers have had time to follow."""
        self.cluster.await_whole(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while found := self.cluster.replicas_that_differ(TOPIC, range(PARTITIONS)):
            if time.monotonic() > deadline:
                break
            time.sleep(0.2)
        return found

    def _finish_producers(self) -> None:
        deadline = time.monotonic() + PATIENCE
        for each in self.clients:
            each.finish_producers()
        for each in self.clients:
            while not each.producers_finished.wait(0.2):
                if time.monotonic() > deadline:
                    raise AssertionError(f"{each.task.library} does not finish:\n{each.last_words()}")
                if each.supervise():  # it hung until its watchdog came
                    self.restarted[each.task.library] += 1

    def history(self) -> History:
        return History(self._events())

    def _events(self) -> Iterator[Event]:
        for path in sorted(self._folder.glob("*.jsonl")):
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # otherwise its writer is in the middle of it, or was killed there
                    yield Event.from_json(line)

    def _await_groups(self, visible: set[str]) -> History:
        """Until every group has read everything; what it has not read by then is the checker's to say."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.supervise()
            history = self.history()
            if all(visible <= read for read in history.read_by_group().values()) or time.monotonic() > deadline:
                return history
            time.sleep(1)

    def read(self, *, committed: bool) -> dict[int, Log]:
        ends = self._await_stable()
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "reckoning",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(TOPIC, index, OFFSET_BEGINNING) for index in ends])
        found: dict[int, dict[int, str]] = {index: {} for index in ends}
        left = {index for index, end in ends.items() if end}
        deadline = time.monotonic() + PATIENCE
        while left:
            for message in consumer.consume(500, 1.0):
                error = message.error()
                if error is None:
                    found[message.partition()][message.offset()] = message.value().decode()
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                elif not error.retriable():
                    raise KafkaException(error)
            if time.monotonic() > deadline:
                raise AssertionError(f"partitions {left} could not be read to their end")
        consumer.close()
        return dict(found)

    def _await_stable(self) -> dict[int, int]:
        """Where each partition ends, once no transaction is open in it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            ends: list[dict[int, int]] = [{}, {}]
            with contextlib.suppress(OSError):
                for index in range(PARTITIONS):
                    leader = self.cluster.leader(TOPIC, index)
                    if leader is None:
                        break
                    with Wire("127.0.0.1", leader.port) as wire:
                        for isolation, found in enumerate(ends):
                            request = list_offsets((TOPIC, index, LATEST), isolation_level=isolation)
                            (answer,) = wire.ask(ApiKey.LIST_OFFSETS, request, 7).topics[0].partitions
                            if not answer.error_code:
                                found[index] = answer.offset
            if ends[0] == ends[1] and len(ends[0]) == PARTITIONS:
                return ends[0]
            if time.monotonic() > deadline:
                raise AssertionError(f"a transaction stays open: {ends}")
            time.sleep(0.2)

    def summary(self) -> str:
        history = self.history()
        counts = Counter(event.what.value for event in history.events)
        faults = ", ".join(f"{count} x {name}" for name, count in self.done.items())
        return (
            f"{counts['send']} sent, {counts['sent']} acknowledged, {counts['committed']} transactions committed, "
            f"{counts['aborted']} aborted, {counts['read']} read, {counts['offset committed']} offsets committed; "
            f"{faults}; libraries that hung: {dict(self.restarted) or 'none'}; "
            f"brokers that ended by themselves: {self.cluster.ended_by_themselves or 'none'}"
        )


def seconds_of_torture(default: float) -> float:
    return float(os.environ.get("BARNABAS_TORTURE_SECONDS", default))


def seed() -> int:
    return int(os.environ.get("BARNABAS_SEED") or random.randrange(1_000_000))


def make() -> str:
    """The brokers under test: BARNABAS_TORTURE_BROKER=kafka has Apache Kafka's, to tell a client's faults from ours."""
    return os.environ.get("BARNABAS_TORTURE_BROKER", "barnabas")
