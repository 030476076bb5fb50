"""Periodic work, on a clock that the test moves."""

import asyncio
import itertools

import pytest
from structlog.testing import capture_logs

from barnabas.broker.server import pieces
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.checkpoints import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, read_offsets
from barnabas.storage.filesystem import FileSystem
from tests.broker.replica.cluster import leader_and_isr, state
from tests.storage.support import batch, read_all, values_of
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import create_topic, delete_topic, partition, running

RETENTION_CHECK = 300
CHECKPOINT = 60
HIGH_WATERMARKS = 5


class TellingFileSystem(FileSystem):
    """Records what it does, and refuses to touch some paths."""

    def __init__(self):
        self.refused = None
        self.refusal = OSError("not this one")
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Queue()

    def _refuse(self, path):
        if self.refused is not None and self.refused in path:
            raise self.refusal

    def rename(self, source, target):
        self._refuse(source)
        super().rename(source, target)
        self._loop.call_soon_threadsafe(self._done.put_nowait, ("rename", target))

    def unlink(self, path):
        self._refuse(path)
        super().unlink(path)
        self._loop.call_soon_threadsafe(self._done.put_nowait, ("unlink", path))

    async def until(self, action, ending):
        while True:
            done, path = await self._done.get()
            if done == action and path.endswith(ending):
                return path


@pytest.fixture
async def clock():
    return ManualClock()


@pytest.fixture
async def disk():
    return TellingFileSystem()


@pytest.fixture
async def broker(tmp_path, clock, disk):
    async with running(tmp_path, clock=clock, file_system=disk) as broker:
        yield broker


def append(broker, value, index=0, **fields):
    """One record, now, in a segment of its own."""
    found = partition(broker, "t", index)
    found.log.roll(broker.clock.now_ms())
    records = batch(value, timestamp=broker.clock.now_ms(), **fields)
    assert not isinstance(found.append_now(records, broker.clock.now_ms()), Exception)


async def all_logs_looked_at(broker):
    while broker.server.dispatcher.pieces.are_under_way:  # noqa: ASYNC110, each turn of the loop does a piece
        await asyncio.sleep(0)


def values(broker, index=0):
    return values_of(read_all(partition(broker, "t", index).log))


async def test_old_segments_are_deleted(broker, clock, disk, tmp_path):
    await create_topic(broker, retention_ms=RETENTION_CHECK * 1000 + 1)
    append(broker, b"a")
    clock.advance(RETENTION_CHECK)
    append(broker, b"b")
    assert values(broker) == [b"a", b"b"]
    clock.advance(RETENTION_CHECK)
    await all_logs_looked_at(broker)
    assert values(broker) == [b"b"]
    assert partition(broker).log.log_start_offset == 1
    deleted = tmp_path / "t-0" / "00000000000000000000.log.deleted"
    assert deleted.exists()  # its readers may finish
    clock.advance(60)
    await disk.until("unlink", "00000000000000000000.log.deleted")
    assert not deleted.exists()


async def test_each_log_is_a_step_of_its_own(broker, clock, monkeypatch):
    await create_topic(broker, "t", partitions=3, retention_ms=1000)
    for index in range(3):
        append(broker, b"a", index)
    monkeypatch.setattr(pieces, "perf_counter", itertools.count(0.0).__next__)  # every step takes longer than a piece
    seen = [[values(broker, index) for index in range(3)]]
    clock.advance(RETENTION_CHECK)
    while seen[-1] != [[], [], []]:
        seen.append([values(broker, index) for index in range(3)])
        await asyncio.sleep(0)
    left = [sum(map(len, each)) for each in seen]
    assert sorted({*left}) == [0, 1, 2, 3]


async def test_a_topic_that_is_deleted_between_two_steps_is_left_out(broker, clock, monkeypatch):
    await create_topic(broker, "t", partitions=3, retention_ms=1000)
    for index in range(3):
        append(broker, b"a", index)
    logs = [partition(broker, "t", index).log for index in range(3)]
    monkeypatch.setattr(pieces, "perf_counter", itertools.count(0.0).__next__)
    clock.advance(RETENTION_CHECK)
    for index in range(3):
        partition(broker, "t", index).deleted = True
    await all_logs_looked_at(broker)
    assert [log.log_start_offset for log in logs] == [1, 0, 0]
    assert broker.set_aside.entries() == []


@pytest.mark.parametrize("refusal", [OSError("not this one"), RuntimeError("nobody foresaw this")])
async def test_a_partition_that_fails_does_not_keep_the_others_from_it(broker, clock, disk, refusal):
    disk.refusal = refusal
    await create_topic(broker, "t", partitions=3, retention_ms=1000)
    for index in range(3):
        append(broker, b"a", index)
        append(broker, b"b", index)
    disk.refused = "/t-1/"
    clock.advance(1)
    with capture_logs() as logs:
        clock.advance(2 * RETENTION_CHECK)
        await all_logs_looked_at(broker)
    assert [values(broker, index) for index in (0, 2)] == [[], []]
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert [(entry["kind"], entry["name"], entry["exc_info"]) for entry in errors] == [
        ("retention", "t-1", None if isinstance(refusal, OSError) else refusal)
    ]
    disk.refused = None
    clock.advance(RETENTION_CHECK)
    await all_logs_looked_at(broker)
    assert values(broker, 1) == []
    assert broker.set_aside.entries() == []


async def test_a_topic_may_be_deleted_before_its_old_segments_are(tmp_path, clock, disk):
    with capture_logs() as logs:
        async with running(tmp_path, clock=clock, file_system=disk) as broker:
            await create_topic(broker, retention_ms=1000)
            append(broker, b"a")
            append(broker, b"b")
            clock.advance(RETENTION_CHECK)
            await all_logs_looked_at(broker)
            await delete_topic(broker)
            await disk.until("unlink", "partition.metadata")
            clock.advance(60)
    assert [entry for entry in logs if entry["log_level"] == "error"] == []


async def test_checkpoints_are_written(broker, clock, disk, tmp_path):
    await create_topic(broker)
    append(broker, b"a")
    partition(broker).log.recovery_point = 1
    clock.advance(CHECKPOINT)
    path = await disk.until("rename", RECOVERY_POINT_CHECKPOINT)
    assert read_offsets(path) == {TopicPartition("t", 0): 1}


async def test_it_repeats(broker, clock, disk):
    for _ in range(3):
        clock.advance(CHECKPOINT)
        await disk.until("rename", RECOVERY_POINT_CHECKPOINT)


async def test_producers_are_forgotten(tmp_path, clock):
    async with running(tmp_path, clock=clock, producer_id_expiration_ms=3_600_000) as broker:
        await create_topic(broker)
        append(broker, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
        clock.advance(3000)
        append(broker, b"b", producer_id=2, producer_epoch=0, base_sequence=0)
        clock.advance(599)
        assert list(partition(broker).log.producer_state.producers) == [1, 2]
        clock.advance(1)
        assert list(partition(broker).log.producer_state.producers) == [2]


async def test_nothing_happens_after_it_has_stopped(tmp_path, clock):
    intervals = (RETENTION_CHECK, CHECKPOINT)
    async with running(tmp_path, clock=clock):
        assert all(clock.pending(interval) for interval in intervals)
    assert not any(clock.pending(interval) for interval in intervals)


async def test_high_watermarks_are_saved_often_where_there_are_followers(broker, clock, disk, tmp_path):
    topic_id = await create_topic(broker, "t")
    assert not clock.pending(HIGH_WATERMARKS)
    order = state(leader=0, leader_epoch=1, replicas=(0, 9), partition_epoch=9)
    broker.replicas.take_roles(leader_and_isr(order, topic_id=topic_id))
    partition(broker).append_now(batch(b"a"), 0)
    partition(broker).follower_fetched(9, 1, 0, 1)
    clock.advance(HIGH_WATERMARKS)
    await disk.until("rename", HIGH_WATERMARK_CHECKPOINT)
    assert read_offsets(str(tmp_path / HIGH_WATERMARK_CHECKPOINT)) == {TopicPartition("t", 0): 1}
