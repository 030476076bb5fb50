"""Stories of transactions, played to Apache Kafka and to Barnabas: both have to answer the same, field by field.

With BARNABAS_TEST_BROKER=kafka a second Apache Kafka takes the place of Barnabas. A story must not depend on anything
on which those two disagree.
"""

import os

import pytest

from barnabas.client.requests import lookup
from barnabas.protocol.api import ApiKey
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.side_by_side import SideBySide
from tests.support.transaction_side import TransactionSide

SETTINGS = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.max.timeout.ms": "100000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "offset.metadata.max.bytes": "100",
}


def second_broker(folder):
    if os.environ.get("BARNABAS_TEST_BROKER") == "kafka":
        return ApacheKafka(SETTINGS)
    return BrokerProcess(folder, settings=SETTINGS)


def data_of(broker):
    return broker.data_directory if isinstance(broker, ApacheKafka) else broker.data


@pytest.fixture(scope="package")
def brokers(tmp_path_factory):
    with ApacheKafka(SETTINGS) as kafka, second_broker(tmp_path_factory.mktemp("data")) as barnabas:
        sides = SideBySide(TransactionSide(kafka.port), TransactionSide(barnabas.port))
        sides.kafka.data, sides.barnabas.data = data_of(kafka), data_of(barnabas)
        for side in (sides.kafka, sides.barnabas):
            side.begin("first", 0)
            side.until(lambda side=side: side.ask(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(0, "g"), 0))
            for name in ("a", "b"):  # of either partition
                asked = lookup.find_coordinator(1, name, key_type=1)
                side.until(lambda side=side, asked=asked: side.ask(ApiKey.FIND_COORDINATOR, asked, 1))
                side.ready(name)
                side.until(lambda side=side, name=name: side.describe(name).groups[0])
        yield sides
        sides.kafka.close()
        sides.barnabas.close()
