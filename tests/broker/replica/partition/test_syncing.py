"""When what is appended is on disk, and what happens when the disk fails."""

import dataclasses

from structlog.testing import capture_logs

from barnabas.protocol.records.errors import CorruptRecords
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import LogFailure
from barnabas.storage.write import AppendResult
from tests.broker.replica.partition.fakes import FLUSH_EACH, Reader, visible
from tests.storage.support import FaultyFileSystem, batch
from tests.support.compiled import replaces_a_method
from tests.support.file_systems import WatchedFileSystem


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

    def test_a_failed_sync_is_reported_and_closes_the_log(self, make, worker):
        disk = FaultyFileSystem()
        partition, appends = make(FLUSH_EACH, disk)
        bad = batch()
        bad[-1] ^= 1
        appends.turn(first=batch(), bad=bad)
        appends.turn(second=batch())
        disk.fsync_error = OSError("the disk is gone")
        with capture_logs() as logs:
            worker.work()
        assert [entry["event"] for entry in logs] == ["set aside"]
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

    @replaces_a_method
    def test_a_sync_that_fails_in_an_unforeseen_way_is_reported(self, make, monkeypatch):
        partition, appends = make(FLUSH_EACH)

        def broken():
            raise ZeroDivisionError

        monkeypatch.setattr(partition.log, "start_flush", broken)
        with capture_logs() as logs:
            appends.turn(it=batch())
        assert isinstance(appends.results["it"], LogFailure)
        assert [entry["event"] for entry in logs] == ["syncing failed"]

    def test_a_sync_that_cannot_start_is_reported_and_tried_again(self, make, worker):
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
        # What was refused before has been written nevertheless; the client could not know.
        assert visible(partition) == [b"a", b"b", b"c"]

    def test_a_sync_of_what_was_cut_off_says_nothing_about_what_came_after(self, make, worker):
        partition, _ = make(FLUSH_EACH)
        partition.follow(leader_id=1, leader_epoch=1)
        three = memoryview(b"".join(batch(base_offset=offset) for offset in range(3)))
        partition.append_fetched(three, high_watermark=0, log_start_offset=0)
        partition.log.truncate_to(1, now_ms=0)
        partition.log_was_cut()
        partition.append_fetched(batch(base_offset=1), high_watermark=0, log_start_offset=0)
        worker.work()
        assert partition.waits_for_disk
        worker.work()
        assert not partition.waits_for_disk
        assert partition.log.recovery_point == 2

    def test_flush_ms_syncs_later_without_anybody_waiting(self, make, worker, clock):
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

    def test_a_rolled_segment_is_synced_without_anybody_waiting(self, make, worker):
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
    """What a coordinator appends, and when it is committed."""

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

    def test_a_failure_is_reported(self, make, worker):
        disk = FaultyFileSystem()
        partition, _ = make(FLUSH_EACH, disk)
        committed = []
        partition.append_now(batch(b"a"), now_ms=0)
        partition.when_committed(1, committed.append)
        disk.fsync_error = OSError("the disk is gone")
        with capture_logs():
            worker.work()
        assert [type(failure) for failure in committed] == [LogFailure]
