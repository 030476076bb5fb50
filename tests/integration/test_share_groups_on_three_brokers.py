"""A share group on three brokers, whose coordinator moves and dies: it goes on in the same epoch."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from barnabas import Barnabas
from barnabas.client.client import Client
from barnabas.client.connection import parse_address
from barnabas.client.errors import check
from barnabas.client.group_admin import delete_group, describe_group
from barnabas.client.requests.share_groups import share_group_heartbeat
from barnabas.client.share_offsets import ShareOffset, alter_share_offsets, share_offsets
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from barnabas.protocol.topic_partition import TopicPartition
from tests.integration.clients.interface import wait_until
from tests.integration.clients.test_leaders_move import in_sync, leader_of, partition_of

GROUP = "share"


@pytest.fixture
def cluster() -> Iterator[Barnabas]:
    with Barnabas(brokers=3, journal=False, settings={"group.share.assignment.interval.ms": "0"}) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Barnabas) -> Iterator[Client]:
    with Client([parse_address(each) for each in cluster.bootstrap_servers.split(",")], timeout=60) as client:
        yield client


def beat(client: Client, epoch: int, topic: str | None = None) -> ShareGroupHeartbeatResponse:
    def attempt() -> ShareGroupHeartbeatResponse:
        request = share_group_heartbeat(GROUP, "A", epoch, None if topic is None else [topic])
        answer = client.coordinator(GROUP).ask(request, ShareGroupHeartbeatResponse)
        check(answer.error_code, "a heartbeat")
        return answer

    return client.settled(attempt)


def joined(client: Client, topic: str) -> int:
    """The epoch of a member that has all three partitions."""
    epoch = beat(client, 0, topic).member_epoch

    def has_all() -> bool:
        nonlocal epoch
        answer = beat(client, epoch, topic)
        epoch = answer.member_epoch
        return sum(len(each.partitions) for each in answer.assignment.topic_partitions) == 3

    wait_until(has_all, "all partitions")
    return epoch


def test_a_member_goes_on_when_its_coordinator_moves_or_dies(cluster: Barnabas, client: Client) -> None:
    topic = cluster.create_topic(partitions=3)
    epoch = joined(client, topic)
    number = partition_of(cluster, "__consumer_offsets", GROUP)
    in_sync(cluster, "__consumer_offsets", number)
    here = leader_of(cluster, "__consumer_offsets", number)
    there = next(each for each in cluster.nodes if each != here)
    cluster.move_leader("__consumer_offsets", number, to=there)
    assert beat(client, epoch).member_epoch == epoch
    in_sync(cluster, "__consumer_offsets", number)
    cluster.nodes[there].kill()
    assert beat(client, epoch).member_epoch == epoch
    (member,) = describe_group(client, GROUP).members
    assert (member.member_id, len(member.assignment)) == ("A", 3)
    cluster.nodes[there].start()
    beat(client, -1)
    delete_group(client, GROUP)
    assert GROUP not in cluster.state["groups"]


def test_lag_is_known_wherever_the_leaders_are(cluster: Barnabas, client: Client) -> None:
    topic = cluster.create_topic(partitions=3)
    joined(client, topic)
    beat(client, -1)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for index in range(3):
        producer.produce(topic, b"value", partition=index)
    assert producer.flush(60) == 0
    assert {leader_of(cluster, topic, index) for index in range(3)} == set(cluster.nodes)
    partitions = [TopicPartition(topic, index) for index in range(3)]
    assert share_offsets(client, GROUP) == dict.fromkeys(partitions, ShareOffset(None, None))
    alter_share_offsets(client, GROUP, dict.fromkeys(partitions, 0))
    assert share_offsets(client, GROUP) == dict.fromkeys(partitions, ShareOffset(0, 1))
