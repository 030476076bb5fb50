"""Transactions played to Apache Kafka and to Barnabas: the same answers, and the same records in __transaction_state.

Kafka's own tools read them. A story's producers retry while Kafka is busy with the end of the last transaction
(CONCURRENT_TRANSACTIONS), as clients do.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas.client.requests.lookup import TRANSACTION, find_coordinator
from barnabas.client.requests.transactions import add_offsets_to_txn, end_txn, init_producer_id
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from tests.broker.transaction.client import add_request
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.console_consumer import formatted_records
from tests.support.dump_log import dump_log
from tests.support.side_by_side import CLOSED, Side

pytestmark = pytest.mark.java

SETTINGS = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
T0, T1 = ("t", 0), ("t", 1)
COME_AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class Story:
    """What producers ask one broker, and everything that it answers."""

    def __init__(self, port: int) -> None:
        self._side = Side(port)
        self.answers: list[tuple] = []

    def close(self) -> None:
        self._side.close()

    def _ask(self, key, message, version, errors):
        """Ask, and again while the broker is busy; `errors` finds the errors of an answer."""
        while True:
            answer = self._side.ask(key, message, version)
            if answer is CLOSED or not COME_AGAIN.intersection(errors(answer)):
                return answer

    def ready(self) -> None:
        self._side.create_topic("t", 2)
        request = find_coordinator(4, "a", key_type=TRANSACTION)
        self._ask(ApiKey.FIND_COORDINATOR, request, 4, lambda answer: [answer.coordinators[0].error_code])

    def init(self, id, had=(-1, -1), version=5, timeout_ms=60_000):
        request = init_producer_id(id, *had, timeout_ms)
        answer = self._ask(ApiKey.INIT_PRODUCER_ID, request, version, lambda answer: [answer.error_code])
        self._heard("init", id, had, version, answer.error_code, answer.producer_id, answer.producer_epoch)
        return answer.producer_id, answer.producer_epoch

    def add(self, id, producer, *partitions, version=3, verify_only=False):
        request = add_request(version, (id, producer, partitions, verify_only))

        def results(answer):
            topics = answer.results_by_transaction[0].topic_results if version >= 4 else None
            return [
                (topic.name, each.partition_index, ErrorCode(each.partition_error_code).name)
                for topic in (topics if topics is not None else answer.results_by_topic_v3_and_below)
                for each in topic.results_by_partition
            ]

        answer = self._ask(
            ApiKey.ADD_PARTITIONS_TO_TXN, request, version, lambda answer: [ErrorCode[e] for *_, e in results(answer)]
        )
        self._heard("add", id, producer, version, verify_only, *sorted(results(answer)))

    def add_offsets(self, id, producer, version=4):
        request = add_offsets_to_txn(id, *producer, "g")
        answer = self._ask(ApiKey.ADD_OFFSETS_TO_TXN, request, version, lambda answer: [answer.error_code])
        self._heard("offsets", id, producer, version, answer.error_code)

    def end(self, id, producer, commit=True, version=5):
        request = end_txn(id, *producer, commit=commit)
        answer = self._ask(ApiKey.END_TXN, request, version, lambda answer: [answer.error_code])
        self._heard("end", id, producer, commit, version, answer.error_code, answer.producer_id, answer.producer_epoch)
        if not answer.error_code:
            self.until(id, "CompleteCommit", "CompleteAbort")
        return answer.producer_id, answer.producer_epoch

    def until(self, id, *states):
        """Wait until an id is in one of these states: Kafka writes markers after its answer."""
        request = DescribeTransactionsRequest(transactional_ids=[id])
        while True:
            (found,) = self._side.ask(ApiKey.DESCRIBE_TRANSACTIONS, request, 0).transaction_states
            if found.transaction_state in states:
                return

    def describe(self, *ids):
        request = DescribeTransactionsRequest(transactional_ids=list(ids))
        for found in self._side.ask(ApiKey.DESCRIBE_TRANSACTIONS, request, 0).transaction_states:
            topics = sorted((topic.topic, sorted(topic.partitions)) for topic in found.topics)
            self._heard(
                *("describe", found.transactional_id, found.error_code, found.transaction_state, found.producer_id),
                *(found.producer_epoch, found.transaction_timeout_ms, found.transaction_start_time_ms > 0, *topics),
            )

    def list(self, version=2, **filters):
        request = ListTransactionsRequest(**{"state_filters": [], "producer_id_filters": [], **filters})
        answer = self._side.ask(ApiKey.LIST_TRANSACTIONS, request, version)
        found = sorted((each.transactional_id, each.transaction_state) for each in answer.transaction_states)
        self._heard("list", version, filters, answer.error_code, answer.unknown_state_filters, *found)

    def _heard(self, *answer):
        self.answers.append(answer)


def tell(story: Story) -> None:
    _classic(story)
    _with_epochs_of_their_own(story)
    _producers_that_come_and_go_on(story)
    _refused(story)
    _timed_out(story)
    _listed(story)


def _classic(story):
    producer = story.init("classic")
    story.add("classic", producer, T0, T1)
    story.add_offsets("classic", producer)
    story.describe("classic")
    story.end("classic", producer, version=4)
    story.describe("classic")
    story.end("classic", producer, version=4)
    story.end("classic", producer, False, version=4)
    story.add("classic", producer, T0, version=0)
    story.end("classic", producer, False, version=0)
    story.end("classic", producer, False, version=4)
    story.end("classic", producer, True, version=4)


def _with_epochs_of_their_own(story):
    first = story.init("own")
    story.end("own", first)
    story.add("own", first, T0, version=5)
    second = story.end("own", first)
    story.end("own", first)
    story.end("own", first, False)
    story.end("own", second)
    third = story.end("own", second, False)
    story.end("own", second, False)
    story.add("own", third, T0, version=4)
    story.end("own", second, False)
    story.add("own", third, T1, version=3)
    story.end("own", third, False)
    story.describe("own")
    # A client may change its protocol.
    producer = story.init("both")
    story.add("both", producer, T0, version=3)
    producer = story.end("both", producer)
    story.add("both", producer, T0, version=3)
    story.end("both", producer, version=4)
    story.end("both", producer, version=5)


def _producers_that_come_and_go_on(story):
    for id, version in (("fenced", 3), ("fenced too", 5)):
        zombie = story.init(id)
        story.add(id, zombie, T0, version=version)
        story.init(id)
        story.describe(id)
        story.add(id, zombie, T0, version=version)
        story.end(id, zombie, version=version)
    first = story.init("goes on")
    second = story.init("goes on", first)
    story.init("goes on", first)
    story.init("goes on", second)
    story.init("goes on", first)
    story.init("goes on", first, version=3)
    story.init("goes on", (12345, 0))
    story.add("goes on", (first[0], 2), T0)
    story.init("goes on", (first[0], 2))
    story.init("forgotten", (12345, 3))
    story.init("forgotten", (12345, -1))


def _refused(story):
    story.init("")
    for timeout_ms in (0, -1, 900_001):
        story.init("timeout", timeout_ms=timeout_ms)
    producer = story.init("refused")
    producer_id, epoch = producer
    for version in range(6):
        story.add("refused", producer, T0, ("nowhere", 0), version=version)
        story.add("refused", producer, T0, ("t", 7), version=version)
        story.add("refused", (producer_id, epoch + 1), T0, version=version)
        story.add("refused", (producer_id + 99, epoch), T0, version=version)
        story.add("unknown", producer, T0, version=version)
        story.add("", producer, T0, version=version)
        story.end("refused", (producer_id, epoch + 1), version=version)
        story.end("refused", (producer_id + 99, epoch), version=version)
        story.end("unknown", producer, version=version)
        story.end("", producer, version=version)
    for version in range(5):
        story.add_offsets("refused", (producer_id, epoch + 1), version=version)
        story.add_offsets("unknown", producer, version=version)
        story.add_offsets("", producer, version=version)
    story.add("refused", producer, ("__transaction_state", 0), version=3)
    story.describe("refused", "unknown", "")
    story.add("refused", producer, T0)
    for version in (4, 5):
        story.add("refused", producer, T0, T1, version=version, verify_only=True)
        story.add("refused", (producer_id, epoch + 1), T0, version=version, verify_only=True)
        story.add("unknown", producer, T0, version=version, verify_only=True)
        story.add("refused", producer, T0, ("nowhere", 0), version=version, verify_only=True)
    story.end("refused", producer, False, version=4)


def _timed_out(story):
    for id, version in (("late", 3), ("late too", 5)):
        producer = story.init(id, timeout_ms=500)
        story.add(id, producer, T0, version=version)
        story.until(id, "CompleteAbort")
        story.describe(id)
        story.add(id, producer, T0, version=version)
        story.end(id, producer, version=version)
        story.init(id, producer)
        story.init(id)


def _listed(story):
    for version in (0, 1, 2):
        story.list(version)
        story.list(version, state_filters=["Empty", "unknown"])
        story.list(version, state_filters=["unknown"])
        story.list(version, producer_id_filters=[0, 1])
    story.list(duration_filter=3_600_000)
    for pattern in ("late.*", "late", "classic|own", "", "(", "(?=a)", "[a-"):
        story.list(transactional_id_pattern=pattern)


@dataclass(frozen=True)
class Told:
    """Where each broker wrote, what each answered, and what the console consumer read from Barnabas."""

    kafka: Path
    barnabas: Path
    from_kafka: list[tuple]
    from_barnabas: list[tuple]
    printed: list[dict]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    with BrokerProcess(data, settings=SETTINGS) as barnabas:
        from_barnabas = story_of(barnabas.port)
        printed = formatted_records(barnabas.bootstrap, "__transaction_state", "TransactionLogMessageFormatter", 5)
    with ApacheKafka(SETTINGS, directory=tmp_path_factory.mktemp("apache-kafka")) as kafka:
        from_kafka = story_of(kafka.port)
    return Told(kafka.data_directory, data, from_kafka, from_barnabas, printed)


def story_of(port: int) -> list[tuple]:
    story = Story(port)
    story.ready()
    tell(story)
    story.close()
    return story.answers


def test_both_give_the_same_answers(told):
    assert len(told.from_barnabas) > 150
    for ours, kafkas in zip(told.from_barnabas, told.from_kafka, strict=True):
        assert ours == kafkas


PAYLOAD = re.compile(r"\| offset: (\d+) .* key: (.*) payload: (.*)")
TIME = re.compile(r'"transaction(LastUpdate|Start)TimestampMs":\d+')


def records(folder: Path) -> list[tuple[int, str, dict]]:
    """Offset, key and value of every record, without the times, partitions in their order."""
    segment = folder / "__transaction_state-0" / "00000000000000000000.log"
    found = []
    for offset, key, value in PAYLOAD.findall(dump_log([segment], "--transaction-log-decoder")):
        payload = json.loads(TIME.sub(r'"\1":"a time"', value))
        for topic in payload["data"].get("transactionPartitions") or []:
            topic["partitionIds"].sort()
        (payload["data"].get("transactionPartitions") or []).sort(key=lambda topic: topic["topic"])
        found.append((int(offset), key, payload))
    return found


def test_both_leave_the_same_records(told):
    ours, kafkas = records(told.barnabas), records(told.kafka)
    assert len(ours) > 50
    for one, other in zip(ours, kafkas, strict=True):
        assert one == other


def test_the_console_consumer_prints_what_was_decided(told):
    empty, _, offsets, prepared, complete = told.printed
    assert {record["key"]["data"]["transactionalId"] for record in told.printed} == {"classic"}
    assert [record["value"]["data"]["transactionStatus"] for record in told.printed] == [0, 1, 1, 2, 4]
    assert empty["value"]["data"]["transactionPartitions"] is None
    assert [topic["topic"] for topic in prepared["value"]["data"]["transactionPartitions"]] == [
        "__consumer_offsets",
        "t",
    ]
    assert offsets["value"]["version"] == 1
    assert complete["value"]["data"]["transactionPartitions"] == []
