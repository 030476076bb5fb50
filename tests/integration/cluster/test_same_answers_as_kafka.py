"""Three Apache Kafka 3.9 brokers and three of Barnabas get the same requests: each broker, and again when one has
died."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.requests.admin import (
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    list_partition_reassignments,
    new_topic,
)
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.integration.clients.interface import wait_until
from tests.support.cluster import BrokerNode, Cluster, not_yet

pytestmark = pytest.mark.java


@pytest.fixture(scope="module", params=["kafka", "barnabas"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "barnabas" and (reason := not_yet()):
        pytest.skip(reason)
    with Cluster([request.param] * 3, {"auto.leader.rebalance.enable": "false"}) as cluster:
        cluster.make_controller(1)
        yield cluster


def ask(broker: BrokerNode, key: ApiKey, message: Any, version: int) -> Any:
    with Wire("127.0.0.1", broker.port, timeout=60) as wire:
        return wire.ask(key, message, version)


def partitions(cluster: Cluster, broker: BrokerNode) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Without leader epochs: they depend on who is first to take a dead replica out, its leader or the controller."""
    return {
        name: (
            each.error_code,
            each.leader_id,
            list(each.replica_nodes),
            sorted(each.isr_nodes),
            list(each.offline_replicas),
        )
        for name, each in cluster.describe(broker, ["t", "alone"]).items()
    }


def test_what_brokers_say(cluster: Cluster):
    """The answers are those of Apache Kafka, which gets the same questions."""
    controller, other, last = cluster.brokers
    topics = [
        new_topic("t", -1, -1, assignments=[(0, [1, 2, 3]), (1, [2, 3, 1])]),
        new_topic("alone", -1, -1, assignments=[(0, [3])]),
    ]
    created = ask(controller, ApiKey.CREATE_TOPICS, create_topics(*topics), 7)
    assert [topic.error_code for topic in created.topics] == [0, 0]
    whole = {
        ("t", 0): (0, 1, [1, 2, 3], [1, 2, 3], []),
        ("t", 1): (0, 2, [2, 3, 1], [1, 2, 3], []),
        ("alone", 0): (0, 3, [3], [3], []),
    }
    for broker in cluster.brokers:
        wait_until(lambda broker=broker: partitions(cluster, broker) == whole, lambda: "all leaders")
        request = DescribeClusterRequest(include_cluster_authorized_operations=False)
        found = ask(broker, ApiKey.DESCRIBE_CLUSTER, request, 1)
        assert found.controller_id == 1
        assert [(each.broker_id, each.port) for each in sorted(found.brokers, key=lambda each: each.broker_id)] == [
            (each.id, each.port) for each in cluster.brokers
        ]

    not_controller = 41
    answer = ask(other, ApiKey.CREATE_TOPICS, create_topics(new_topic("u")), 7)
    assert [each.error_code for each in answer.topics] == [not_controller]
    answer = ask(other, ApiKey.CREATE_PARTITIONS, create_partitions(("t", 5)), 3)
    assert [each.error_code for each in answer.results] == [not_controller]
    answer = ask(other, ApiKey.DELETE_TOPICS, delete_topics("t"), 6)
    assert [each.error_code for each in answer.responses] == [not_controller]
    answer = ask(other, ApiKey.ELECT_LEADERS, elect_leaders(("t", [0])), 2)
    found = [each.error_code for topic in answer.replica_election_results for each in topic.partition_result]
    assert (answer.error_code, found) == (0, [not_controller])
    answer = ask(other, ApiKey.ALTER_PARTITION_REASSIGNMENTS, alter_partition_reassignments(("t", 0, [1])), 0)
    assert answer.error_code == not_controller
    answer = ask(other, ApiKey.LIST_PARTITION_REASSIGNMENTS, list_partition_reassignments(every=True), 0)
    assert answer.error_code == not_controller

    last.kill()
    degraded = {
        ("t", 0): (0, 1, [1, 2, 3], [1, 2], [3]),
        ("t", 1): (0, 2, [2, 3, 1], [1, 2], [3]),
        ("alone", 0): (5, -1, [3], [3], [3]),
    }
    for broker in (controller, other):
        wait_until(
            lambda broker=broker: partitions(cluster, broker) == degraded,
            lambda broker=broker: f"{degraded}; there is {partitions(cluster, broker)}",
        )
