"""Apache Kafka and Barnabas with the same topics, groups, users and rights."""

import pytest

from barnabas.client.requests import data, groups, lookup, transactions
from barnabas.client.requests.streams import (
    streams_group_heartbeat,
    subtopology,
    topology,
)
from barnabas.protocol.api import ApiKey
from tests.integration.access.case import records
from tests.integration.access.cases import USERS
from tests.support.acl_side_by_side import guarded
from tests.support.side_by_side import SideBySide

SETTINGS = {
    "node.id": "1",
    "num.partitions": "1",
    "delete.topic.enable": "true",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="package")
def brokers(tmp_path_factory):
    with guarded(tmp_path_factory.mktemp("data"), USERS, SETTINGS) as (kafka, barnabas):
        for side in (kafka, barnabas):
            for name in ("t", "u"):
                side.create_topic(name, 2)
                answer = side.ask(ApiKey.PRODUCE, data.produce((name, 0, records())), 9)
                assert not answer.responses[0].partition_responses[0].error_code
            for group in ("g", "h"):
                until_answered(
                    side, ApiKey.FIND_COORDINATOR, lookup.find_coordinator(4, group), 4, lambda a: a.coordinators
                )
                until_answered(
                    side,
                    ApiKey.OFFSET_COMMIT,
                    groups.offset_commit(group, ("t", 0, 1), ("u", 0, 1)),
                    9,
                    lambda a: [p for t in a.topics for p in t.partitions],
                )
            flow = topology(subtopology("0", "t", "u"))
            until_answered(
                side,
                ApiKey.STREAMS_GROUP_HEARTBEAT,
                streams_group_heartbeat("flow", "m", 0, topology=flow),
                0,
                lambda a: [a],
            )
            until_answered(
                side,
                ApiKey.FIND_COORDINATOR,
                lookup.find_coordinator(4, "x", key_type=1),
                4,
                lambda a: a.coordinators,
            )
            until_answered(side, ApiKey.INIT_PRODUCER_ID, transactions.init_producer_id("x"), 4, lambda a: [a])
        yield SideBySide(kafka, barnabas)


def until_answered(side, key, request, version, parts):
    """Apache Kafka's coordinators are not available at once, and nothing announces when they are."""
    while any(part.error_code for part in parts(side.ask(key, request, version))):
        pass
