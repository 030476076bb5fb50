"""Stories of consumer groups, played to Apache Kafka and to Barnabas: both have to answer the same.

A story is played by members with a connection each. The ids that a broker gives them are replaced by their names, and
so nothing is left that may differ.
"""

import pytest

from barnabas.client.requests import lookup
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.polling import pause
from tests.support.side_by_side import SideBySide
from tests.support.streams_side import StreamsSide

SETTINGS = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "3",
    "offset.metadata.max.bytes": "100",
    "group.consumer.max.size": "3",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.max.size": "3",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.streams.max.size": "3",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="package")
def brokers(tmp_path_factory):
    with ApacheKafka(SETTINGS) as kafka, BrokerProcess(tmp_path_factory.mktemp("data"), settings=SETTINGS) as barnabas:
        sides = SideBySide(StreamsSide(kafka.port), StreamsSide(barnabas.port))
        for side in (sides.kafka, sides.barnabas):
            # Nothing tells a client that a coordinator has created and loaded its topic; polling is the only way.
            while side.ask(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(0, "g"), 0).error_code:
                pause()
            for group in ("a", "b"):  # of either partition
                while side.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group]), 0).groups[0].error_code:
                    pause()
        yield sides
        sides.kafka.close()
        sides.barnabas.close()
