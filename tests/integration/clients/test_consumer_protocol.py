"""Groups of the consumer protocol (KIP-848) with the libraries that have it, on three brokers."""

from collections.abc import Callable

import pytest

from barnabas import Barnabas
from tests.integration.clients.franz_go import FranzGoClient
from tests.integration.clients.groups import Group, partitions_of
from tests.integration.clients.interface import Client, GroupClient, ProducerRecord, wait_until
from tests.integration.clients.test_leaders_move import in_sync, leader_of, partition_of

BROKERS = (3,)
SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}
CONSUMER: dict[str, str | int] = {"group.protocol": "consumer"}


@pytest.fixture(
    params=[
        "confluent-kafka",
        pytest.param("java", marks=pytest.mark.java),
        pytest.param("franz-go", marks=pytest.mark.go),
    ]
)
def client(request: pytest.FixtureRequest, client_named: Callable[[str], Client]) -> GroupClient:
    if request.param == "franz-go":
        franz_go: FranzGoClient = request.getfixturevalue("franz_go")
        return franz_go
    return client_named(request.param)


@pytest.fixture
def topic(broker: Barnabas, new_name: str) -> str:
    """A topic of four partitions. (librdkafka may still ask the controller of before, if that was killed.)"""
    return broker.create_topic(new_name, partitions=4)


def test_members_come_and_go(client: GroupClient, topic: str, group: Group, broker: Barnabas):
    group.join(client, topic, settings=CONSUMER)
    group.poll_until_shared(partitions_of(topic, count=4))
    group.join(client, topic, settings=CONSUMER)
    assert [len(share) for share in group.poll_until_shared(partitions_of(topic, count=4))] == [2, 2]
    found = broker.state["groups"][group.name]
    assert (found["type"], found["state"], len(found["members"])) == ("consumer", "Stable", 2)
    group.leave(group.members[0])
    group.poll_until_shared(partitions_of(topic, count=4))


def test_the_next_member_continues_where_the_last_one_was(client: GroupClient, topic: str, group: Group):
    client.write(topic, ProducerRecord(b"one", partition=0))
    member = group.join(client, topic, settings=CONSUMER)
    assert [record.value for record in group.read(1)[0]] == [b"one"]
    group.leave(member)  # it commits
    client.write(topic, ProducerRecord(b"two", partition=0))
    group.join(client, topic, settings=CONSUMER)
    assert [record.value for record in group.read(1)[0]] == [b"two"]


def test_a_static_member_that_is_away_for_a_while_keeps_its_partitions(client: GroupClient, topic: str, group: Group):
    if isinstance(client, FranzGoClient):
        pytest.skip("franz-go 1.22.2 leaves without its instance id: INVALID_REQUEST, here and on Apache Kafka")
    settings = {**CONSUMER, "group.instance.id": "i"}
    static = group.join(client, topic, settings=settings)
    other = group.join(client, topic, settings=CONSUMER)
    group.poll_until_shared(partitions_of(topic, count=4))
    before = static.assignment()
    group.leave(static)
    again = group.join(client, topic, settings=settings)
    group.poll_until(lambda: again.assignment() == before, "the same partitions", [again, other])
    assert len(other.assignment()) == 2


def test_a_pattern_is_looked_up_by_the_broker(client: GroupClient, topic: str, group: Group):
    member = group.join(client, settings=CONSUMER)
    member.subscribe_pattern(f"^{topic}.*")
    group.poll_until_shared(partitions_of(topic, count=4))


@pytest.mark.parametrize("disturb", ["move", "kill"])
def test_a_group_continues_when_its_coordinator_changes(
    client: GroupClient, topic: str, group: Group, broker: Barnabas, disturb: str
):
    group.join(client, topic, settings=CONSUMER)
    group.join(client, topic, settings=CONSUMER)
    shares = group.poll_until_shared(partitions_of(topic, count=4))
    offsets, number = "__consumer_offsets", partition_of(broker, "__consumer_offsets", group.name)
    in_sync(broker, offsets, number)
    leader = leader_of(broker, offsets, number)
    if disturb == "move":
        broker.move_leader(offsets, number, to=next(each for each in broker.nodes if each != leader))
    else:
        broker.nodes[leader].kill()
    wait_until(lambda: group.name in broker.state["groups"], "another coordinator")
    assert broker.state["groups"][group.name]["group_epoch"] >= 3
    client.write(topic, *(ProducerRecord(b"%d" % index, partition=index) for index in range(4)))
    read: set[bytes | None] = set()  # the producer is not idempotent, and may have written one twice

    def everything_is_read() -> bool:
        read.update(record.value for member in group.members for record in member.poll())
        return read == {b"0", b"1", b"2", b"3"}

    wait_until(everything_is_read, lambda: f"four records; there were {read}")
    assert [member.assignment() for member in group.members] == shares  # nobody had to begin again
    if disturb == "kill":
        broker.nodes[leader].start()
        in_sync(broker, offsets, number)


def test_a_group_goes_from_the_classic_protocol_to_the_other_and_back(
    client: GroupClient, topic: str, group: Group, broker: Barnabas
):
    """Member by member, as an application is restarted."""

    def kind() -> str:
        return str(broker.state["groups"][group.name]["type"])

    everything = partitions_of(topic, count=4)
    for _ in range(2):
        group.join(client, topic)
    group.poll_until_shared(everything)
    for settings in (CONSUMER, None):
        for member in list(group.members):
            group.leave(member)
            group.join(client, topic, settings=settings)
            group.poll_until_shared(everything)
        assert kind() == ("classic" if settings is None else "consumer")
