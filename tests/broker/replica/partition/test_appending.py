"""Appends that go out together or take long, who is told about them, and a partition that is deleted meanwhile."""

from structlog.testing import capture_logs

from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.protocol.records.errors import CorruptRecords, InvalidRecords
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import InvalidRecord, LogFailure
from barnabas.storage.write import AppendResult
from tests.broker.replica.partition.fakes import COMPACTED, FLUSH_EACH, Reader, long_batch, visible
from tests.storage.support import FaultyFileSystem, batch
from tests.support.file_systems import NO_SPACE, WatchedFileSystem


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


class TestTurns:
    def test_what_is_too_much_for_one_turn_is_appended_in_the_next(self, make, replicas):
        partition, appends = make()
        appends.turn(**{f"{number}": batch(b"%d" % number) for number in range(1000)})
        done = len(appends.results)
        assert 100 < done < 1000
        assert replicas.due == [partition]
        appends.turn(last=batch(b"last"))
        while replicas.due:
            appends.turn()
        assert [appends.results[f"{number}"].base_offset for number in range(1000)] == list(range(1000))
        assert appends.results["last"] == AppendResult(1000, 1000)

    def test_too_many_bytes_for_one_turn_are_appended_in_the_next(self, make, replicas):
        _, appends = make()
        appends.turn(**{f"{number}": batch(bytes(1_000_000)) for number in range(20)})
        assert 5 < len(appends.results) < 10

    def test_too_many_segments_for_one_turn_are_created_in_the_next(self, make, replicas):
        _, appends = make(LogConfig(segment_bytes=100))
        appends.turn(**{f"{number}": batch() for number in range(20)})
        assert len(appends.results) == 5
        while replicas.due:
            appends.turn()
        assert [result.base_offset for result in appends.results.values()] == list(range(20))

    def test_one_large_batch_is_appended_in_one_turn(self, make):
        _, appends = make(LogConfig(max_message_bytes=20_000_000))
        appends.turn(large=batch(bytes(10_000_000)), small=batch())
        assert appends.results == {"large": AppendResult(0, 0)}

    def test_a_marker_waits_for_what_is_left(self, make, replicas):
        partition, appends = make()
        marker = build_end_transaction_marker(
            ControlType.COMMIT, timestamp=1, producer_id=7, producer_epoch=0, coordinator_epoch=0
        )
        partition.append_marker_soon(memoryview(marker), 0, appends, "marker")
        appends.turn(**{f"{number}": batch() for number in range(1000)})
        assert "marker" not in appends.results
        while replicas.due:
            appends.turn()
        assert appends.results["marker"] == AppendResult(1000, 1000)


class TestInspections:
    def test_what_is_behind_a_batch_that_takes_long_waits_for_it(self, make, replicas):
        partition, appends = make(COMPACTED)
        appends.turn(first=batch(b"a"), long=long_batch(), behind=batch(b"b"))
        assert appends.results == {"first": AppendResult(0, 0)}
        appends.turn(later=batch(b"c"))
        assert partition.log.high_watermark == 1
        replicas.long_work.finish()
        appends.turn()
        assert appends.results == {
            "first": AppendResult(0, 0),
            "long": AppendResult(1, 5000),
            "behind": AppendResult(5001, 5001),
            "later": AppendResult(5002, 5002),
        }

    def test_a_failed_inspection_refuses_only_its_batch(self, make, replicas):
        _, appends = make(COMPACTED)
        keyless = [*[NewRecord(1, b"k", b"")] * 5000, NewRecord(1, None, b"")]
        appends.turn(long=memoryview(build_batch(keyless)), it=batch())
        replicas.long_work.finish()
        appends.turn()
        assert isinstance(appends.results["long"], InvalidRecord)
        assert appends.results["it"] == AppendResult(0, 0)

    def test_a_marker_waits_for_what_was_queued_before_it(self, make, replicas):
        partition, appends = make(COMPACTED)
        data = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
        partition.admissions.try_out(7, 0, 0, from_zero=False, now_ms=0)
        partition.admissions.admit(7, 0)
        long = long_batch(base_sequence=0, **data)
        marker = build_end_transaction_marker(
            ControlType.COMMIT, timestamp=1, producer_id=7, producer_epoch=0, coordinator_epoch=0
        )
        partition.append_soon(long, appends, "data")
        partition.append_marker_soon(memoryview(marker), 0, appends, "marker")
        appends.turn()
        assert appends.results == {}
        replicas.long_work.finish()
        appends.turn()
        assert appends.results == {"data": AppendResult(0, 4999), "marker": AppendResult(5000, 5000)}

    def test_one_that_fails_in_an_unforeseen_way_refuses_its_batch(self, make, replicas):
        _, appends = make(COMPACTED)
        with capture_logs() as logs:
            appends.turn(long=long_batch(), it=batch())
            replicas.long_work.fail()
            appends.turn()
        assert isinstance(appends.results["long"], InvalidRecords)
        assert appends.results["it"] == AppendResult(0, 0)
        assert [entry["event"] for entry in logs] == ["inspection failed"]

    def test_a_partition_that_is_deleted_meanwhile(self, make, replicas):
        partition, appends = make(COMPACTED)
        appends.turn(long=long_batch(), behind=batch())
        partition.delete()
        replicas.long_work.finish()
        appends.turn()
        assert [type(result) for result in appends.results.values()] == [LogFailure, LogFailure]


class TestReaders:
    def test_learn_how_much_arrived(self, make):
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

    def test_may_leave_while_they_are_notified(self, make):
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

    def test_very_many_are_notified_over_several_turns(self, make, replicas):
        partition, appends = make()
        readers = [Reader() for _ in range(150)]
        partition.waiters.update(dict.fromkeys(readers))
        appends.turn(it=batch())
        assert sum(len(reader.news) for reader in readers) == 100
        ((_, job),) = replicas.jobs
        del partition.waiters[readers[149]]
        for _ in job:
            pass
        assert [len(reader.news) for reader in readers] == [1] * 149 + [0]


class TestDeleting:
    def test_readers_check_again(self, make):
        partition, _ = make()
        reader = Reader()
        partition.waiters[reader] = None
        partition.delete()
        assert reader.news == [0]

    def test_queued_appends_are_dropped(self, make):
        partition, appends = make()
        appends.queue("it", batch())
        partition.delete()
        appends.turn()
        assert isinstance(appends.results["it"], LogFailure)
        assert partition.log.end_offset == 0

    def test_a_deleted_partition_fails_what_waits_for_its_disk(self, make, worker):
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

    def test_the_timer_of_a_flush_has_no_effect(self, make, worker, clock):
        partition, appends = make(LogConfig(flush_ms=5000))
        partition.log.last_flush_ms = clock.now_ms()
        appends.turn(it=batch())
        partition.delete()
        clock.advance(10)
        assert not worker.jobs
