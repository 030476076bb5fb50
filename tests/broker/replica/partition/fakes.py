"""What surrounds a partition: a worker and long work that a test runs by hand, writers and readers."""

from collections import deque

from barnabas.broker.replica.moments import Moments
from barnabas.broker.set_aside import SetAside
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.storage.config import LogConfig
from tests.storage.support import read_all, values_of
from tests.support.manual_clock import ManualClock

FLUSH_EACH = LogConfig(flush_messages=1)
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))


class IdleWorker:
    """Does its work when it is told to."""

    def __init__(self):
        self.jobs = deque()

    def run(self, work, done=None):
        self.jobs.append((work, done))

    def work(self):
        job, done = self.jobs.popleft()
        done(job())


class FakeReplicas:
    broker_id = 0
    max_lag_ms = 30_000

    def __init__(self):
        self.worker = IdleWorker()
        self.clock = ManualClock()
        self.set_aside = SetAside()
        self.moments = Moments()
        self.due = []
        self.on_disk = []
        self.long_work = IdleLongWork()
        self.jobs = []

    def append_soon(self, partition):
        self.due.append(partition)

    def is_alive(self, broker_id):
        return True

    def is_on_disk(self, partition):
        self.on_disk.append(partition)

    def in_turns(self, name, job):
        self.jobs.append((name, job))


class IdleLongWork:
    """Does its work when it is told to."""

    def __init__(self):
        self.works = deque()

    def add(self, work, done):
        self.works.append((work, done))

    def finish(self):
        work, done = self.works.popleft()
        while not work.finished:
            work.advance()
        done(None)

    def fail(self):
        self.works.popleft()[1](ZeroDivisionError())


class Appends:
    """Appends to a partition, and remembers the outcome."""

    def __init__(self, partition, replicas):
        self.partition = partition
        self.replicas = replicas
        self.results = {}

    def appended(self, partition, place, result):
        assert partition is self.partition
        self.results[place] = result

    def queue(self, place, records):
        self.partition.append_soon(records, self, place)

    def turn(self, **record_sets):
        """What arrives in one turn of the loop."""
        for place, records in record_sets.items():
            self.queue(place, records)
        due, self.replicas.due = self.replicas.due, []
        for partition in due:
            partition.append_queued(self.replicas.clock.now_ms())


def long_batch(**fields):
    """More than is inspected at once."""
    return memoryview(build_batch([NewRecord(1, b"k", b"")] * 5000, **fields))


class Reader:
    def __init__(self):
        self.news = []

    def on_news(self, size):
        self.news.append(size)


def visible(partition):
    """What consumers can read."""
    return values_of(read_all(partition.log, upper_bound=partition.log.high_watermark))
