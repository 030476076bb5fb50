"""Each broker loads the transaction log that the other has written, and goes on with it."""

import shutil

import pytest

from protocol.api import ApiKey
from tests.support import group_requests
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.transaction_requests import LATEST_CLASSIC, NEWEST
from tests.support.transaction_side import ABORT, TransactionSide

pytestmark = pytest.mark.java

SETTINGS = {"node.id": "1", "transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
IDS = ("id-committed", "id-aborted", "id-empty", "id-open")


@pytest.fixture
def both(tmp_path):
    """The two brokers, stopped, with a transaction log each, and what that says."""
    kafka = ApacheKafka(SETTINGS, directory=tmp_path / "kafka")
    kafka.directory.mkdir()
    barnabas = BrokerProcess(tmp_path / "barnabas", settings=SETTINGS)
    states = {}
    for broker, prefix in ((kafka, "kafkas"), (barnabas, "barnabass")):
        broker.start()
        side = TransactionSide(broker.port)
        asked = group_requests.find_coordinator(1, prefix, key_type=1)
        side.until(lambda side=side, asked=asked: side.ask(ApiKey.FIND_COORDINATOR, asked, 1))
        tell(side)
        side.close()
        states[broker] = describe(broker)
        broker.stop()
    return states


def tell(side):
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


def describe(broker):
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
    """Put the one's log in the place of the other's; what goes with it can be made again."""
    (target.parent / ".kafka_cleanshutdown").unlink(missing_ok=True)
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in source.glob("*.log"):
        shutil.copy(path, target)


def test_the_same_transactions_are_there(both):
    kafka, barnabas = both
    log_of = {
        kafka: kafka.data_directory / "__transaction_state-0",
        barnabas: barnabas.data / "__transaction_state-0",
    }
    assert [state for _, _, state, *_ in both[barnabas]] == ["CompleteCommit", "CompleteAbort", "Empty", "Ongoing"]
    copy = shutil.copytree(log_of[kafka], kafka.directory / "copy")
    give(log_of[barnabas], log_of[kafka])
    give(copy, log_of[barnabas])
    for broker, writer in ((kafka, barnabas), (barnabas, kafka)):
        broker.start()
        assert describe(broker) == both[writer]
        side = TransactionSide(broker.port)
        side.age, side.id, side.source = LATEST_CLASSIC, "id-open", "open"
        side.ready()  # which ends what was open
        side.whole(b"b", commit=ABORT)
        side.close()
        broker.stop()
