"""The ends of transactions, written to the partitions of a real broker."""

import asyncio

import pytest

from barnabas.broker.internal_topics import CONSUMER_OFFSETS
from barnabas.broker.transaction.markers import Marker
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.control import ControlType, read_end_transaction_marker
from barnabas.storage.errors import InvalidTransactionState
from barnabas.storage.indexes.transaction_index import AbortedTransaction
from barnabas.storage.producer_state import AppendOrigin
from tests.storage.support import bytes_of
from tests.support.batches import batch
from tests.support.file_systems import HeldFileSystem, WatchedFileSystem
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import create_topic, partition, running

PRODUCER = 7


@pytest.fixture
def disk():
    return WatchedFileSystem()


@pytest.fixture
async def broker(tmp_path, disk):
    async with running(tmp_path, clock=ManualClock(), file_system=disk) as broker:
        await create_topic(broker, "t", partitions=3)
        yield broker


def admit(part, producer_id=PRODUCER, epoch=0):
    part.admissions.try_out(producer_id, epoch, 0, from_zero=False, now_ms=0)
    part.admissions.admit(producer_id, epoch)


def begin(broker, index=0, *, producer_id=PRODUCER, epoch=0, sequence=0):
    """Start a transaction in a partition; returns the offset at which it starts."""
    data = batch(b"a", b"b", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True)
    part = partition(broker, "t", index)
    admit(part, producer_id, epoch)
    (result,) = part.log.append([memoryview(bytearray(data))], leader_epoch=0, now_ms=broker.clock.now_ms())
    part.log.update_high_watermark(part.log.end_offset)
    return result.base_offset


def marker(*partitions, producer_id=PRODUCER, epoch=0, coordinator_epoch=3, commit=True, version=0):
    named = [("t", index) if isinstance(index, int) else index for index in partitions]
    return Marker(producer_id, epoch, coordinator_epoch, commit, named, version)


def start(broker, written):
    """Start to write a marker; returns a future with the result for each partition."""
    future = asyncio.get_running_loop().create_future()
    broker.transaction_markers.write(written, lambda errors: future.set_result(dict(errors)))
    return future


async def write(broker, *partitions, **fields):
    return await start(broker, marker(*partitions, **fields))


def last_batch(log, offset):
    data = memoryview(bytes_of(log.read(offset, 1000, upper_bound=log.end_offset)))
    return data, read_header(data)


class TestAMarker:
    @pytest.mark.parametrize("commit", [True, False])
    async def test_is_a_control_batch_of_its_producer(self, broker, commit):
        begin(broker, epoch=5)
        assert await write(broker, 0, epoch=5, commit=commit) == {("t", 0): ErrorCode.NONE}
        data, header = last_batch(partition(broker).log, 2)
        assert (header.is_control, header.is_transactional, header.base_sequence) == (True, True, -1)
        assert (header.producer_id, header.producer_epoch, header.record_count) == (PRODUCER, 5, 1)
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        assert read_end_transaction_marker(data, header) == (kind, 3, broker.clock.now_ms())

    async def test_ends_the_transaction_in_its_partitions_and_no_others(self, broker):
        for index in range(3):
            begin(broker, index)
        assert await write(broker, 0, 2) == {("t", 0): ErrorCode.NONE, ("t", 2): ErrorCode.NONE}
        logs = [partition(broker, "t", index).log for index in range(3)]
        assert [log.last_stable_offset for log in logs] == [3, 0, 3]
        producers = [log.producer_state.producers[PRODUCER] for log in logs]
        assert [producer.current_transaction_first_offset for producer in producers] == [None, 0, None]
        assert [producer.coordinator_epoch for producer in producers] == [3, -1, 3]

    async def test_of_an_abort_is_indexed_for_readers(self, broker):
        begin(broker)
        begin(broker, producer_id=8)
        await write(broker, 0, producer_id=8, commit=False)
        await write(broker, 0)
        log = partition(broker).log
        assert log.aborted_transactions(0, log.end_offset) == [AbortedTransaction(8, 2, 4, 0)]

    async def test_for_a_producer_that_wrote_nothing_is_written_nevertheless(self, broker):
        assert await write(broker, 0) == {("t", 0): ErrorCode.NONE}
        assert partition(broker).log.end_offset == 1


class TestWrites:
    async def test_markers_that_meet_in_a_partition_are_one_write(self, broker, disk):
        for producer_id in range(10):
            begin(broker, producer_id=producer_id)
        disk.writes.clear()
        for future in [start(broker, marker(0, producer_id=producer_id)) for producer_id in range(10)]:
            assert await future == {("t", 0): ErrorCode.NONE}
        assert disk.writes_to(".log") == [10]

    async def test_what_clients_have_queued_goes_before_the_marker(self, broker):
        """A batch that was admitted to a transaction before its end is not left behind its marker."""
        appended = []

        class Client:
            def appended(self, partition, place, result):
                appended.append((place, result.base_offset))

        data = batch(b"a", producer_id=PRODUCER, producer_epoch=0, base_sequence=0, transactional=True)
        admit(partition(broker))
        future = start(broker, marker(0))
        partition(broker).append_soon(memoryview(bytearray(data)), Client(), "place")
        await future
        assert appended == [("place", 0)]
        log = partition(broker).log
        assert (log.last_stable_offset, log.end_offset) == (2, 2)

    async def test_an_admitted_batch_that_comes_after_the_marker_is_refused(self, broker):
        part = partition(broker)
        admit(part)
        await write(broker, 0)
        data = batch(b"a", producer_id=PRODUCER, producer_epoch=0, base_sequence=0, transactional=True)
        (result,) = part.log.append([memoryview(bytearray(data))], leader_epoch=0, now_ms=0)
        assert isinstance(result, InvalidTransactionState)
        assert part.log.last_stable_offset == part.log.end_offset == 1

    async def test_what_is_done_then_may_write_the_next(self, broker):
        futures = []
        broker.transaction_markers.write(marker(0), lambda _: futures.append(start(broker, marker(0, 1))))
        broker.replicas.append_due()
        assert await futures[0] == {("t", 0): ErrorCode.NONE, ("t", 1): ErrorCode.NONE}

    async def test_the_result_waits_until_the_marker_is_committed(self, tmp_path):
        disk = HeldFileSystem()
        async with running(tmp_path / "synced", file_system=disk, log_flush_interval_messages=1) as broker:
            await create_topic(broker, "t")
            with disk.held():
                future = start(broker, marker(0))
                await disk.reached()
                assert not future.done()
            assert await future == {("t", 0): ErrorCode.NONE}


class TestRefusals:
    async def test_of_an_outdated_epoch(self, broker):
        begin(broker, epoch=5)
        assert await write(broker, 0, 1, epoch=4) == {
            ("t", 0): ErrorCode.INVALID_PRODUCER_EPOCH,
            ("t", 1): ErrorCode.NONE,
        }
        assert partition(broker).log.last_stable_offset == 0

    async def test_of_an_outdated_coordinator(self, broker):
        await write(broker, 0, coordinator_epoch=9)
        assert await write(broker, 0, coordinator_epoch=8) == {("t", 0): ErrorCode.TRANSACTION_COORDINATOR_FENCED}

    async def test_from_version_2_a_marker_needs_a_later_epoch_than_the_records(self, broker):
        begin(broker, epoch=5)
        assert await write(broker, 0, epoch=5, version=2) == {("t", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
        assert await write(broker, 0, epoch=6, version=2) == {("t", 0): ErrorCode.NONE}
        assert await write(broker, 0, epoch=6, version=2) == {("t", 0): ErrorCode.NONE}  # sent again

    async def test_by_a_disk_that_fails(self, broker, disk):
        begin(broker)
        disk.broken.append(".log")
        assert await write(broker, 0) == {("t", 0): ErrorCode.KAFKA_STORAGE_ERROR}
        disk.broken.clear()
        assert partition(broker).log.last_stable_offset == 0
        assert await write(broker, 0) == {("t", 0): ErrorCode.NONE}


class TestPartitionsThatAreNotLedHere:
    """They may exist elsewhere: the caller checks the metadata."""

    async def test_are_refused(self, broker):
        names = [("t", 3), ("unknown", 0)]
        assert await write(broker, *names) == dict.fromkeys(names, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    async def test_partitions_that_are_deleted_meanwhile_are_refused(self, broker):
        future = start(broker, marker(0))
        partition(broker).delete()
        assert await future == {("t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}

    async def test_partitions_with_too_few_in_sync_replicas_are_refused(self, broker, monkeypatch):
        monkeypatch.setattr(type(partition(broker)), "has_enough_replicas", lambda self: False)
        assert await write(broker, 0) == {("t", 0): ErrorCode.NOT_ENOUGH_REPLICAS}
        assert partition(broker).log.end_offset == 0


async def test_a_marker_in_a_partition_of_offsets_ends_the_transaction_of_its_groups(tmp_path):
    ended = []
    async with running(tmp_path, offsets_topic_num_partitions=2) as broker:
        await broker.groups.ensure_topic()
        broker.groups.end_transaction = lambda *told: ended.append(told)
        await write(broker, (CONSUMER_OFFSETS, 1), ("t", 0))
        await write(broker, (CONSUMER_OFFSETS, 0), commit=False)
        part = partition(broker, CONSUMER_OFFSETS, 0)
        assert part.log.end_offset == 1
        started = batch(b"a", producer_id=9, producer_epoch=4, base_sequence=-1, transactional=True)
        part.log.append([memoryview(bytearray(started))], leader_epoch=0, now_ms=1, origin=AppendOrigin.COORDINATOR)
        await write(broker, (CONSUMER_OFFSETS, 0), producer_id=9, epoch=3)  # refused: nothing ends
    assert ended == [(1, PRODUCER, True), (0, PRODUCER, False)]
