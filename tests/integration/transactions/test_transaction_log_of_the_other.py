"""Each broker loads the transaction log that the other has written, and continues with it.

To both logs producers are added that have nearly used up their epochs; it would take 32,766 transactions to get there.
"""

import shutil
import time

import pytest

from barnabas.broker.transaction.metadata import LAST_EPOCH, TransactionMetadata
from barnabas.broker.transaction.records import transaction_record
from barnabas.broker.transaction.states import TransactionState
from barnabas.client.requests import lookup
from barnabas.protocol.api import ApiKey
from barnabas.protocol.records.batch import assign_position, read_header
from barnabas.protocol.records.builder import NewRecord, build_batch
from tests.integration.transactions.stories import Stories, tell
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.polling import pause
from tests.support.side_by_side import SideBySide
from tests.support.transaction_side import ABORT, COMMIT, TransactionSide
from tests.support.transaction_versions import LATEST_CLASSIC, NEWEST

pytestmark = pytest.mark.java

SETTINGS = {
    "node.id": "1",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
IDS = ("id-committed", "id-aborted", "id-empty", "id-open")
AGES = (LATEST_CLASSIC, NEWEST)
FIRST_PRODUCER_ID = 500  # of those that are added; the brokers have not got there
TIMEOUT_MS = 300


# --- the logs ---


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory):
    """The two brokers, each started with the other's transaction log, and what they said about their own."""
    folder = tmp_path_factory.mktemp("exchanged")
    kafka = ApacheKafka(SETTINGS, directory=folder / "kafka")
    kafka.directory.mkdir()
    barnabas = BrokerProcess(folder / "barnabas", settings=SETTINGS)
    states = []
    for broker in (kafka, barnabas):
        with broker:
            side = TransactionSide(broker.port)
            asked = lookup.find_coordinator(1, "id", key_type=1)
            side.until(lambda side=side, asked=asked: side.ask(ApiKey.FIND_COORDINATOR, asked, 1))
            leave_some_in_every_state(side)
            side.close()
            states.append(described(broker))
    kafkas, barnabass = (folder / "__transaction_state-0" for folder in (kafka.data_directory, barnabas.data))
    copy = shutil.copytree(kafkas, kafka.directory / "copy")
    give(barnabass, kafkas)
    give(copy, barnabass)
    with kafka, barnabas:
        yield kafka, barnabas, states


def leave_some_in_every_state(side):
    """Transactions in every state that lasts."""
    for name, age in (("committed", LATEST_CLASSIC), ("aborted", NEWEST)):
        side.begin(name, age)
        side.ready()
        side.whole(b"a", commit=name == "committed")
    side.begin("empty", NEWEST)
    side.ready()
    side.begin("open", LATEST_CLASSIC)
    side.ready()
    side.add(0)
    side.produce(b"a")


def described(broker):
    side = TransactionSide(broker.port)
    side.age = NEWEST
    side.until(lambda: side.describe_transactions(IDS[0]).transaction_states[0])
    states = side.describe_transactions(*IDS).transaction_states
    side.close()
    return [
        (
            s.transactional_id,
            s.error_code,
            s.transaction_state,
            s.producer_id,
            s.producer_epoch,
            s.transaction_timeout_ms,
        )
        for s in states
    ]


def give(source, target):
    """Replace one broker's log with the other's; the files beside it can be rebuilt."""
    (target.parent / ".kafka_cleanshutdown").unlink(missing_ok=True)
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    (log,) = source.glob("*.log")
    data = log.read_bytes()
    (target / log.name).write_bytes(data + producers_with_few_epochs_left(data))


def producers_with_few_epochs_left(log):
    """A batch behind all others: the ids of the stories below, each with three epochs left."""
    position = 0
    while position < len(log):
        last = read_header(memoryview(log), position)
        position += last.size
    now_ms = int(time.time() * 1000)
    records = [
        transaction_record(
            TransactionMetadata(
                f"id-{told.__name__}-{age}",
                FIRST_PRODUCER_ID + number,
                LAST_EPOCH - 2,
                TIMEOUT_MS if told is too_late else 60_000,
                TransactionState.EMPTY,
                last_update_ms=now_ms,
                client_version=2 if age == NEWEST else 0,
                previous_producer_id=FIRST_PRODUCER_ID + number,
            )
        )
        for number, (told, age) in enumerate(story.all)
    ]
    batch = build_batch([NewRecord(now_ms, record.key, record.value) for record in records])
    header = read_header(memoryview(batch), 0)
    assign_position(memoryview(batch), last.next_offset, header.batch_length, last.partition_leader_epoch)
    return bytes(batch)


def test_the_same_transactions_are_there(exchanged):
    *brokers, (kafkas, barnabass) = exchanged
    assert [state for _, _, state, *_ in barnabass] == ["CompleteCommit", "CompleteAbort", "Empty", "Ongoing"]
    for broker, states in zip(brokers, (barnabass, kafkas), strict=True):
        assert described(broker) == states
        side = TransactionSide(broker.port)
        side.age, side.id, side.source = LATEST_CLASSIC, "id-open", "open"
        side.ready()  # which ends what was open
        side.whole(b"b", commit=ABORT)
        side.close()


# --- the last epochs of a producer ---

story = Stories()
EPOCHS_AND_ONE_MORE = range(4)


def take_over(side):
    """Become the producer that is in the log."""
    found = side.describe_transactions().transaction_states[0]
    side.producer_id, side.epoch = found.producer_id, found.producer_epoch
    return found


@story(AGES)
def producers_that_come(side):
    yield take_over(side)
    for _ in EPOCHS_AND_ONE_MORE:
        yield side.init()


@story(AGES)
def transactions(side):
    """The newest client gets a new epoch with each, and a new id after the last."""
    yield take_over(side)
    for number in EPOCHS_AND_ONE_MORE:
        commit = number % 2 == 0
        side.prepare(0)
        yield side.produce(b"a")
        before = side.who()
        yield side.end(commit)
        side.settled()
        for again in (commit, not commit):
            yield side.end(again, **before)
            side.settled()
        yield side.describe_transactions()
    yield from side.both()


@story(AGES)
def transactions_that_another_producer_ends(side):
    yield take_over(side)
    for _ in EPOCHS_AND_ONE_MORE:
        side.prepare(0)
        yield side.produce(b"a")
        before = side.who()
        yield side.ready()
        side.settled()
        yield side.describe_transactions()
        yield side.end(COMMIT, **before)
        yield side.produce(b"b", **before)
    yield from side.both()


@story(AGES)
def too_late(side):
    """They time out. The newest client is told how to continue when it aborts what is already aborted."""
    yield take_over(side)
    for _ in EPOCHS_AND_ONE_MORE:
        side.prepare(0)
        yield side.produce(b"a")
        before = side.who()
        while side.describe_transactions().transaction_states[0].transaction_state != "CompleteAbort":
            pause()
        yield side.describe_transactions()
        yield side.produce(b"b", sequence=1, **before)
        yield side.end(COMMIT, **before)
        yield side.end(ABORT, **before)
        if not side.is_newest:
            yield side.init(timeout_ms=TIMEOUT_MS)
    yield from side.both()


@pytest.fixture(scope="module")
def sides(exchanged):
    kafka, barnabas, _ = exchanged
    sides = SideBySide(TransactionSide(kafka.port), TransactionSide(barnabas.port))
    for side in (sides.kafka, sides.barnabas):
        side.until(side.init_idempotent)  # Apache Kafka asks its controller for producer ids when the first is wanted
    yield sides
    sides.kafka.close()
    sides.barnabas.close()


@story.told
def test_same_answers_when_epochs_are_used_up(sides, story, age):
    tell(sides, story, age)
