"""The same records and questions about them, sent to Apache Kafka and to Barnabas, get the same answers.

Every scenario has topics of its own, and every version a partition of its own in them, so that none sees what another
wrote.
"""

import pytest

from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.side_by_side import Side, SideBySide

SETTINGS = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    "transaction.partition.verification.enable": "false",  # so that there are transactions without a coordinator
}


@pytest.fixture(scope="package")
def brokers(tmp_path_factory):
    with ApacheKafka(SETTINGS) as kafka, BrokerProcess(tmp_path_factory.mktemp("data"), settings=SETTINGS) as barnabas:
        sides = SideBySide(Side(kafka.port), Side(barnabas.port))
        yield sides
        sides.kafka.close()
        sides.barnabas.close()
