"""What makes a group rebalance, and what does not."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from barnabas import Barnabas
from tests.integration.clients.groups import Group, partitions_of
from tests.integration.clients.interface import Client, GroupConsumer

BROKERS = (3,)
SESSION_TIMEOUT_MS = 4000
SETTINGS = {"group.min.session.timeout.ms": str(SESSION_TIMEOUT_MS)}
# How often members look for new topics and partitions.
OFTEN: dict[str, str | int] = {"metadata.max.age.ms": 100}


@pytest.fixture
def topic(client: Client, new_name: str) -> str:
    """A topic of four partitions."""
    client.create_topic(new_name, partitions=4)
    return new_name


@pytest.fixture
def two_members(client: Client, topic: str, group: Group) -> list[GroupConsumer]:
    """Two members that have shared the topic."""
    group.join(client, topic)
    group.join(client, topic)
    group.poll_until_shared(partitions_of(topic, count=4))
    return list(group.members)


def events(broker: Barnabas, group: Group, event: str) -> list[str]:
    """The lines of the broker's log about the group."""
    return [line for line in broker.log.splitlines() if f'"{group.name}"' in line and f'"{event}"' in line]


def test_a_member_joins(client: Client, topic: str, group: Group):
    group.join(client, topic)
    group.poll_until_shared(partitions_of(topic, count=4))

    group.join(client, topic)

    assert [len(share) for share in group.poll_until_shared(partitions_of(topic, count=4))] == [2, 2]


@pytest.mark.usefixtures("two_members")
def test_a_member_leaves(topic: str, group: Group):
    """The others do not have to wait for its session to time out, which would take longer than this test waits."""
    group.leave(group.members[0])

    group.poll_until_shared(partitions_of(topic, count=4))


class TestAProcessIsKilled:
    @pytest.fixture(params=["kafka-python", "confluent-kafka"])
    def client(self, request: pytest.FixtureRequest, client_named) -> Client:
        return client_named(request.param)

    @pytest.fixture
    def process(self, client: Client, topic: str, group: Group) -> Iterator[subprocess.Popen[str]]:
        arguments = [client.name, client.bootstrap, group.name, topic, str(SESSION_TIMEOUT_MS)]
        command = [sys.executable, "-m", "tests.integration.clients.member_process", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
            yield started
            started.kill()

    def test_its_session_times_out(
        self, client: Client, topic: str, group: Group, process: subprocess.Popen[str], broker: Barnabas
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "assigned\n"
        survivor = group.join(client, topic)
        group.poll_until(lambda: len(survivor.assignment()) == 2, "half of the partitions")

        process.kill()

        group.poll_until_shared(partitions_of(topic, count=4))
        assert any("its session timed out" in event for event in events(broker, group, "member is gone"))


class TestAMemberIsNotPolled:
    @pytest.fixture(params=["confluent-kafka", "aiokafka", pytest.param("java", marks=pytest.mark.java)])
    def client(self, request: pytest.FixtureRequest, client_named) -> Client:
        return client_named(request.param)

    def test_it_leaves_after_max_poll_interval_ms(self, client: Client, topic: str, group: Group, broker: Barnabas):
        hasty = {"max.poll.interval.ms": SESSION_TIMEOUT_MS, "session.timeout.ms": SESSION_TIMEOUT_MS}
        polled = group.join(client, topic)
        group.join(client, topic, settings=hasty)
        group.poll_until_shared(partitions_of(topic, count=4))

        group.poll_until_shared(partitions_of(topic, count=4), polled=[polled])
        assert any("it left" in event for event in events(broker, group, "member is gone"))

        # It is polled again, and joins again.
        group.poll_until_shared(partitions_of(topic, count=4))


def test_a_member_subscribes_to_another_topic(client: Client, topic: str, group: Group):
    client.create_topic(f"{topic}-other", partitions=2)
    member = group.join(client, topic)
    group.poll_until_shared(partitions_of(topic, count=4))

    member.subscribe(topic, f"{topic}-other")
    group.poll_until_shared(partitions_of(topic, count=4) | partitions_of(f"{topic}-other", count=2))

    member.subscribe(f"{topic}-other")
    group.poll_until_shared(partitions_of(f"{topic}-other", count=2))


def test_partitions_are_added(client: Client, topic: str, group: Group):
    group.join(client, topic, settings=OFTEN)
    group.join(client, topic, settings=OFTEN)
    group.poll_until_shared(partitions_of(topic, count=4))

    client.create_partitions(topic, 6)

    assert [len(share) for share in group.poll_until_shared(partitions_of(topic, count=6))] == [3, 3]


def test_a_new_topic_matches_a_pattern(client: Client, topic: str, group: Group):
    member = group.join(client, settings=OFTEN)
    member.subscribe_pattern(f"^{topic}(-.*)?$")
    group.poll_until_shared(partitions_of(topic, count=4))

    client.create_topic(f"unlike-{topic}", partitions=2)
    client.create_topic(f"{topic}-new", partitions=2)

    group.poll_until_shared(partitions_of(topic, count=4) | partitions_of(f"{topic}-new", count=2))


@pytest.mark.parametrize("returning", ["leader", "follower"])
def test_a_static_member_comes_back_to_what_it_had(
    client: Client, topic: str, group: Group, broker: Barnabas, returning: str
):
    leader = group.join(client, topic, settings={"group.instance.id": "leader"})
    group.poll_until_shared(partitions_of(topic, count=4))
    follower = group.join(client, topic, settings={"group.instance.id": "follower"})
    group.poll_until_shared(partitions_of(topic, count=4))
    stays, leaves = (follower, leader) if returning == "leader" else (leader, follower)
    shares = [stays.assignment(), leaves.assignment()]
    told_before = (list(stays.assigned), list(stays.revoked))
    generations_before = events(broker, group, "generation begins")

    group.leave(leaves)
    group.join(client, topic, settings={"group.instance.id": returning})

    assert group.poll_until_shared(partitions_of(topic, count=4)) == shares
    assert (stays.assigned, stays.revoked) == told_before
    assert events(broker, group, "generation begins") == generations_before
