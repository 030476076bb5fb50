"""Decide, append, replay, answer: with a shard that keeps a list, in a partition of a real broker."""

import asyncio
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from barnabas.broker.coordinator.key_hash import partition_of
from barnabas.broker.coordinator.loading import whole_batches
from barnabas.broker.coordinator.result import CoordinatorRecord, CoordinatorResult, ProducerIdAndEpoch
from barnabas.broker.coordinator.runtime import CoordinatorRuntime
from barnabas.broker.coordinator.transactional import InTransaction, TransactionEnd
from barnabas.broker.transaction.markers import Marker
from barnabas.protocol.errors import ErrorCode, ProtocolError
from barnabas.protocol.records.batch import HEADER_SIZE, seal
from barnabas.protocol.records.compression import CompressionType
from barnabas.storage.errors import LogFailure
from tests.storage.support import FaultyFileSystem, batch, bytes_of, read_all
from tests.support.running_broker import create_topic, delete_topic, partition, running
from tests.support.slow_replicas import SlowReplicas


class Shard:
    """Keeps what it replays."""

    def __init__(self, carry_out):
        self.carry_out = carry_out
        self.replayed = []
        self.is_loaded = False
        self.is_unloaded = False

    def replay(self, read):
        self.replayed.append(read)

    def loaded(self):
        self.is_loaded = True

    def unloaded(self):
        self.is_unloaded = True


def read_record(record):
    """A record's value, unless it is of a kind that is unknown or broken."""
    if record.key == b"broken":
        raise ProtocolError("broken")
    return None if record.key == b"unknown" else record.value


class HeldWorker:
    """Does its work when a test tells it to."""

    def __init__(self):
        self.held = []

    def run(self, work, done):
        self.held.append((work, done))

    def step(self):
        """Do what has been asked for so far, but not the work that follows from it."""
        held, self.held = self.held, []
        for work, done in held:
            try:
                outcome = work()
            except Exception as error:
                outcome = error
            done(outcome)

    def finish(self):
        while self.held:
            self.step()


@pytest.fixture
async def broker(tmp_path):
    async with running(tmp_path) as broker:
        await create_topic(broker, "c", partitions=2)
        yield broker


def runtime_of(broker, worker=None, *, make_shard=Shard, in_transactions=True):
    """A run-time of its own over the broker's partitions; its loading waits for a test's worker."""
    replicas = broker.replicas
    over = SimpleNamespace(
        of_topic=replicas.of_topic,
        partition_count=replicas.partition_count,
        find=replicas.find,
        clock=replicas.clock,
        set_aside=broker.set_aside,
        worker=worker,
    )
    return CoordinatorRuntime("c", over, make_shard, read_record, kind="key", in_transactions=in_transactions)


def loaded(broker, **options):
    worker = HeldWorker()
    runtime = runtime_of(broker, worker, **options)
    runtime.load()
    worker.finish()
    return runtime


def carry_out(runtime, *records, index=0):
    told = []
    decision = CoordinatorResult([CoordinatorRecord(key, value) for key, value in records], told.append)
    runtime.carry_out(index, decision)
    return told


# --- carrying out ---


async def test_records_are_appended_and_replayed_before_it_is_reported(broker):
    runtime = loaded(broker)
    assert carry_out(runtime, (b"k", b"1"), (b"k", b"2")) == [ErrorCode.NONE]
    assert runtime.shards[0].replayed == [b"1", b"2"]
    assert runtime.shards[1].replayed == []
    assert [record.value for record in read_all(partition(broker, "c").log)] == [b"1", b"2"]


async def test_a_decision_of_the_shards_own_is_carried_out_in_its_partition(broker):
    runtime = loaded(broker)
    runtime.shards[1].carry_out(CoordinatorResult([CoordinatorRecord(b"k", b"1")]))
    assert runtime.shards[1].replayed == [b"1"]
    assert [record.value for record in read_all(partition(broker, "c", 1).log)] == [b"1"]


async def test_without_records_there_is_nothing_to_wait_for(broker):
    runtime = loaded(broker)
    assert carry_out(runtime) == [ErrorCode.NONE]
    assert partition(broker, "c").log.end_offset == 0


async def test_what_cannot_be_appended_is_not_replayed(tmp_path):
    disk = FaultyFileSystem()
    async with running(tmp_path, file_system=disk) as broker:
        await create_topic(broker, "c")
        runtime = loaded(broker)
        disk.write_error = OSError("no space left")
        with capture_logs():
            assert carry_out(runtime, (b"k", b"1")) == [ErrorCode.NOT_COORDINATOR]
        disk.write_error = None
        assert runtime.shards[0].replayed == []


# --- transactions ---


async def end_transaction(broker, producer_id, committed):
    """What a transaction's coordinator writes, and how the run-time learns about it in a partition of its own."""
    done = asyncio.get_running_loop().create_future()
    broker.transaction_markers.write(Marker(producer_id, 0, 0, committed, [("c", 0)]), done.set_result)
    await done


async def test_records_of_a_transaction_are_written_and_replayed_as_such(broker):
    runtime = loaded(broker)
    decision = CoordinatorResult([CoordinatorRecord(b"k", b"1")], producer=ProducerIdAndEpoch(7, 3))
    runtime.carry_out(0, decision)
    assert runtime.shards[0].replayed == [InTransaction(7, b"1")]
    log = partition(broker, "c").log
    ((_, header),) = whole_batches(memoryview(bytes_of(log.read(0, 1000, upper_bound=log.end_offset))))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert header.is_transactional
    assert log.last_stable_offset == 0


async def test_a_producer_with_an_old_epoch_is_fenced(broker):
    runtime = loaded(broker)
    told = []
    for epoch in (3, 2):
        runtime.carry_out(
            0, CoordinatorResult([CoordinatorRecord(b"k", b"1")], told.append, ProducerIdAndEpoch(7, epoch))
        )
    assert told == [ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH]
    assert len(runtime.shards[0].replayed) == 1


async def test_loading_replays_transactions_and_their_ends(broker):
    runtime = loaded(broker)
    runtime.carry_out(0, CoordinatorResult([CoordinatorRecord(b"k", b"1")], producer=ProducerIdAndEpoch(7, 0)))
    carry_out(runtime, (b"k", b"2"))
    await end_transaction(broker, 7, committed=True)
    runtime.carry_out(0, CoordinatorResult([CoordinatorRecord(b"k", b"3")], producer=ProducerIdAndEpoch(8, 0)))
    await end_transaction(broker, 8, committed=False)
    assert loaded(broker).shards[0].replayed == [
        InTransaction(7, b"1"),
        b"2",
        TransactionEnd(7, committed=True),
        InTransaction(8, b"3"),
        TransactionEnd(8, committed=False),
    ]


async def test_an_end_that_comes_while_a_shard_is_loaded_is_replayed_once(broker):
    runtime_before = loaded(broker)
    runtime_before.carry_out(0, CoordinatorResult([CoordinatorRecord(b"k", b"1")], producer=ProducerIdAndEpoch(7, 0)))
    worker = HeldWorker()
    runtime = runtime_of(broker, worker)
    runtime.load()
    await end_transaction(broker, 7, committed=True)
    runtime.end_transaction(0, TransactionEnd(7, committed=True))  # what is being loaded finds it in the log
    worker.finish()
    assert runtime.shards[0].replayed == [InTransaction(7, b"1"), TransactionEnd(7, committed=True)]
    runtime.end_transaction(0, TransactionEnd(8, committed=False))
    assert runtime.shards[0].replayed[-1] == TransactionEnd(8, committed=False)


async def test_records_that_need_not_take_effect_together_are_appended_in_parts(broker, monkeypatch):
    monkeypatch.setattr("barnabas.broker.coordinator.runtime._RECORDS_PER_PART", 2)
    runtime = loaded(broker)
    runtime.carry_out_in_parts(0, [CoordinatorRecord(b"k", bytes([number])) for number in range(5)])
    assert runtime.shards[0].replayed == [bytes([number]) for number in range(5)]
    log = partition(broker, "c").log
    data = memoryview(bytes_of(log.read(0, 1_000_000, upper_bound=log.end_offset)))
    assert [header.record_count for _, header in whole_batches(data)] == [2, 2, 1]


async def test_what_is_too_large_for_the_topic_is_refused(tmp_path):
    async with running(tmp_path) as broker:
        await create_topic(broker, "c", max_message_bytes=100)
        runtime = loaded(broker)
        assert carry_out(runtime, (b"k", bytes(200))) == [ErrorCode.MESSAGE_TOO_LARGE]
        assert runtime.shards[0].replayed == []


async def test_a_sync_that_fails_is_reported(broker, monkeypatch):
    runtime = loaded(broker)
    waiting = []
    monkeypatch.setattr(type(partition(broker, "c")), "when_committed", lambda self, offset, done: waiting.append(done))
    told = carry_out(runtime, (b"k", b"1"))
    assert told == []  # it is replayed, but not yet true for others
    assert runtime.shards[0].replayed == [b"1"]
    waiting[0](LogFailure("the disk is gone"))
    assert told == [ErrorCode.NOT_COORDINATOR]


# --- several at once ---


class Append:
    """An operation that appends a value under its key, to what the shard has replayed under it."""

    def __init__(self, key, told, outcome=None):
        self.key = key
        self._told = told
        self._outcome = outcome

    def decide(self, shard):
        if self._outcome is not None:
            return CoordinatorResult(done=self.done, error=self._outcome, key=self.key)
        value = b"%d" % sum(read.startswith(self.key.encode()) for read in shard.replayed)
        record = CoordinatorRecord(self.key.encode(), value, self.key.encode() + value)
        return CoordinatorResult([record], self.done, key=self.key)

    def done(self, error):
        self._told.append((self.key, error))


def batch_sizes(log):
    data = memoryview(bytes_of(log.read(0, 1_000_000, upper_bound=log.end_offset)))
    return [header.record_count for _, header in whole_batches(data)]


async def test_operations_of_one_turn_are_one_append(broker):
    runtime = loaded(broker)
    told = []
    for key in ("a", "b", "c"):
        runtime.ask(0, Append(key, told))
    assert runtime.has_asked
    assert not runtime.is_settled(0)
    runtime.carry_out_asked()
    assert told == [(key, ErrorCode.NONE) for key in "abc"]
    assert runtime.shards[0].replayed == [b"a0", b"b0", b"c0"]
    assert batch_sizes(partition(broker, "c").log) == [3]
    assert not runtime.has_asked
    assert runtime.is_settled(0)


async def test_operations_on_one_key_see_the_decisions_before_them(broker):
    runtime = loaded(broker)
    told = []
    for key in ("a", "b", "a", "a"):
        runtime.ask(0, Append(key, told))
    runtime.carry_out_asked()
    assert runtime.shards[0].replayed == [b"a0", b"b0", b"a1", b"a2"]
    assert batch_sizes(partition(broker, "c").log) == [2, 1, 1]
    assert [key for key, _ in told] == ["a", "b", "a", "a"]


async def test_a_result_without_records_is_reported_as_well(broker):
    runtime = loaded(broker)
    told = []
    runtime.ask(0, Append("a", told))
    runtime.ask(0, Append("b", told, ErrorCode.INVALID_TXN_STATE))
    runtime.ask(0, Append("c", told, ErrorCode.NONE))
    runtime.carry_out_asked()
    assert sorted(told) == [("a", ErrorCode.NONE), ("b", ErrorCode.INVALID_TXN_STATE), ("c", ErrorCode.NONE)]
    assert runtime.shards[0].replayed == [b"a0"]


async def test_what_an_operation_asks_for_when_it_is_done_is_carried_out_with_it(broker):
    runtime = loaded(broker)
    told = []
    first = Append("a", told)
    first.done = lambda error: runtime.ask(1, Append("b", told))
    runtime.ask(0, first)
    runtime.carry_out_asked()
    assert told == [("b", ErrorCode.NONE)]
    assert runtime.shards[1].replayed == [b"b0"]


async def test_what_is_too_large_together_is_appended_in_parts_and_one_that_is_too_large_refused(tmp_path):
    async with running(tmp_path) as broker:
        await create_topic(broker, "c", max_message_bytes=200)
        runtime = loaded(broker)
        told = []
        keys = [*"abcd", "e" * 300]
        for key in keys:
            runtime.ask(0, Append(key * 30 if len(key) == 1 else key, told))
        runtime.carry_out_asked()
        assert [error for _, error in told] == [ErrorCode.NONE] * 4 + [ErrorCode.MESSAGE_TOO_LARGE]
        assert len(runtime.shards[0].replayed) == 4


async def test_what_is_asked_for_and_cannot_be_appended_is_not_replayed(tmp_path):
    disk = FaultyFileSystem()
    async with running(tmp_path, file_system=disk) as broker:
        await create_topic(broker, "c")
        runtime = loaded(broker)
        told = []
        runtime.ask(0, Append("a", told))
        runtime.ask(0, Append("b", told))
        disk.write_error = OSError("no space left")
        with capture_logs():
            runtime.carry_out_asked()
        disk.write_error = None
        assert told == [("a", ErrorCode.NOT_COORDINATOR), ("b", ErrorCode.NOT_COORDINATOR)]
        assert runtime.shards[0].replayed == []


async def test_an_answer_that_fails_sets_its_key_aside_and_others_are_answered(broker):
    runtime = loaded(broker)
    told = []

    def fail(error):
        raise RuntimeError("the client is gone")

    runtime.carry_out(0, CoordinatorResult([CoordinatorRecord(b"k", b"1")], fail, key="a"))
    runtime.ask(0, broken := Append("b", told))
    broken.done = fail
    runtime.ask(0, Append("c", told))
    with capture_logs():
        runtime.carry_out_asked()
    assert told == [("c", ErrorCode.NONE)]
    assert {name for _, name, _ in broker.replicas.set_aside.entries()} == {"a", "b"}


async def test_nothing_is_reported_before_it_is_committed(broker):
    runtime = loaded(broker)
    led = partition(broker, "c")
    replicas, told = SlowReplicas(led), []
    runtime.ask(0, Append("a", told))
    runtime.carry_out_asked()
    runtime.ask(0, Append("b", told, ErrorCode.NONE))  # this may depend on what is not committed yet
    runtime.carry_out_asked()
    assert told == []
    replicas.lose(led, runtime)
    assert sorted(told) == [("a", ErrorCode.NOT_COORDINATOR), ("b", ErrorCode.NOT_COORDINATOR)]


async def test_operations_on_a_shard_that_is_gone_fail(broker):
    runtime = loaded(broker)
    told = []
    runtime.ask(0, Append("a", told))
    runtime.unload()
    runtime.ask(0, Append("b", told))
    runtime.carry_out_asked()
    assert told == [("a", ErrorCode.NOT_COORDINATOR), ("b", ErrorCode.NOT_COORDINATOR)]


async def test_the_epoch_in_which_a_shard_is_coordinated(broker):
    runtime = loaded(broker)
    assert runtime.leader_epoch(0) == 0
    assert runtime.leader_epoch(9) == -1
    assert not runtime.is_settled(9)


# --- loading ---


async def test_a_shard_is_loaded_by_replaying_its_partition(broker):
    first = loaded(broker)
    carry_out(first, (b"k", b"1"), (b"unknown", b"2"))
    carry_out(first, (b"k", b"3"), index=1)
    again = loaded(broker)
    assert [again.shards[index].replayed for index in (0, 1)] == [[b"1"], [b"3"]]
    assert again.shards[0].is_loaded


async def test_while_it_is_loaded_clients_are_told_to_retry(broker):
    carry_out(loaded(broker), (b"k", b"1"))
    worker = HeldWorker()
    runtime = runtime_of(broker, worker)
    assert runtime.shard_of("a") == ErrorCode.NOT_COORDINATOR
    runtime.load()
    runtime.load()  # by another client that asks meanwhile
    assert runtime.is_loading
    assert len(worker.held) == 1
    assert runtime.shard_of("b") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # "b".hashCode() is 98
    assert runtime.shard_of("a")[0] == 1  # the other partition has nothing to load
    worker.finish()
    assert not runtime.is_loading
    index, shard = runtime.shard_of("b")
    assert (index, shard.replayed) == (0, [b"1"])


async def test_what_is_larger_than_a_stretch_is_loaded_too(broker, monkeypatch):
    monkeypatch.setattr("barnabas.broker.coordinator.loading._LOAD_BYTES", 100)
    first = loaded(broker)
    values = [bytes([number]) * 1000 for number in range(20)]
    for value in values:
        carry_out(first, (b"k", value))
    assert loaded(broker).shards[0].replayed == values


def append(broker, *batches):
    for each in batches:
        partition(broker, "c").append_now(memoryview(bytearray(each)), 0)


def set_aside(broker):
    return {(kind, name): reason for kind, name, reason in broker.set_aside.entries()}


async def test_records_that_cannot_be_read_are_skipped_and_logged_once(broker):
    append(broker, batch(b"1", b"2", key=b"broken"), batch(b"3"))
    with capture_logs() as logs:
        runtime = loaded(broker)
    assert runtime.shards[0].replayed == [b"3"]
    assert len(logs) == 1
    assert set_aside(broker) == {
        ("coordinator's records", "c-0"): "2 passed over, the first at offset 0: ProtocolError: broken"
    }


async def test_a_batch_whose_records_do_not_decompress_is_skipped(broker):
    broken = bytearray(batch(b"1", compression=CompressionType.GZIP))
    broken[HEADER_SIZE:] = bytes(len(broken) - HEADER_SIZE)
    seal(memoryview(broken))
    with capture_logs():
        append(broker, broken, batch(b"2"))
        runtime = loaded(broker)
    assert runtime.shards[0].replayed == [b"2"]
    assert set_aside(broker).keys() == {("coordinator's records", "c-0")}


async def test_a_record_that_cannot_be_replayed_is_skipped(broker):
    class Picky(Shard):
        def replay(self, read):
            if read == b"1":
                raise KeyError("1")
            super().replay(read)

    append(broker, batch(b"1", b"2"))
    with capture_logs():
        runtime = loaded(broker, make_shard=Picky)
    assert runtime.shards[0].replayed == [b"2"]
    assert set_aside(broker).keys() == {("coordinator's records", "c-0")}


async def test_transactional_records_are_skipped_where_no_transaction_may_write(broker):
    runtime = loaded(broker)
    carry_out(runtime, (b"k", b"1"))
    runtime.carry_out(0, CoordinatorResult([CoordinatorRecord(b"k", b"2")], producer=ProducerIdAndEpoch(7, 0)))
    await end_transaction(broker, 7, committed=True)
    with capture_logs():
        runtime = loaded(broker, in_transactions=False)
    assert runtime.shards[0].replayed == [b"1"]
    assert runtime.shards[0].is_loaded


@pytest.mark.parametrize("failing", ["barnabas.broker.coordinator.loading.os.pread", "barnabas.storage.log.Log.read"])
async def test_a_partition_that_cannot_be_read_has_no_coordinator_until_it_can(broker, monkeypatch, failing):
    carry_out(loaded(broker), (b"k", b"1"))
    worker = HeldWorker()
    runtime = runtime_of(broker, worker)
    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(failing, lambda *_, **__: 1 // 0)
        runtime.load()
        worker.finish()
    assert [entry["name"] for entry in logs if entry["name"] == "c-0"] == ["c-0"]
    assert ("coordinator", "c-0") in set_aside(broker)
    assert runtime.shard_of("b") == ErrorCode.NOT_COORDINATOR
    assert not runtime.is_loading
    with capture_logs():
        runtime.load()
        worker.finish()
    assert runtime.shard_of("b")[1].replayed == [b"1"]
    assert set_aside(broker) == {}


async def test_a_shard_that_fails_when_it_is_loaded_leaves_the_others_alone(broker):
    class Broken(Shard):
        def loaded(self):
            if self.replayed:
                raise ValueError("broken")

    carry_out(loaded(broker), (b"k", b"1"))
    with capture_logs():
        runtime = loaded(broker, make_shard=Broken)
    assert runtime.shards.keys() == {1}
    assert set_aside(broker) == {("coordinator", "c-0"): "ValueError: broken"}


async def test_an_operation_that_fails_is_set_aside_and_the_others_are_carried_out(broker):
    runtime = loaded(broker)
    told = []
    undecided, untold = Append("a", told), Append("b", told)
    undecided.decide = lambda shard: 1 // 0
    untold.done = lambda error: 1 // 0
    for operation in (undecided, untold, Append("c", told)):
        runtime.ask(0, operation)
    with capture_logs():
        runtime.carry_out_asked()
    assert sorted(told) == [("a", ErrorCode.UNKNOWN_SERVER_ERROR), ("c", ErrorCode.NONE)]
    assert set_aside(broker).keys() == {("key", "a"), ("key", "b")}
    with capture_logs():
        runtime.unload()
    assert set_aside(broker) == {}


async def test_when_the_topic_is_deleted_all_shards_are_gone(broker):
    runtime = loaded(broker)
    shard = runtime.shards[0]
    await delete_topic(broker, "c")
    runtime.unload()
    assert shard.is_unloaded
    assert runtime.shard_of("a") == ErrorCode.NOT_COORDINATOR
    assert carry_out(runtime, (b"k", b"1")) == [ErrorCode.NOT_COORDINATOR]


async def test_a_topic_that_is_deleted_while_it_is_loaded(broker):
    carry_out(loaded(broker), (b"k", b"1"))
    worker = HeldWorker()
    runtime = runtime_of(broker, worker)
    runtime.load()
    await delete_topic(broker, "c")
    runtime.unload()
    await create_topic(broker, "c", partitions=2)
    worker.finish()
    assert 0 not in runtime.shards
    runtime.load()
    worker.finish()
    assert runtime.shards[0].replayed == []


# --- which shard ---


def test_a_group_belongs_to_the_partition_that_javas_hash_code_says():
    # "test-group".hashCode() is 627841412.
    assert partition_of("test-group", 50) == 12
    assert partition_of("", 50) == 0
    # A hash code of -2**31 has no positive counterpart in Java, and counts as 0.
    assert partition_of("polygenelubricants", 50) == 0


def test_characters_beyond_the_first_plane_count_as_javas_two():
    # "😀".hashCode() is 0xD83D * 31 + 0xDE00 = 1772899.
    assert partition_of("\N{GRINNING FACE}", 2**31 - 1) == 1772899
