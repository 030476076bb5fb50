"""Compaction while the broker runs, on a clock that the test moves."""

import asyncio

import pytest

from storage.checkpoints import RECOVERY_POINT_CHECKPOINT, read_offsets
from storage.flush import PendingFlush
from storage.log_directory import PendingCheckpoint
from storage.topic_partition import TopicPartition
from tests.storage.support import batch, read_all, values_of
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import create_topic, partition, running

BACKOFF = 15
T = TopicPartition("t", 0)


@pytest.fixture
async def clock():
    return ManualClock()


async def flushed(log, now_ms):
    pending: PendingFlush = log.start_flush()
    await asyncio.to_thread(pending.sync)
    log.finish_flush(pending, now_ms)


async def overwrite(broker, values):
    """Write the same key again and again, each time in a segment of its own, and have all of it on disk."""
    found = partition(broker)
    for value in values:
        now_ms = broker.clock.now_ms()
        found.append_now(batch(value, key=b"k", timestamp=now_ms), now_ms)
        found.log.roll(now_ms)
    await flushed(found.log, broker.clock.now_ms())


async def compacted(broker):
    """Let the broker look for something to compact, and wait until it means to look again later."""
    broker.clock.advance(BACKOFF)
    await broker.clock.timer_set(BACKOFF)


async def test_only_the_last_value_of_a_key_stays(tmp_path, clock):
    async with running(tmp_path, clock=clock) as broker:
        await create_topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await overwrite(broker, [b"a", b"b", b"c"])
        await compacted(broker)
        assert values_of(read_all(partition(broker).log)) == [b"c"]


async def test_before_it_leaves_gaps_the_recovery_point_is_on_disk(tmp_path, clock):
    async with running(tmp_path, clock=clock) as broker:
        await create_topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await overwrite(broker, [b"a", b"b", b"c"])
        await compacted(broker)
        assert read_offsets(str(tmp_path / RECOVERY_POINT_CHECKPOINT))[T] == 3


async def test_nothing_is_compacted_when_the_recovery_point_cannot_be_written(tmp_path, clock, monkeypatch):
    def full(self):
        raise OSError("no space left")

    async with running(tmp_path, clock=clock) as broker:
        await create_topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await overwrite(broker, [b"a", b"b", b"c"])
        with monkeypatch.context() as patched:
            patched.setattr(PendingCheckpoint, "write", full)
            await compacted(broker)
            assert values_of(read_all(partition(broker).log)) == [b"a", b"b", b"c"]
        await compacted(broker)  # and when there is room again, it goes on
        assert values_of(read_all(partition(broker).log)) == [b"c"]


async def test_it_can_be_switched_off(tmp_path, clock):
    async with running(tmp_path, clock=clock, log_cleaner_enable="false") as broker:
        await create_topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await overwrite(broker, [b"a", b"b", b"c"])
        await compacted(broker)
        assert values_of(read_all(partition(broker).log)) == [b"a", b"b", b"c"]
