"""A shard from the moment when its partition is led here until it no longer is."""

import pytest

from barnabas.broker.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.broker.coordinator.transactional import TransactionEnd
from barnabas.protocol.errors import ErrorCode
from tests.broker.coordinator.test_runtime import Append, HeldWorker, carry_out, loaded, runtime_of
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import create_topic, delete_topic, partition, running
from tests.support.slow_replicas import SlowReplicas

KEYS = {0: "b", 1: "a"}  # a key of each partition


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def broker(tmp_path, clock):
    async with running(tmp_path, clock=clock) as broker:
        await create_topic(broker, "c", partitions=2)
        await create_topic(broker, "other")
        yield broker


@pytest.fixture
def slow(broker):
    return SlowReplicas(partition(broker, "c"))


def led_again(part):
    part.leader_epoch += 1
    return part


class TestWhoCoordinates:
    async def test_only_what_is_led_here_has_a_coordinator(self, broker):
        worker = HeldWorker()
        runtime = runtime_of(broker, worker)
        runtime.on_leader(partition(broker, "c", 1))
        runtime.on_leader(partition(broker, "other"))  # does not concern it
        worker.finish()
        assert runtime.shards.keys() == {1}
        assert runtime.shard_of(KEYS[1])[0] == 1
        assert runtime.shard_of(KEYS[0]) == ErrorCode.NOT_COORDINATOR

    async def test_a_partition_that_is_lost_takes_only_its_shard_along(self, broker):
        runtime = loaded(broker)
        gone, told = runtime.shards[0], []
        runtime.ask(0, Append(KEYS[0], told))
        runtime.ask(1, Append(KEYS[1], told))
        runtime.on_not_leader(partition(broker, "c", 0))
        assert gone.is_unloaded
        assert told == [(KEYS[0], ErrorCode.NOT_COORDINATOR)]
        assert carry_out(runtime, (b"k", b"1"), index=0) == [ErrorCode.NOT_COORDINATOR]
        runtime.carry_out_asked()
        assert told[1:] == [(KEYS[1], ErrorCode.NONE)]
        assert not runtime.is_loading

    async def test_what_a_shard_decides_after_its_end_is_not_written(self, broker):
        runtime = loaded(broker)
        old = runtime.shards[0]
        runtime.on_not_leader(partition(broker, "c", 0))
        runtime.on_leader(led_again(partition(broker, "c", 0)))
        assert runtime.shards[0] is not old
        told = []
        old.carry_out(CoordinatorResult([CoordinatorRecord(b"k", b"1")], told.append))
        assert told == [ErrorCode.NOT_COORDINATOR]
        assert partition(broker, "c").log.end_offset == 0

    async def test_in_the_next_epoch_of_the_same_leader_nothing_is_loaded_again(self, broker):
        runtime = loaded(broker)
        shard = runtime.shards[0]
        runtime.on_leader(led_again(partition(broker, "c", 0)))
        assert runtime.shards[0] is shard
        assert runtime.leader_epoch(0) == 1

    async def test_the_loss_of_an_older_log_of_that_name_changes_nothing(self, broker):
        """The topic was deleted and created again: an end that arrives late is not that of the new partition."""
        late = partition(broker, "c")
        await delete_topic(broker, "c")
        await create_topic(broker, "c", partitions=2)
        runtime = loaded(broker)
        runtime.on_not_leader(late)
        assert 0 in runtime.shards


class TestLoading:
    @pytest.fixture
    def worker(self):
        return HeldWorker()

    @pytest.fixture
    def runtime(self, broker, worker):
        carry_out(loaded(broker), (b"k", b"1"))
        runtime = runtime_of(broker, worker)
        runtime.on_leader(partition(broker, "c"))
        return runtime

    async def test_a_load_in_progress_when_the_partition_is_lost_has_no_effect(self, broker, runtime, worker):
        """KAFKA-10614: it was installed after the unload, and two brokers coordinated."""
        runtime.on_not_leader(partition(broker, "c"))
        assert not runtime.is_loading
        worker.finish()
        assert runtime.shards == {}
        assert runtime.shard_of(KEYS[0]) == ErrorCode.NOT_COORDINATOR

    async def test_only_the_load_of_the_latest_epoch_counts(self, broker, runtime, worker):
        first = worker.held.pop()
        runtime.on_not_leader(partition(broker, "c"))
        carry_out(loaded(broker), (b"k", b"2"))  # by another leader
        runtime.on_leader(led_again(partition(broker, "c")))
        worker.finish()
        shard = runtime.shards[0]
        assert shard.replayed == [b"1", b"2"]
        work, done = first
        done(work())  # the old one is ready at last
        worker.finish()
        assert runtime.shards[0] is shard
        assert shard.replayed == [b"1", b"2"]

    async def test_a_load_in_progress_starts_again_in_a_newer_epoch(self, broker, runtime, worker):
        first = worker.held.pop()
        runtime.on_leader(led_again(partition(broker, "c")))
        work, done = first
        done(work())
        assert runtime.is_loading
        worker.finish()
        assert runtime.shards[0].replayed == [b"1"]

    async def test_a_load_that_fails_too_late_does_no_harm(self, broker, runtime, worker):
        _, done = worker.held.pop()
        runtime.on_leader(led_again(partition(broker, "c")))
        worker.finish()
        done(OSError("the disk is gone"))
        assert runtime.shards[0].replayed == [b"1"]

    async def test_it_is_complete_when_all_that_was_there_is_committed(self, broker, slow, worker):
        """The next leader may truncate what a leader has beyond the high watermark."""
        runtime_before = loaded(broker)
        carry_out(runtime_before, (b"k", b"1"))
        runtime = runtime_of(broker, worker)
        runtime.on_leader(partition(broker, "c"))
        worker.finish()
        assert runtime.shard_of(KEYS[0]) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        slow.commit(partition(broker, "c"))
        assert runtime.shard_of(KEYS[0])[1].replayed == [b"1"]

    async def test_one_whose_partition_is_lost_before_that_has_not_failed(self, broker, slow, worker):
        carry_out(loaded(broker), (b"k", b"1"))
        runtime = runtime_of(broker, worker)
        runtime.on_leader(partition(broker, "c"))
        worker.finish()
        slow.lose(partition(broker, "c"), runtime)
        assert runtime.shard_of(KEYS[0]) == ErrorCode.NOT_COORDINATOR
        assert not broker.set_aside.entries()

    async def test_it_is_abandoned_if_that_is_never_committed(self, broker, slow, worker):
        carry_out(loaded(broker), (b"k", b"1"))
        runtime = runtime_of(broker, worker)
        runtime.on_leader(partition(broker, "c"))
        worker.finish()
        slow.lose(partition(broker, "c"), runtime)
        assert runtime.shard_of(KEYS[0]) == ErrorCode.NOT_COORDINATOR
        assert not runtime.is_loading

    async def test_it_reads_only_what_was_there_when_it_started(self, broker, runtime, worker):
        """Only ends of transactions arrive meanwhile, and they are reported."""
        carry_out(loaded(broker), (b"k", b"2"))
        runtime.end_transaction(0, TransactionEnd(7, committed=True))
        worker.finish()
        assert runtime.shards[0].replayed == [b"1", TransactionEnd(7, committed=True)]


@pytest.mark.parametrize("told_first", [True, False])
class TestAnswers:
    """Nobody is told what a new leader may not have."""

    @pytest.fixture
    def runtime(self, broker, slow):
        return loaded(broker)

    async def test_a_write_is_answered_when_it_is_committed(self, broker, runtime, slow, told_first):
        told = carry_out(runtime, (b"k", b"1"))
        assert runtime.shards[0].replayed == [b"1"]
        assert told == []
        slow.commit(partition(broker, "c"))
        assert told == [ErrorCode.NONE]

    async def test_a_write_that_a_new_leader_truncates_is_not_acknowledged(self, broker, runtime, slow, told_first):
        told = carry_out(runtime, (b"k", b"1"))
        slow.lose(partition(broker, "c"), runtime, told_first=told_first)
        assert told == [ErrorCode.NOT_COORDINATOR]
        assert runtime.shards.keys() == {1}

    async def test_an_answer_that_depends_on_it_waits_too(self, broker, runtime, slow, told_first):
        carry_out(runtime, (b"k", b"1"))
        told, asked = [], []
        runtime.when_committed(0, told.append)
        refused = CoordinatorResult(done=told.append, error=ErrorCode.NON_EMPTY_GROUP)
        runtime.carry_out(0, refused)
        runtime.ask(0, Append(KEYS[0], asked, ErrorCode.INVALID_TXN_STATE))
        runtime.carry_out_asked()
        assert not runtime.is_settled(0)
        assert not runtime.all_committed([0, 1])
        assert runtime.all_committed([1])
        assert told == asked == []
        slow.commit(partition(broker, "c"))
        assert told == [ErrorCode.NONE, ErrorCode.NON_EMPTY_GROUP]
        assert asked == [(KEYS[0], ErrorCode.INVALID_TXN_STATE)]

    async def test_such_an_answer_fails_if_it_is_truncated(self, broker, runtime, slow, told_first):
        carry_out(runtime, (b"k", b"1"))
        told, asked, settled = [], [], []
        runtime.carry_out(0, CoordinatorResult(done=told.append, error=ErrorCode.NON_EMPTY_GROUP))
        runtime.ask(0, Append(KEYS[0], asked, ErrorCode.NONE))
        runtime.carry_out_asked()
        runtime.when_all_committed([0, 1], settled.append)
        slow.lose(partition(broker, "c"), runtime, told_first=told_first)
        assert told == [ErrorCode.NOT_COORDINATOR]
        assert asked == [(KEYS[0], ErrorCode.NOT_COORDINATOR)]
        assert settled == [False]

    async def test_the_shard_is_gone_when_a_failure_is_reported(self, broker, runtime, slow, told_first):
        found = []
        decision = CoordinatorResult([CoordinatorRecord(b"k", b"1")], lambda error: found.append(runtime.shard_of("b")))
        runtime.carry_out(0, decision)
        slow.lose(partition(broker, "c"), runtime, told_first=told_first)
        assert found == [ErrorCode.NOT_COORDINATOR]

    async def test_the_next_leadership_begins_with_what_is_in_the_log(self, broker, runtime, slow, told_first):
        carry_out(runtime, (b"k", b"1"))
        part = partition(broker, "c")
        slow.lose(part, runtime, told_first=told_first)
        part.log.truncate_to(0, now_ms=1)  # as a follower of one who did not have it
        slow.lead_again(part, runtime)
        assert runtime.shards[0].replayed == []


async def test_nothing_is_decided_with_too_few_replicas(broker, monkeypatch):
    runtime = loaded(broker)
    monkeypatch.setattr(type(partition(broker, "c")), "has_enough_replicas", lambda self: False)
    assert carry_out(runtime, (b"k", b"1")) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert runtime.shards[0].replayed == []
    assert partition(broker, "c").log.end_offset == 0


async def test_a_client_does_not_wait_for_replicas_for_ever(broker, slow, clock):
    runtime = loaded(broker)
    runtime._timeout_ms = lambda: 5000
    told = carry_out(runtime, (b"k", b"1"))
    clock.advance(4.9)
    assert told == []
    clock.advance(0.2)
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    slow.commit(partition(broker, "c"))
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


async def test_shards_are_computed_for_few_keys_and_all_of_them_assumed_for_many_or_long_ones(broker):
    runtime = loaded(broker)
    assert list(runtime.indexes_of([KEYS[0]])) == [0]
    assert set(runtime.indexes_of([KEYS[0]] * 101)) == {0, 1}
    assert set(runtime.indexes_of([KEYS[0], "x" * 32_767])) == {0, 1}
