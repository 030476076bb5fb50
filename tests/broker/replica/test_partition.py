"""A partition, with a worker that a test sets going and a clock that it moves."""

import dataclasses
from collections import deque

import pytest
from structlog.testing import capture_logs

from broker.replica.partition import Partition
from protocol.errors import ErrorCode
from protocol.records.errors import CorruptRecords
from storage.config import LogConfig
from storage.errors import LogFailure
from storage.write import AppendResult
from tests.storage.support import FaultyFileSystem, batch, make_log, read_all, values_of
from tests.support.file_systems import NO_SPACE, WatchedFileSystem
from tests.support.manual_clock import ManualClock

FLUSH_EACH = LogConfig(flush_messages=1)


class IdleWorker:
    """Does what it was given when it is told to."""

    def __init__(self):
        self.jobs = deque()

    def run(self, work, done=None):
        self.jobs.append((work, done))

    def work(self):
        job, done = self.jobs.popleft()
        done(job())


class FakeReplicas:
    def __init__(self):
        self.worker = IdleWorker()
        self.clock = ManualClock()
        self.due = []

    def append_soon(self, partition):
        self.due.append(partition)


class Appends:
    """Appends to a partition, and remembers what became of it."""

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
        for due in self.replicas.due:
            due.append_queued(self.replicas.clock.now_ms())
        self.replicas.due.clear()


class Reader:
    def __init__(self):
        self.news = []

    def on_news(self, size):
        self.news.append(size)


@pytest.fixture
def replicas():
    return FakeReplicas()


@pytest.fixture
def worker(replicas):
    return replicas.worker


@pytest.fixture
def clock(replicas):
    return replicas.clock


@pytest.fixture
def make(tmp_path, replicas):
    """Make a partition that leads; it comes with somebody who appends to it."""

    def make(config=None, file_system=None):
        log = make_log(tmp_path / "t-0", config, file_system=file_system)
        partition = Partition(replicas, "t", bytes(16), 0, log)
        partition.lead(0, 1, 1)
        return partition, Appends(partition, replicas)

    return make


def visible(partition):
    """What consumers can read."""
    return values_of(read_all(partition.log, upper_bound=partition.log.high_watermark))


class TestAppending:
    def test_appends_of_one_turn_go_out_in_one_write(self, make):
        disk = WatchedFileSystem()
        _, appends = make(file_system=disk)
        appends.turn(first=batch(b"a"), second=batch(b"b", b"c"), third=batch(b"d"))
        assert appends.results == {
            "first": AppendResult(0, 0),
            "second": AppendResult(1, 2),
            "third": AppendResult(3, 3),
        }
        assert disk.writes_to(".log") == [3]

    def test_it_asks_for_its_turn_once(self, make, replicas):
        partition, appends = make()
        appends.queue("first", batch())
        appends.queue("second", batch())
        assert replicas.due == [partition]
        appends.turn()
        appends.queue("third", batch())
        assert replicas.due == [partition]

    def test_what_is_appended_is_committed(self, make):
        partition, appends = make()
        appends.turn(it=batch(b"a", b"b"))
        assert partition.log.high_watermark == 2
        assert visible(partition) == [b"a", b"b"]

    def test_a_bad_batch_leaves_the_others_alone(self, make):
        partition, appends = make()
        bad = batch(b"x")
        bad[-1] ^= 1
        appends.turn(first=batch(b"a"), second=bad, third=batch(b"b"))
        assert appends.results["first"] == AppendResult(0, 0)
        assert isinstance(appends.results["second"], CorruptRecords)
        assert appends.results["third"] == AppendResult(1, 1)
        assert visible(partition) == [b"a", b"b"]

    def test_a_disk_that_fails_leaves_nothing_behind(self, make):
        disk = FaultyFileSystem()
        partition, appends = make(file_system=disk)
        disk.write_error = NO_SPACE
        appends.turn(it=batch())
        assert isinstance(appends.results["it"], LogFailure)
        assert partition.log.end_offset == partition.log.high_watermark == 0
        disk.write_error = None
        appends.turn(it=batch())
        assert appends.results["it"] == AppendResult(0, 0)


class TestReaders:
    def test_are_told_how_much_came(self, make):
        partition, appends = make()
        reader = Reader()
        partition.waiters[reader] = None
        one, two = batch(b"one"), batch(b"two")
        appends.turn(one=one, two=two)
        assert reader.news == [len(one) + len(two)]

    def test_are_not_told_of_nothing(self, make):
        partition, appends = make()
        reader = Reader()
        partition.waiters[reader] = None
        bad = batch()
        bad[-1] ^= 1
        appends.turn(it=bad)
        assert reader.news == []

    def test_may_leave_while_they_are_told(self, make):
        partition, appends = make()

        class Leaving(Reader):
            def on_news(self, size):
                super().on_news(size)
                del partition.waiters[self]

        readers = [Leaving(), Leaving()]
        partition.waiters.update(dict.fromkeys(readers))
        appends.turn(it=batch())
        assert [len(reader.news) for reader in readers] == [1, 1]
        assert not partition.waiters


class TestSyncing:
    def test_with_flush_messages_an_append_counts_when_it_is_on_disk(self, make, worker):
        partition, appends = make(FLUSH_EACH)
        reader = Reader()
        partition.waiters[reader] = None
        appends.turn(it=batch(b"a"))
        assert (appends.results, reader.news, visible(partition)) == ({}, [], [])
        worker.work()
        assert appends.results == {"it": AppendResult(0, 0)}
        assert len(reader.news) == 1
        assert visible(partition) == [b"a"]

    def test_what_comes_during_a_sync_waits_for_the_next(self, make, worker):
        partition, appends = make(FLUSH_EACH)
        appends.turn(first=batch())
        appends.turn(second=batch())
        assert len(worker.jobs) == 1
        worker.work()
        assert list(appends.results) == ["first"]
        worker.work()
        assert list(appends.results) == ["first", "second"]
        assert not worker.jobs
        assert partition.log.recovery_point == 2

    def test_fewer_than_flush_messages_are_not_waited_for(self, make, worker):
        _, appends = make(LogConfig(flush_messages=3))
        appends.turn(it=batch(b"a", b"b"))
        assert appends.results == {"it": AppendResult(0, 1)}
        assert not worker.jobs
        appends.turn(more=batch(b"c"))
        assert list(appends.results) == ["it"]
        worker.work()
        assert appends.results["more"] == AppendResult(2, 2)

    def test_a_refusal_waits_for_nothing(self, make, worker):
        _, appends = make(FLUSH_EACH)
        bad = batch()
        bad[-1] ^= 1
        appends.turn(it=bad)
        assert isinstance(appends.results["it"], CorruptRecords)
        assert not worker.jobs

    def test_a_failed_sync_is_told_and_ends_the_log(self, make, worker):
        disk = FaultyFileSystem()
        partition, appends = make(FLUSH_EACH, disk)
        bad = batch()
        bad[-1] ^= 1
        appends.turn(first=batch(), bad=bad)
        appends.turn(second=batch())
        disk.fsync_error = OSError("the disk is gone")
        with capture_logs() as logs:
            worker.work()
        assert [entry["event"] for entry in logs] == ["syncing failed"]
        assert isinstance(appends.results["first"], LogFailure)
        assert isinstance(appends.results["bad"], CorruptRecords)
        assert isinstance(appends.results["second"], LogFailure)
        assert visible(partition) == []
        disk.fsync_error = None
        appends.turn(third=batch())
        with capture_logs():
            worker.work()
        assert isinstance(appends.results["third"], LogFailure)
        assert visible(partition) == []

    def test_a_sync_that_cannot_even_begin_is_told_and_tried_again(self, make, worker):
        disk = WatchedFileSystem()
        partition, appends = make(dataclasses.replace(FLUSH_EACH, index_interval_bytes=1), disk)
        disk.broken = ["index"]
        with capture_logs() as logs:
            appends.turn(first=batch(b"a"), second=batch(b"b"))
        assert [entry["event"] for entry in logs] == ["syncing failed"]
        assert all(isinstance(result, LogFailure) for result in appends.results.values())
        assert visible(partition) == []
        disk.broken = []
        appends.turn(third=batch(b"c"))
        worker.work()
        assert appends.results["third"] == AppendResult(2, 2)
        # What was refused before has been written all the same; the client could not know.
        assert visible(partition) == [b"a", b"b", b"c"]

    def test_flush_ms_syncs_later_and_nobody_waits(self, make, worker, clock):
        partition, appends = make(LogConfig(flush_ms=5000))
        partition.log.last_flush_ms = clock.now_ms()
        appends.turn(first=batch())
        clock.advance(3)
        appends.turn(second=batch())
        assert list(appends.results) == ["first", "second"]
        assert not worker.jobs
        clock.advance(2)
        worker.work()
        assert partition.log.recovery_point == 2
        clock.advance(60)
        assert not worker.jobs  # there is nothing new to sync

    def test_a_rolled_segment_is_synced_and_nobody_waits(self, make, worker):
        partition, appends = make(LogConfig(segment_bytes=100))
        appends.turn(first=batch(b"a"))
        assert not worker.jobs
        appends.turn(second=batch(b"b"))
        assert list(appends.results) == ["first", "second"]
        worker.work()
        assert partition.log.recovery_point == 2

    def test_a_segment_that_is_rolled_during_a_sync_is_synced_next(self, make, worker):
        partition, appends = make(LogConfig(segment_bytes=100))
        appends.turn(first=batch(b"a"))
        appends.turn(second=batch(b"b"))
        appends.turn(third=batch(b"c"))
        appends.turn(fourth=batch(b"d"))
        worker.work()
        assert partition.log.recovery_point == 2
        worker.work()
        assert partition.log.recovery_point == 4
        assert not worker.jobs

    def test_what_comes_during_a_sync_by_flush_ms_is_synced_that_much_later(self, make, worker, clock):
        partition, appends = make(LogConfig(flush_ms=5000))
        appends.turn(first=batch())
        appends.turn(second=batch())
        worker.work()
        assert (partition.log.recovery_point, list(worker.jobs)) == (1, [])
        clock.advance(5)
        worker.work()
        assert partition.log.recovery_point == 2


class TestCommits:
    """What a coordinator appends, and when it may count on it."""

    def test_is_committed_at_once(self, make):
        partition, _ = make()
        committed = []
        assert partition.append_now(batch(b"a"), now_ms=0) == AppendResult(0, 0)
        partition.when_committed(1, committed.append)
        assert committed == [None]

    def test_is_committed_when_it_is_on_disk(self, make, worker):
        partition, _ = make(FLUSH_EACH)
        committed = []
        partition.append_now(batch(b"a"), now_ms=0)
        partition.when_committed(1, lambda failure: committed.append((1, failure)))
        partition.append_now(batch(b"b"), now_ms=0)
        partition.when_committed(2, lambda failure: committed.append((2, failure)))
        worker.work()
        assert committed == [(1, None)]
        worker.work()
        assert committed == [(1, None), (2, None)]

    def test_a_failure_is_told(self, make, worker):
        disk = FaultyFileSystem()
        partition, _ = make(FLUSH_EACH, disk)
        committed = []
        partition.append_now(batch(b"a"), now_ms=0)
        partition.when_committed(1, committed.append)
        disk.fsync_error = OSError("the disk is gone")
        with capture_logs():
            worker.work()
        assert [type(failure) for failure in committed] == [LogFailure]


class TestLeading:
    def test_all_that_a_single_replica_has_is_committed(self, make):
        partition, appends = make()
        appends.turn(it=batch())
        partition.log.high_watermark = 0
        partition.lead(1, 1, 1)
        assert partition.log.high_watermark == 1

    def test_a_new_epoch_begins_at_the_end_of_the_log(self, make):
        partition, appends = make()
        appends.turn(it=batch(b"a", b"b"))
        partition.lead(5, 1, 1)
        appends.turn(more=batch(b"c"))
        assert partition.log.leader_epochs.epoch_of(1) == 0
        assert partition.log.leader_epochs.epoch_of(2) == 5

    def test_what_waits_for_the_disk_is_not_committed_by_a_change_of_settings(self, make, worker):
        partition, appends = make(FLUSH_EACH)
        reader = Reader()
        partition.waiters[reader] = None
        appends.turn(it=batch(b"a"))
        partition.lead(0, 1, 1)
        assert visible(partition) == []
        worker.work()
        assert visible(partition) == [b"a"]
        assert len(reader.news) == 1

    @pytest.mark.parametrize(
        ("epoch", "error"),
        [
            (-1, ErrorCode.NONE),
            (3, ErrorCode.NONE),
            (2, ErrorCode.FENCED_LEADER_EPOCH),
            (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ],
    )
    def test_a_client_may_believe_in_another_epoch(self, make, epoch, error):
        partition, _ = make()
        partition.lead(3, 1, 1)
        assert partition.check_leader_epoch(epoch) == error

    @pytest.mark.parametrize(
        ("min_insync_replicas", "replicas", "in_sync", "enough"),
        [(1, 1, 1, True), (2, 3, 2, True), (2, 3, 1, False), (2, 1, 1, True), (3, 2, 1, False)],
    )
    def test_whether_enough_replicas_are_in_sync(self, make, min_insync_replicas, replicas, in_sync, enough):
        partition, _ = make(LogConfig(min_insync_replicas=min_insync_replicas))
        partition.lead(0, replicas, in_sync)
        assert partition.has_enough_replicas() == enough


class TestDeleting:
    def test_readers_take_another_look(self, make):
        partition, _ = make()
        reader = Reader()
        partition.waiters[reader] = None
        partition.delete()
        assert reader.news == [0]

    def test_what_was_to_be_appended_is_not(self, make):
        partition, appends = make()
        appends.queue("it", batch())
        partition.delete()
        appends.turn()
        assert isinstance(appends.results["it"], LogFailure)
        assert partition.log.end_offset == 0

    def test_nobody_waits_for_a_disk_any_more(self, make, worker):
        partition, appends = make(FLUSH_EACH)
        committed = []
        appends.turn(first=batch())
        appends.turn(second=batch())
        partition.when_committed(2, committed.append)
        partition.delete()
        assert [type(result) for result in appends.results.values()] == [LogFailure, LogFailure]
        assert [type(failure) for failure in committed] == [LogFailure]
        worker.work()
        assert not worker.jobs

    def test_the_timer_of_a_flush_comes_to_nothing(self, make, worker, clock):
        partition, appends = make(LogConfig(flush_ms=5000))
        partition.log.last_flush_ms = clock.now_ms()
        appends.turn(it=batch())
        partition.delete()
        clock.advance(10)
        assert not worker.jobs
