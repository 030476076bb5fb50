"""Transactions with each client library, and what consumers of each library read from them.

All of it is equally true of Apache Kafka: BARNABAS_TEST_BROKER=kafka runs it there.
"""

from collections.abc import Callable, Iterator

import pytest

from barnabas.client.client import Client as PlainClient
from barnabas.client.connection import parse_address
from barnabas.client.requests.data import LATEST, list_offsets
from barnabas.client.requests.groups import offset_fetch
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.topic_partition import TopicPartition
from tests.integration.clients.groups import Group
from tests.integration.clients.interface import (
    Client,
    InvalidTxnStateError,
    IsolationLevel,
    ProducerFencedError,
    ProducerRecord,
    TransactionalProducer,
    wait_until,
)

BROKERS = (1, 3)
# How often the broker looks for transactions that took too long.
SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
MANUAL: dict[str, str | int] = {"enable.auto.commit": False}
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

Readers = Callable[[str], "Reading"]


class Reading:
    """What consumers of every library read from a topic's only partition."""

    def __init__(self, clients: list[Client], topic: str) -> None:
        self._clients = clients
        self._topic = topic

    def committed(self, *values: bytes) -> None:
        self._are_read("read_committed", values)

    def uncommitted(self, *values: bytes) -> None:
        self._are_read("read_uncommitted", values)

    def _are_read(self, isolation_level: IsolationLevel, values: tuple[bytes, ...]) -> None:
        """Each library reads exactly these. A last record outside any transaction shows that nothing follows."""
        for client in self._clients:
            with client.consumer(self._topic, isolation_level=isolation_level) as consumer:
                found: list[bytes | None] = []

                def at_the_end(consumer=consumer, found=found) -> bool:
                    found += [record.value for record in consumer.poll()]
                    return bool(found) and found[-1] == b"the end"

                wait_until(at_the_end, lambda found=found: f"the end; there was {found}")
            assert found == [*values, b"the end"], f"{client.name} at {isolation_level}"


@pytest.fixture
def reading(client_named: Callable[[str], Client], request: pytest.FixtureRequest) -> Readers:
    """Reads a topic with every library; with Java's where its own tests run."""

    def of(topic: str) -> Reading:
        names = ["kafka-python", "confluent-kafka", "aiokafka"]
        if request.node.get_closest_marker("java"):
            names.append("java")
        clients = [client_named(name) for name in names]
        clients[0].write(topic, ProducerRecord(b"the end"))
        return Reading(clients, topic)

    return of


@pytest.fixture
def plain(client: Client) -> Iterator[PlainClient]:
    """For what no library shows."""
    with PlainClient([parse_address(each) for each in client.bootstrap.split(",")]) as opened:
        yield opened


@pytest.fixture
def producer(client: Client, new_name: str) -> Iterator[TransactionalProducer]:
    with client.transactional_producer(f"id-of-{new_name}") as opened:
        yield opened


def records(*values: bytes) -> list[ProducerRecord]:
    return [ProducerRecord(value) for value in values]


def end_offset(plain: PlainClient, topic: str, isolation_level: int = READ_UNCOMMITTED) -> int:
    request = list_offsets((topic, 0, LATEST), isolation_level=isolation_level)
    (leader,) = plain.leaders([TopicPartition(topic, 0)]).values()
    with Wire(*plain.brokers()[leader]) as wire:
        offset: int = wire.ask(ApiKey.LIST_OFFSETS, request, 7).topics[0].partitions[0].offset
    return offset


def committed_offset(plain: PlainClient, group: str, topic: str) -> int:
    """What a group has committed, once no transaction is in the way."""
    found = []

    def is_stable() -> bool:
        request = offset_fetch(8, {group: [(topic, [0])]}, require_stable=True)
        (answer,) = wire.ask(ApiKey.OFFSET_FETCH, request, 8).groups
        found[:] = answer.topics[0].partitions
        return not found[0].error_code

    with Wire(*plain.brokers()[plain.coordinator_of(group)]) as wire:
        wait_until(is_stable, "a stable offset")
    offset: int = found[0].committed_offset
    return offset


def test_a_committed_transaction_is_read_whole(
    client: Client, producer: TransactionalProducer, topic: str, reading: Readers
) -> None:
    producer.begin()
    producer.send(topic, records(b"a", b"b"))
    producer.send(topic, records(b"c"))
    producer.commit()
    read = reading(topic)
    read.committed(b"a", b"b", b"c")
    read.uncommitted(b"a", b"b", b"c")


def test_nothing_is_read_before_the_commit(
    client: Client, producer: TransactionalProducer, topic: str, plain: PlainClient
) -> None:
    producer.begin()
    producer.send(topic, records(b"a"))
    with client.consumer(topic, isolation_level="read_committed") as consumer:
        assert consumer.poll() == []
        assert end_offset(plain, topic, READ_COMMITTED) == 0
        assert end_offset(plain, topic, READ_UNCOMMITTED) == 1
        producer.commit()
        assert [record.value for record in consumer.read(1)] == [b"a"]


def test_an_aborted_transaction_is_read_by_no_one_who_asks_for_committed_records(
    client: Client, producer: TransactionalProducer, topic: str, reading: Readers
) -> None:
    producer.begin()
    producer.send(topic, records(b"kept"))
    producer.commit()
    producer.begin()
    producer.send(topic, records(b"dropped", b"dropped too"))
    producer.abort()
    producer.begin()
    producer.send(topic, records(b"kept too"))
    producer.commit()
    read = reading(topic)
    read.committed(b"kept", b"kept too")
    read.uncommitted(b"kept", b"dropped", b"dropped too", b"kept too")


def test_two_topics_are_one_transaction(
    client: Client, producer: TransactionalProducer, topic: str, reading: Readers
) -> None:
    other = f"{topic}-other"
    client.create_topic(other)
    for value, end in ((b"dropped", producer.abort), (b"kept", producer.commit)):
        producer.begin()
        producer.send(topic, records(value))
        producer.send(other, records(value))
        end()
    for each in (topic, other):
        read = reading(each)
        read.committed(b"kept")
        read.uncommitted(b"dropped", b"kept")


def test_an_abort_after_some_of_what_was_to_be_sent(
    client: Client, producer: TransactionalProducer, topic: str, reading: Readers
) -> None:
    """One partition of two has got its records, the other nothing, when the producer aborts."""
    other = f"{topic}-other"
    client.create_topic(other)
    producer.begin()
    producer.send(topic, records(b"sent"))
    producer.abort()
    producer.begin()
    producer.send(topic, records(b"sent again"))
    producer.send(other, records(b"sent at last"))
    producer.commit()
    reading(topic).committed(b"sent again")
    reading(other).committed(b"sent at last")


def test_a_zombie_is_fenced(
    client: Client, producer: TransactionalProducer, topic: str, new_name: str, reading: Readers
) -> None:
    producer.begin()
    producer.send(topic, records(b"of the zombie"))
    with client.transactional_producer(f"id-of-{new_name}") as successor:
        successor.begin()
        successor.send(topic, records(b"of its successor"))
        with pytest.raises(ProducerFencedError):
            producer.commit()
        successor.commit()
    read = reading(topic)
    read.committed(b"of its successor")
    read.uncommitted(b"of the zombie", b"of its successor")


def test_a_transaction_that_takes_too_long_is_aborted(
    client: Client, topic: str, new_name: str, reading: Readers, plain: PlainClient
) -> None:
    with client.transactional_producer(f"slow-{new_name}", timeout_ms=3000) as producer:
        producer.begin()
        producer.send(topic, records(b"late"))
        wait_until(lambda: end_offset(plain, topic) == 2, "the marker of an abort")
        # The newest protocol tells the two apart: this producer's transaction is over, but it was not replaced.
        with pytest.raises(InvalidTxnStateError if client.name == "java" else ProducerFencedError):
            producer.commit()
    read = reading(topic)
    read.committed()
    read.uncommitted(b"late")


def test_offsets_are_part_of_the_transaction(
    client: Client, producer: TransactionalProducer, topic: str, group: Group, reading: Readers, plain: PlainClient
) -> None:
    source = f"{topic}-source"
    client.create_topic(source)
    client.write(source, *records(b"1", b"2", b"3"))
    member = group.join(client, source, settings=MANUAL)
    group.read(3)
    for value, offset, end in ((b"dropped", 2, producer.abort), (b"kept", 3, producer.commit)):
        producer.begin()
        producer.send(topic, records(value))
        producer.send_offsets({(source, 0): offset}, member)
        end()
        expected = -1 if end == producer.abort else 3
        assert committed_offset(plain, group.name, source) == expected
    reading(topic).committed(b"kept")


def test_transactions_of_two_libraries_meet_in_a_partition(
    client: Client, client_named: Callable[[str], Client], topic: str, new_name: str, reading: Readers
) -> None:
    """The one ends after the other has started: what comes in between waits for it."""
    other = {"kafka-python": "aiokafka", "confluent-kafka": "kafka-python"}.get(client.name, "confluent-kafka")
    with (
        client.transactional_producer(f"first-{new_name}") as first,
        client_named(other).transactional_producer(f"second-{new_name}") as second,
    ):
        first.begin()
        first.send(topic, records(b"first"))
        second.begin()
        second.send(topic, records(b"second"))
        second.commit()
        first.send(topic, records(b"first again"))
        first.abort()
    read = reading(topic)
    read.committed(b"second")
    read.uncommitted(b"first", b"second", b"first again")
