"""Stories of share groups, told to Apache Kafka and to Barnabas: both have to answer the same."""

import pytest

from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.share_side import ShareSide
from tests.support.side_by_side import SideBySide

SETTINGS = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "transaction.state.log.num.partitions": "1",
}


@pytest.fixture(scope="package")
def brokers(tmp_path_factory):
    with ApacheKafka(SETTINGS) as kafka, BrokerProcess(tmp_path_factory.mktemp("data"), settings=SETTINGS) as barnabas:
        sides = SideBySide(ShareSide(kafka.port), ShareSide(barnabas.port))
        for side in (sides.kafka, sides.barnabas):
            side.wait_for_coordinator()
        yield sides
        sides.kafka.close()
        sides.barnabas.close()


@pytest.fixture
def tell(brokers, request):
    """Tells a story to both brokers, in a group of its own."""

    def told(story):
        def scenario(side):
            side.begin(request.node.name)
            yield from story(side)

        brokers.play(scenario)

    return told
