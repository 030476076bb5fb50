"""What happens around the workers: input that keeps coming, faults at random moments, and the reckoning afterwards."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from barnabas.client.requests.admin import create_topics, new_topic
from barnabas.client.requests.data import LATEST, list_offsets
from barnabas.client.requests.groups import offset_fetch
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from tests.integration.exactly_once.worker import transformed
from tests.support.apache_kafka import ApacheKafka, java_command
from tests.support.broker_process import BrokerProcess

PARTITIONS = 3
KEYS = 12
WORKERS_PER_LIBRARY = 2
INPUT = "input"
JAVA = "java"
JAVA_PROGRAM = Path(__file__).parents[2] / "java" / "TransactionLoop.java"
DRAIN_SECONDS = 180.0  # on a busy machine, a worker may need half a minute to start
READ_COMMITTED = 1

SETTINGS = {
    "node.id": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}

Pairs = dict[bytes, list[bytes]]  # values by their keys, in order


def seconds_of_torture(default: float) -> float:
    return float(os.environ.get("BARNABAS_TORTURE_SECONDS", default))


def seed() -> int:
    return int(os.environ.get("BARNABAS_SEED") or random.randrange(1_000_000))


def new_broker(folder: Path, advertised_port: int | None = None) -> BrokerProcess | ApacheKafka:
    """The broker under test. With BARNABAS_TORTURE_BROKER=kafka it is Apache Kafka, to tell a client's faults apart."""
    advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{advertised_port}"} if advertised_port else {}
    if os.environ.get("BARNABAS_TORTURE_BROKER") == "kafka":
        return ApacheKafka({**SETTINGS, **advertised})
    return BrokerProcess(folder, settings={**SETTINGS, **advertised})


class Worker:
    """A process of worker.py, or its counterpart in Java. Its last output is kept, in case something is wrong."""

    def __init__(self, library: str, number: int, bootstrap: str) -> None:
        self.library = library
        self.number = number
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115, open as long as this object
        arguments = (bootstrap, group_of(library), INPUT, output_of(library), f"{library}-{number}")
        if library == JAVA:
            command = java_command(JAVA_PROGRAM, *arguments)
        else:
            command = [sys.executable, "-m", "tests.integration.exactly_once.worker", library, *arguments]
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log)

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def last_words(self, count: int = 1) -> str:
        self._log.seek(0)
        lines = [line for line in self._log.read().splitlines() if line]
        return "\n".join(lines[-count:]) or "nothing"

    def where_it_is(self) -> str:
        """Where a worker that hangs is."""
        self.process.send_signal(signal.SIGQUIT if self.library == JAVA else signal.SIGUSR1)
        time.sleep(0.5)
        return self.last_words(12)

    def end(self) -> None:
        if not self.has_ended:
            self.process.kill()
        self.process.wait()


def group_of(library: str) -> str:
    return f"group-{library}"


def output_of(library: str) -> str:
    return f"output-{library}"


class Feed:
    """Idempotent input, some records at a time, until it is stopped. It has to survive all faults on its own."""

    def __init__(self, bootstrap: str) -> None:
        self.fed = 0
        self.failures: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 300_000,
                # A broker of a cluster that has just started does not know any topics yet, and says so to clients.
                "topic.metadata.propagation.max.ms": 300_000,
                "reconnect.backoff.max.ms": 500,
                "linger.ms": 1,
            }
        )
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="feed", daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        while not self._is_over.wait(0.02):
            for _ in range(4):
                key = b"key-%d" % (self.fed % KEYS)
                self._producer.produce(
                    INPUT,
                    b"%d" % self.fed,
                    key,
                    partition=self.fed % KEYS % PARTITIONS,
                    on_delivery=lambda error, _: self.failures.append(error) if error else None,
                )
                self.fed += 1
            self._producer.poll(0)

    def finish(self) -> Pairs:
        """Stop, wait until the broker has everything, and return what was sent."""
        self._is_over.set()
        self._thread.join()
        left = self._producer.flush(DRAIN_SECONDS)
        if left or self.failures:
            raise AssertionError(f"{left} of {self.fed} records were not taken, and {self.failures[:3]}")
        fed: Pairs = defaultdict(list)
        for number in range(self.fed):
            fed[b"key-%d" % (number % KEYS)].append(b"%d" % number)
        return fed


@dataclass
class Torture:
    """One run of workers and of what is done to them."""

    broker: BrokerProcess | ApacheKafka
    bootstrap: str
    libraries: list[str]
    chance: random.Random
    done: Counter[str] = field(default_factory=Counter)
    ended: list[str] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    zombies: list[Worker] = field(default_factory=list)
    drain_seconds: float = DRAIN_SECONDS
    _next_number: int = 0

    def create_topics(self) -> None:
        topics = [new_topic(name, PARTITIONS) for name in (INPUT, *map(output_of, self.libraries))]
        with Wire("127.0.0.1", self.broker.port) as wire:
            answer = wire.ask(ApiKey.CREATE_TOPICS, create_topics(*topics), 5)
        if any(topic.error_code for topic in answer.topics):
            raise AssertionError(answer.topics)

    def start_workers(self) -> None:
        for library in self.libraries:
            for number in range(WORKERS_PER_LIBRARY):
                self.workers.append(Worker(library, number, self.bootstrap))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run workers; none of them is left at the end."""
        self.start_workers()
        try:
            yield
        finally:
            for each in (*self.workers, *self.zombies):
                each.end()

    def supervise(self) -> None:
        """Restart workers that have ended, as often as needed."""
        for index, worker in enumerate(self.workers):
            if worker.has_ended:
                self.ended.append(f"{worker.library}: {worker.last_words()}")
                self.workers[index] = Worker(worker.library, worker.number, self.bootstrap)

    def torment(self, seconds: float, faults: dict[str, Callable[[], None]], pause: tuple[float, float]) -> None:
        """One fault after another, at random moments; each comes once before one comes again."""
        deadline = time.monotonic() + seconds
        names: list[str] = []
        while time.monotonic() < deadline:
            time.sleep(self.chance.uniform(*pause))
            self.supervise()
            names = names or self.chance.sample(list(faults), len(faults))
            name = names.pop()
            faults[name]()
            self.done[name] += 1

    def supervise_until(self, is_so: Callable[[], bool], awaited: str) -> None:
        """For what takes longer than the torture itself on a busy machine."""
        deadline = time.monotonic() + self.drain_seconds
        while not is_so():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {awaited}")
            self.supervise()
            time.sleep(0.1)

    # --- faults ---

    @property
    def faults(self) -> dict[str, Callable[[], None]]:
        return {
            "a worker killed": self.kill_a_worker,
            "a worker stopped": self.stop_a_worker,
            "a worker fenced": self.fence_a_worker,
            "a worker frozen": self.freeze_a_worker,
            "the broker killed": self.kill_the_broker,
        }

    def kill_a_worker(self) -> None:
        self.chance.choice(self.workers).process.kill()

    def stop_a_worker(self) -> None:
        self.chance.choice(self.workers).process.terminate()

    def fence_a_worker(self) -> None:
        """Start another one with the same transactional id, while the first continues."""
        index = self.chance.randrange(len(self.workers))
        worker = self.workers[index]
        self.zombies.append(worker)
        self.workers[index] = Worker(worker.library, worker.number, self.bootstrap)

    def freeze_a_worker(self) -> None:
        """Long enough for the group to drop it; then it continues as if nothing had happened."""
        process = self.chance.choice(self.workers).process
        seconds = self.chance.uniform(0.5, 4.5)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGSTOP)
        threading.Timer(seconds, lambda: process.poll() is None and process.send_signal(signal.SIGCONT)).start()

    def kill_the_broker(self) -> None:
        self.broker.kill()
        self.broker.start()

    # --- the reckoning ---

    def wait_until_drained(self, count: int) -> None:
        """The clients have their own pauses before they try again, and a killed one's transaction has to time out."""
        deadline = time.monotonic() + self.drain_seconds
        while True:
            self.supervise()
            committed = {library: self.committed_records(library) for library in self.libraries}
            if all(each >= count for each in committed.values()):
                return
            if time.monotonic() > deadline:
                words = [f"{each.library} says:\n{each.where_it_is()}" for each in self.workers]
                raise AssertionError(
                    "\n".join([f"of {count} records there are {committed}", *words, *self.ended[-10:]])
                )
            time.sleep(0.3)  # nothing announces a transaction that was committed elsewhere; polling is the only way

    def committed_records(self, library: str) -> int:
        """How far the group has committed its input: as far as its output goes, unless something is wrong."""
        group = group_of(library)
        request = offset_fetch(8, {group: [(INPUT, list(range(PARTITIONS)))]}, require_stable=True)
        with Wire("127.0.0.1", self.broker.port) as wire:
            (answer,) = wire.ask(ApiKey.OFFSET_FETCH, request, 8).groups
        if answer.error_code:
            return 0
        return sum(max(0, each.committed_offset) for topic in answer.topics for each in topic.partitions)

    def wait_until_stable(self, topic: str) -> dict[int, int]:
        """Where each partition ends, once no transaction is open in it."""
        deadline = time.monotonic() + DRAIN_SECONDS
        parts = [(topic, index, LATEST) for index in range(PARTITIONS)]
        with Wire("127.0.0.1", self.broker.port) as wire:
            while True:
                ends = [
                    {
                        p.partition_index: p.offset
                        for p in wire.ask(ApiKey.LIST_OFFSETS, request, 7).topics[0].partitions
                    }
                    for request in (list_offsets(*parts), list_offsets(*parts, isolation_level=READ_COMMITTED))
                ]
                if ends[0] == ends[1]:
                    return ends[0]
                if time.monotonic() > deadline:
                    raise AssertionError(f"{topic}: a transaction stays open: {ends}")
                time.sleep(0.1)  # as above

    def read(self, topic: str) -> Pairs:
        """Everything that is committed, to the very end."""
        ends = self.wait_until_stable(topic)
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reckoning",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in ends])
        found: Pairs = defaultdict(list)
        open_partitions = {index for index, end in ends.items() if end}
        deadline = time.monotonic() + DRAIN_SECONDS
        while open_partitions and time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found[message.key()].append(message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                open_partitions.discard(message.partition())
            elif not error.retriable():
                raise KafkaException(error)
        consumer.close()
        if open_partitions:
            raise AssertionError(f"{topic}: partitions {open_partitions} could not be read to their end")
        return found


def differences(library: str, fed: Pairs, found: Pairs) -> Iterator[str]:
    """What is missing, what is there twice, and what is in the wrong place."""
    for key in sorted(fed.keys() | found.keys()):
        expected = [transformed(value) for value in fed.get(key, [])]
        actual = found.get(key, [])
        if expected == actual:
            continue
        times = Counter(actual)
        lost = [value for value in expected if not times[value]]
        twice = [value for value, count in times.items() if count > 1]
        alien = sorted(times.keys() - set(expected))
        what = {"lost": lost, "more than once": twice, "never sent": alien}
        named = ", ".join(f"{name}: {values[:5]}" for name, values in what.items() if values)
        yield f"{library}, {key.decode()}: {len(expected)} expected, {len(actual)} found; {named or 'wrong order'}"


def reckon(torture: Torture, feed: Feed) -> None:
    """After the last fault: everything drains, and then every output is the input, once each, in order."""
    fed = feed.finish()
    torture.wait_until_drained(feed.fed)
    for each in (*torture.workers, *torture.zombies):
        each.end()
    source = torture.read(INPUT)
    if source != fed:
        raise AssertionError(f"the input itself is wrong: {feed.fed} fed, {sum(map(len, source.values()))} there")
    wrong = [
        line for library in torture.libraries for line in differences(library, fed, torture.read(output_of(library)))
    ]
    if wrong:
        raise AssertionError("\n".join([*wrong, *torture.ended[-20:]]))


def story_of(torture: Torture, feed: Feed) -> str:
    faults = ", ".join(f"{count} x {name}" for name, count in torture.done.items())
    return f"{feed.fed} records; {faults}; workers that gave up and were replaced: {len(torture.ended)}"
