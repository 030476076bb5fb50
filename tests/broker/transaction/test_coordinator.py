"""The transaction coordinator in a real broker: what it writes, what a restart finds, what goes wrong, and time."""

import asyncio

import pytest
from structlog.testing import capture_logs

from barnabas.broker.coordinator.loading import whole_batches
from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.replica.replicas import Replicas
from barnabas.broker.testing.settling import settle
from barnabas.broker.transaction import decisions
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.broker.transaction.records import read_record, transaction_record
from barnabas.broker.transaction.states import TransactionState as State
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker, read_end_transaction_marker
from tests.broker.transaction.client import ID, coordinating, end_request, transaction_client
from tests.broker.transaction.cluster import LOST, Cluster, Peers
from tests.storage.support import FaultyFileSystem, bytes_of
from tests.storage.support import batch as batch_of
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import cluster_of, delete_topic, partition, running

STATE = "__transaction_state"


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def client(tmp_path, clock):
    async with coordinating(tmp_path, clock=clock) as client:
        yield client


def batches(broker, topic, index=0):
    log = partition(broker, topic, index).log
    stretch = log.read(0, 10_000_000, upper_bound=log.end_offset)
    return [] if stretch is None else list(whole_batches(memoryview(bytes_of(stretch))))


def written(broker):
    """What __transaction_state says, record by record: the id and its state."""
    from barnabas.protocol.records.record import read_records

    found = []
    for batch, header in batches(broker, STATE):
        for record in read_records(batch, header):
            transactional_id, metadata = read_record(CoordinatorRecord(record.key, record.value))
            found.append((transactional_id, metadata.state.label if metadata else None))
    return found


def markers(broker, index=0):
    """(commit, producer id, epoch, coordinator's epoch) of the markers in a partition of t."""
    return [
        (
            read_end_transaction_marker(batch, header).control_type == ControlType.COMMIT,
            header.producer_id,
            header.producer_epoch,
            read_end_transaction_marker(batch, header).coordinator_epoch,
        )
        for batch, header in batches(broker, "t", index)
        if header.is_control
    ]


# --- the course of a transaction ---


async def test_a_transaction_is_ended_in_three_steps(client):
    producer_id, epoch = await client.begin_transaction(("t", 0), ("t", 2))
    assert await client.end((producer_id, epoch)) == (ErrorCode.NONE, producer_id, epoch + 1)
    assert written(client.broker) == [(ID, state) for state in ("Empty", "Ongoing", "PrepareCommit", "CompleteCommit")]
    assert markers(client.broker, 0) == markers(client.broker, 2) == [(True, producer_id, epoch + 1, 0)]
    assert markers(client.broker, 1) == []


async def test_when_it_is_answered_the_next_one_may_start_at_once(client):
    producer = await client.begin_transaction(version=3)
    for commit in (True, False) * 5:
        assert (await client.end(producer, commit, version=4))[0] == ErrorCode.NONE
        assert await client.add(producer, ("t", 0)) == {("t", 0): ErrorCode.NONE}
    assert [commit for commit, *_ in markers(client.broker)] == [True, False] * 5


async def test_what_many_decide_in_one_turn_is_one_append(client):
    producers = {f"p{n}": await client.begin_transaction(transactional_id=f"p{n}") for n in range(10)}
    before = len(batches(client.broker, STATE))
    for transactional_id, producer in producers.items():
        client.send(ApiKey.END_TXN, end_request(producer, transactional_id=transactional_id), 5)
    for _ in producers:
        _, answer = await client.client.answer(ApiKey.END_TXN, 5)
        assert answer.error_code == ErrorCode.NONE
    # One connection has one request under way at a time; ten of ten connections meet in a turn.
    assert len(batches(client.broker, STATE)) - before == 20
    async with asyncio.TaskGroup() as group:
        for transactional_id in producers:
            group.create_task(abort_on_a_connection_of_its_own(client.broker, transactional_id))
    assert {dict(written(client.broker))[each] for each in producers} == {"CompleteAbort"}


async def abort_on_a_connection_of_its_own(broker, transactional_id):
    async with transaction_client(broker) as client:
        error, *producer = await client.init(transactional_id)
        assert error == ErrorCode.NONE
        assert (await client.end(producer, False, transactional_id=transactional_id))[0] == ErrorCode.NONE


async def test_operations_on_one_id_in_one_turn_are_decided_in_order(client):
    """Two ends of one transaction meet in a turn: the second is the repetition of the first."""
    producer = await client.begin_transaction(version=3)
    transactions = client.broker.transactions
    answers = []
    for _ in range(2):
        transactions.end_transaction(ID, *producer, True, 0, lambda *answer: answers.append(answer))
    transactions.carry_out()
    assert answers == [(ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)]  # its markers are not written yet
    assert await client.state() == "CompleteCommit"
    assert answers[1:] == [(ErrorCode.NONE, *producer)]


async def test_partitions_that_were_already_added_need_no_turn(client):
    producer = await client.begin_transaction()
    done = []
    client.broker.transactions.add_partitions(ID, *producer, [("t", 0)], done.append)
    assert done == [ErrorCode.NONE]
    client.broker.transactions.add_partitions(ID, *producer, [("t", 1)], done.append)
    client.broker.transactions.add_partitions(ID, *producer, [("t", 0)], done.append)  # in order
    assert done == [ErrorCode.NONE]
    client.broker.transactions.carry_out()
    assert done == [ErrorCode.NONE] * 3


async def test_which_partitions_are_part_of_a_transaction(client):
    producer_id, epoch = producer = await client.begin_transaction(("t", 0))

    def verify(*question):
        told = []
        client.broker.transactions.verify(*question, told.append)
        return told[0]

    assert verify(ID, *producer, [("t", 0), ("t", 1)]) == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.TRANSACTION_ABORTABLE,
    }
    assert verify(ID, producer_id, epoch + 1, [("t", 0)]) == {("t", 0): ErrorCode.PRODUCER_FENCED}
    assert verify("unknown", *producer, [("t", 0)]) == {("t", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert verify("", *producer, [("t", 0)]) == {("t", 0): ErrorCode.INVALID_REQUEST}


async def test_an_end_waits_for_the_disk_if_everything_does(tmp_path):
    """Each step is on disk before the next; a client still need not retry."""
    async with coordinating(tmp_path, log_flush_interval_messages=1) as client:
        producer = await client.begin_transaction(("t", 0), ("t", 1))
        for _ in range(3):
            error, *producer = await client.end(producer)
            assert error == ErrorCode.NONE
            assert set((await client.add(producer, ("t", 0), ("t", 1), version=5)).values()) == {ErrorCode.NONE}
        assert await client.init() == (ErrorCode.NONE, producer[0], producer[1] + 2)
        log = partition(client.broker, STATE).log
        assert log.recovery_point == log.high_watermark == log.end_offset
        assert [commit for commit, *_ in markers(client.broker, 1)] == [True, True, True, False]


# --- restarts ---


async def test_after_a_restart_a_transaction_continues(tmp_path):
    async with coordinating(tmp_path) as client:
        producer = await client.begin_transaction(("t", 0))
    async with running(tmp_path) as broker, transaction_client(broker) as client:
        assert await client.add(producer, ("t", 1)) == {("t", 1): ErrorCode.NONE}
        assert (await client.end(producer))[0] == ErrorCode.NONE
        assert len(markers(broker, 0)) == len(markers(broker, 1)) == 1


@pytest.mark.parametrize(("state", "commit"), [(State.PREPARE_COMMIT, True), (State.PREPARE_ABORT, False)])
async def test_after_a_restart_what_was_decided_is_finished(tmp_path, state, commit):
    async with coordinating(tmp_path) as client:
        producer = await client.begin_transaction(("t", 0), ("t", 1))
        known = client.broker.transactions.describe(ID)
        assert isinstance(known, TransactionMetadata)
        append(client.broker, known._replace(state=state, client_version=0))
    async with running(tmp_path) as broker, transaction_client(broker) as client:
        while await client.state() != state.label.replace("Prepare", "Complete"):
            pass  # each of these requests is a turn of the loop
        for index in (0, 1):
            ((committed, producer_id, epoch, _),) = markers(broker, index)
            assert (committed, producer_id, epoch) == (commit, *producer)
        assert (await client.init())[0] == ErrorCode.NONE


async def test_what_was_decided_is_finished_by_a_broker_that_does_not_know_the_topic_yet(tmp_path, monkeypatch):
    """It is told to lead before it is told about the cluster."""
    async with coordinating(tmp_path) as client:
        await client.begin_transaction(("t", 0))
        known = client.broker.transactions.describe(ID)
        append(client.broker, known._replace(state=State.PREPARE_COMMIT, client_version=0))
    with monkeypatch.context() as patch:
        patch.setattr(Replicas, "partition_count", lambda self, topic: 0)
        async with running(tmp_path) as broker, asyncio.timeout(60):
            while not markers(broker):  # noqa: ASYNC110, the partition may not be led when the coordinator looks first
                await asyncio.sleep(0.01)


def append(broker, metadata):
    """What a broker has decided when it crashes before it does anything about it."""
    from barnabas.broker.transaction.records import transaction_record
    from barnabas.protocol.records.builder import NewRecord, build_batch

    record = transaction_record(metadata)
    batch = build_batch([NewRecord(broker.clock.now_ms(), record.key, record.value)])
    partition(broker, STATE).append_now(memoryview(batch), broker.clock.now_ms())


async def test_the_coordinators_epoch_goes_up_with_a_restart_after_a_crash(tmp_path):
    async with coordinating(tmp_path) as client:
        producer = await client.begin_transaction(version=3)
        await client.end(producer, version=4)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    async with running(tmp_path) as broker, transaction_client(broker) as client:
        await client.add(producer, ("t", 0))
        await client.end(producer, version=4)
        assert [coordinator_epoch for *_, coordinator_epoch in markers(broker)] == [0, 1]


async def test_without_its_topic_there_is_no_coordinator(tmp_path):
    async with running(tmp_path) as broker:
        transactions = broker.transactions
        assert transactions.describe(ID) == ErrorCode.NOT_COORDINATOR
        told = []
        transactions.verify(ID, 1, 0, [("t", 0)], told.append)
        assert told.pop() == {("t", 0): ErrorCode.NOT_COORDINATOR}
        transactions.add_partitions(ID, 1, 0, [("t", 0)], told.append)
        transactions.end_transaction(ID, 1, 0, True, 2, lambda *answer: told.append(answer))
        await transactions.init_producer_id(ID, 60_000, -1, -1, lambda *answer: told.append(answer))
        gone = (ErrorCode.NOT_COORDINATOR, -1, -1)
        assert told == [ErrorCode.NOT_COORDINATOR, gone, gone]


async def test_when_its_topic_is_deleted_everything_is_forgotten(client):
    producer = await client.begin_transaction()
    told = []
    client.broker.transactions.add_partitions(ID, *producer, [("t", 1)], told.append)
    await delete_topic(client.broker, STATE)
    assert told[0] in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)
    assert (await client.end(producer))[0] == ErrorCode.NOT_COORDINATOR
    assert await client.find_coordinator() == ErrorCode.NONE
    assert (await client.end(producer))[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING


# --- other brokers ---


@pytest.fixture
def peers(client, monkeypatch):
    """Broker 2, which leads t-1."""
    peers = Peers(2)
    sender = client.broker.transactions._markers
    me = client.broker.config.node_id
    monkeypatch.setattr(sender, "_peers", peers)
    monkeypatch.setattr(sender, "_cluster", Cluster(t=[me, 2, me]))
    sender._cluster.lead(__transaction_state=[me])
    return peers


def taken(producer_id, *indexes):
    partitions = [WritableTxnMarkerPartitionResult(partition_index=index) for index in indexes]
    topics = [WritableTxnMarkerTopicResult(name="t", partitions=partitions)]
    return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=producer_id, topics=topics)])


async def test_where_others_write_markers_the_end_is_answered_when_it_is_decided(client, peers):
    producer = await client.begin_transaction(("t", 0), ("t", 1))
    error, *producer = await client.end(producer)
    assert error == ErrorCode.NONE
    assert await client.state() == "PrepareCommit"
    assert len(markers(client.broker, 0)) == 1
    assert set((await client.add(producer, ("t", 0), version=5)).values()) == {ErrorCode.CONCURRENT_TRANSACTIONS}
    asked = await peers.answer(2, taken(producer[0], 1))
    assert [each.coordinator_epoch for each in asked.message.markers] == [0]
    assert await client.state() == "CompleteCommit"
    assert set((await client.add(producer, ("t", 0), version=5)).values()) == {ErrorCode.NONE}


async def test_a_coordinator_that_is_deposed_leaves_the_rest_to_the_next(client, peers, clock):
    producer = await client.begin_transaction(("t", 0), ("t", 1))
    await client.end(producer)
    state, transactions = partition(client.broker, STATE), client.broker.transactions
    state.follow(9, 1)
    transactions.on_not_leader(state)
    await peers.answer(2, LOST)
    clock.advance(10)
    assert await peers.is_idle(2)
    assert (await client.end(producer))[0] == ErrorCode.NOT_COORDINATOR
    state.lead(2)
    transactions.on_leader(state)  # it is the next one itself
    await settle(cluster_of(client.broker))
    asked = await peers.answer(2, taken(producer[0], 1))
    assert [each.coordinator_epoch for each in asked.message.markers] == [2]
    assert await client.state() == "CompleteCommit"
    assert [epoch for *_, epoch in markers(client.broker, 0)] == [0, 2]


# --- what goes wrong ---


async def test_what_cannot_be_written_changes_nothing(tmp_path):
    disk = FaultyFileSystem()
    async with coordinating(tmp_path, file_system=disk) as client:
        producer = await client.begin_transaction(("t", 0))
        before = client.broker.transactions.describe(ID)
        disk.write_error = OSError("no space left")
        with capture_logs():
            assert await client.add(producer, ("t", 1)) == {("t", 1): ErrorCode.NOT_COORDINATOR}
            assert (await client.end(producer))[0] == ErrorCode.NOT_COORDINATOR
            assert (await client.init())[0] == ErrorCode.NOT_COORDINATOR
            assert (await client.init("another"))[0] == ErrorCode.NOT_COORDINATOR
        disk.write_error = None
        assert client.broker.transactions.describe(ID) == before
        assert (await client.describe("another"))[0].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert (await client.end(producer))[0] == ErrorCode.NONE


async def test_a_marker_that_cannot_be_written_is_written_later(tmp_path, clock, monkeypatch):
    async with coordinating(tmp_path, clock=clock) as client:
        producer = await client.begin_transaction(("t", 0), ("t", 1))
        markers_of = client.broker.transaction_markers
        write = markers_of.write
        failing = {("t", 1): ErrorCode.KAFKA_STORAGE_ERROR, ("t", 0): ErrorCode.NONE}
        with monkeypatch.context() as patch, capture_logs() as logs:
            patch.setattr(markers_of, "write", lambda marker, done: done(failing))
            error, *_ = await client.end(producer)  # it is decided, and that is what the answer says
        assert error == ErrorCode.NONE
        assert [entry["partitions"] for entry in logs] == [[("t", 1)]]
        assert await client.state() == "PrepareCommit"
        assert (await client.init())[0] == ErrorCode.CONCURRENT_TRANSACTIONS
        tried = []
        monkeypatch.setattr(markers_of, "write", lambda marker, done: tried.append(marker) or write(marker, done))
        clock.advance(1)
        assert await client.state() == "CompleteCommit"
        assert [marker.partitions for marker in tried] == [(("t", 1),)]


async def test_a_producer_does_not_wait_for_an_abort_that_is_held_up(tmp_path, clock, monkeypatch):
    async with coordinating(tmp_path, clock=clock) as client:
        await client.begin_transaction()
        failing = {("t", 0): ErrorCode.KAFKA_STORAGE_ERROR}
        with monkeypatch.context() as patch, capture_logs():
            patch.setattr(client.broker.transaction_markers, "write", lambda marker, done: done(failing))
            assert (await client.init())[0] == ErrorCode.CONCURRENT_TRANSACTIONS
        clock.advance(1)
        assert (await client.init())[0] == ErrorCode.NONE


async def test_a_partition_that_has_moved_on_needs_no_marker(client, monkeypatch):
    producer = await client.begin_transaction(("t", 0), ("t", 1))
    moved_on = {("t", 0): ErrorCode.INVALID_PRODUCER_EPOCH, ("t", 1): ErrorCode.TRANSACTION_COORDINATOR_FENCED}
    monkeypatch.setattr(client.broker.transaction_markers, "write", lambda marker, done: done(moved_on))
    assert (await client.end(producer))[0] == ErrorCode.NONE
    assert await client.state() == "CompleteCommit"


async def test_a_completion_that_cannot_be_written_is_written_later(tmp_path, clock):
    disk = FaultyFileSystem()
    async with coordinating(tmp_path, clock=clock, file_system=disk) as client:
        producer = await client.begin_transaction(("t", 0))
        transactions = client.broker.transactions
        answers = []
        transactions.end_transaction(ID, *producer, True, 2, lambda *answer: answers.append(answer))
        transactions.carry_out()  # it is decided
        client.broker.replicas.append_due()  # its marker is written
        disk.write_error = OSError("no space left")
        with capture_logs():
            transactions.carry_out()
        disk.write_error = None
        assert answers == [(ErrorCode.NONE, producer[0], producer[1] + 1)]
        assert await client.state() == "PrepareCommit"
        clock.advance(1)
        assert await client.state() == "CompleteCommit"
        assert len(markers(client.broker)) == 1


async def test_a_topic_that_is_deleted_does_not_hold_up_its_transactions(client):
    producer = await client.begin_transaction(("t", 0))
    await delete_topic(client.broker, "t")
    assert (await client.end(producer))[0] == ErrorCode.NONE
    assert await client.state() == "CompleteCommit"


async def test_an_id_with_more_partitions_than_a_record_may_hold(tmp_path):
    async with coordinating(tmp_path, message_max_bytes=200) as client:
        producer = await client.begin_transaction(("t", 0))
        many = [(f"a-topic-with-a-long-name-{n}", 0) for n in range(20)]
        told = []
        client.broker.transactions.add_partitions(ID, *producer, many, told.append)
        client.broker.transactions.carry_out()
        assert told == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert (await client.end(producer))[0] == ErrorCode.NONE


# --- time ---


async def test_a_transaction_whose_time_is_over_is_aborted(client, clock):
    _, *producer = await client.init(timeout_ms=15_000)
    await client.add(producer, ("t", 0), version=5)
    clock.advance(10)
    assert await client.state() == "Ongoing"
    clock.advance(10)  # it is looked for every ten seconds
    assert await client.state() == "CompleteAbort"
    assert markers(client.broker) == [(False, producer[0], producer[1] + 1, 0)]
    assert (await client.add(producer, ("t", 0)))["t", 0] == ErrorCode.PRODUCER_FENCED


async def test_after_the_abort_of_its_last_epoch_a_producer_continues_with_another_id(client, clock):
    producer_id, _ = await client.begin_transaction()
    transactions = client.broker.transactions
    _, shard = transactions._runtime.shard_of(ID)
    shard.replay(transaction_record(transactions.describe(ID)._replace(producer_epoch=32766)).read)
    clock.advance(70)
    await settle(cluster_of(client.broker))
    assert markers(client.broker) == [(False, producer_id, 32767, 0)]
    error, new_id, epoch = await client.end((producer_id, 32766), False)
    assert (error, epoch) == (ErrorCode.NONE, 0)
    assert new_id > producer_id
    assert await client.add((new_id, 0), ("t", 0), version=5) == {("t", 0): ErrorCode.NONE}


async def test_one_that_was_ended_in_time_is_left_alone(client, clock):
    _, *producer = await client.init(timeout_ms=15_000)
    await client.add(producer, ("t", 0), version=5)
    await client.end(producer)
    clock.advance(100)
    assert await client.state() == "CompleteCommit"
    assert len(markers(client.broker)) == 1


async def test_an_idle_id_is_forgotten(tmp_path, clock):
    settings = {"transactional_id_expiration_ms": 10_000_000, "connections_max_idle_ms": 100_000_000, "clock": clock}
    async with coordinating(tmp_path, **settings) as client:
        await client.init("idle")
        await client.begin_transaction(transactional_id="busy")
        clock.advance(3600)
        assert await client.state("idle") == "Empty"
        clock.advance(2 * 3600)
        assert [found.error_code for found in await client.describe("idle", "busy")] == [
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            ErrorCode.NONE,  # its transaction timed out meanwhile
        ]
        assert ("idle", None) in written(client.broker)


async def test_many_idle_ids_are_forgotten_turn_by_turn(tmp_path, clock, monkeypatch):
    monkeypatch.setattr("barnabas.broker.transaction.coordinator._EXPIRED_PER_TURN", 2)
    async with coordinating(tmp_path, clock=clock, transactional_id_expiration_ms=1000) as client:
        for number in range(5):
            await client.init(f"p{number}")
        clock.advance(2)
        client.broker.transactions.expire()
        client.broker.transactions.carry_out()
        assert len((await client.list()).transaction_states) == 3
        for _ in range(2):
            clock.advance(0.001)
            client.broker.transactions.carry_out()
        assert (await client.list()).transaction_states == []


async def test_an_id_that_fails_is_set_aside_and_the_others_time_out(client, clock, monkeypatch):
    await client.begin_transaction(transactional_id="broken")
    await client.begin_transaction(transactional_id="late")

    def picky(metadata, *_):
        if metadata.transactional_id == "broken":
            raise ValueError("what is this?")
        return is_timed_out(metadata, *_)

    is_timed_out = decisions.is_timed_out
    monkeypatch.setattr(decisions, "is_timed_out", picky)
    with capture_logs() as logs:
        clock.advance(100)
        await settle(cluster_of(client.broker))
    assert await client.state("late") == "CompleteAbort"
    assert [entry["name"] for entry in logs if entry["event"] == "set aside"] == ["broken"]
    assert ("transactional id", "broken") in client.broker.set_aside


async def test_foreign_records_in_the_transaction_log_do_no_harm(tmp_path):
    """For example a marker, or records from a client that calls itself __admin_client."""
    marker = build_end_transaction_marker(
        ControlType.COMMIT, timestamp=0, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )
    no_value, no_id = batch_of(b"no value", key=b"\0\0\0\1a"), batch_of(b"x", key=b"\0\0")
    async with coordinating(tmp_path) as client:
        await client.init("known")
        for data in (marker, no_value, no_id, batch_of(b"other", key=b"\0\7")):
            partition(client.broker, STATE).append_now(memoryview(bytearray(data)), 0)
    async with running(tmp_path) as broker, transaction_client(broker) as client:
        assert [each.transactional_id for each in (await client.list()).transaction_states] == ["known"]
        assert ("coordinator's records", f"{STATE}-0") in broker.set_aside
