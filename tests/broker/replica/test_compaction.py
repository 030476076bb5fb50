"""Compaction while the broker runs, on a clock that the test moves."""

import asyncio

import pytest

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.checkpoints import RECOVERY_POINT_CHECKPOINT, read_offsets
from barnabas.storage.cleaner import cleaner
from barnabas.storage.cleaner.cleanable import cleanable_section
from barnabas.storage.flush import PendingFlush
from barnabas.storage.log_directory import PendingCheckpoint
from tests.storage.support import batch, read_all, values_of
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import create_topic, delete_topic, partition, running

BACKOFF = 17  # seconds; no other timer of a broker has this interval
RATE = "log.cleaner.io.max.bytes.per.second"
T = TopicPartition("t", 0)


@pytest.fixture
async def clock():
    return ManualClock()


async def flushed(log, now_ms):
    pending: PendingFlush = log.start_flush()
    await asyncio.to_thread(pending.sync)
    log.finish_flush(pending, now_ms)


def damage(log):
    with open(log.segments.first.path, "r+b") as file:
        file.write(bytes(16))


async def overwrite(broker, values, topic="t"):
    """Write the same key again and again, each time in a segment of its own, and have all of it on disk."""
    found = partition(broker, topic)
    for value in values:
        now_ms = broker.clock.now_ms()
        found.append_now(batch(value, key=b"k", timestamp=now_ms), now_ms)
        found.log.roll(now_ms)
    await flushed(found.log, broker.clock.now_ms())


async def compacted(broker):
    """Let the broker look for something to compact, and wait until it has scheduled its next check."""
    broker.clock.advance(BACKOFF)
    await broker.clock.timer_set(BACKOFF)


async def test_only_the_last_value_of_a_key_stays(tmp_path, clock):
    async with running(tmp_path, clock=clock, log_cleaner_backoff_ms=BACKOFF * 1000) as broker:
        await create_topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await overwrite(broker, [b"a", b"b", b"c"])
        await compacted(broker)
        assert values_of(read_all(partition(broker).log)) == [b"c"]


async def test_before_it_leaves_gaps_the_recovery_point_is_on_disk(tmp_path, clock):
    async with running(tmp_path, clock=clock, log_cleaner_backoff_ms=BACKOFF * 1000) as broker:
        await create_topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await overwrite(broker, [b"a", b"b", b"c"])
        await compacted(broker)
        assert read_offsets(str(tmp_path / RECOVERY_POINT_CHECKPOINT))[T] == 3


async def test_nothing_is_compacted_when_the_recovery_point_cannot_be_written(tmp_path, clock, monkeypatch):
    def full(self):
        raise OSError("no space left")

    async with running(tmp_path, clock=clock, log_cleaner_backoff_ms=BACKOFF * 1000) as broker:
        await create_topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await overwrite(broker, [b"a", b"b", b"c"])
        with monkeypatch.context() as patched:
            patched.setattr(PendingCheckpoint, "write", full)
            await compacted(broker)
            assert values_of(read_all(partition(broker).log)) == [b"a", b"b", b"c"]
        await compacted(broker)  # and when there is room again, it continues
        assert values_of(read_all(partition(broker).log)) == [b"c"]


async def test_it_can_be_switched_off(tmp_path, clock):
    async with running(
        tmp_path, clock=clock, log_cleaner_backoff_ms=BACKOFF * 1000, log_cleaner_enable="false"
    ) as broker:
        await create_topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await overwrite(broker, [b"a", b"b", b"c"])
        await compacted(broker)
        assert values_of(read_all(partition(broker).log)) == [b"a", b"b", b"c"]


async def test_at_a_rate_of_0_it_waits_for_another_rate(tmp_path, clock):
    async with running(
        tmp_path, clock=clock, log_cleaner_backoff_ms=BACKOFF * 1000, log_cleaner_io_max_bytes_per_second="0"
    ) as broker:
        await create_topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await overwrite(broker, [b"a", b"b", b"c"])
        await compacted(broker)
        assert values_of(read_all(partition(broker).log)) == [b"a", b"b", b"c"]
        await broker.config_follower.alter_broker(None, lambda _: {RATE: "1e9"})
        await compacted(broker)
        assert values_of(read_all(partition(broker).log)) == [b"c"]


async def test_another_rate_ends_a_cleaning_that_would_take_forever(tmp_path, clock):
    async with running(
        tmp_path, clock=clock, log_cleaner_backoff_ms=BACKOFF * 1000, log_cleaner_io_max_bytes_per_second="1e-9"
    ) as broker:
        await create_topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await overwrite(broker, [b"a", b"b", b"c"])
        broker.clock.advance(BACKOFF)
        await broker.config_follower.alter_broker(None, lambda _: {RATE: "1e9"})
        await broker.clock.timer_set(BACKOFF)
        await compacted(broker)
        assert values_of(read_all(partition(broker).log)) == [b"c"]


async def test_a_log_that_cannot_be_compacted_is_set_aside_and_the_others_continue(tmp_path, clock):
    async with running(tmp_path, clock=clock, log_cleaner_backoff_ms=BACKOFF * 1000) as broker:
        for name in "bad", "good":
            await create_topic(broker, name, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
            await overwrite(broker, [b"a", b"b", b"c"], name)
        damage(partition(broker, "bad").log)
        await compacted(broker)
        assert values_of(read_all(partition(broker, "good").log)) == [b"c"]
        ((kind, name, _),) = broker.set_aside.entries()
        assert (kind, name) == ("compaction", "bad-0")
        await delete_topic(broker, "bad")
        await compacted(broker)
        assert broker.set_aside.entries() == []


async def test_an_unforeseen_error_sets_aside_only_one_log(tmp_path, clock, monkeypatch):
    def section(log, now_ms):
        if log.topic_partition.topic == "bad":
            raise ZeroDivisionError
        return cleanable_section(log, now_ms)

    monkeypatch.setattr(cleaner, "cleanable_section", section)
    async with running(tmp_path, clock=clock, log_cleaner_backoff_ms=BACKOFF * 1000) as broker:
        for name in "bad", "good":
            await create_topic(broker, name, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
            await overwrite(broker, [b"a", b"b", b"c"], name)
        await compacted(broker)
        assert values_of(read_all(partition(broker, "good").log)) == [b"c"]
        assert ("compaction", "bad-0") in broker.set_aside
