"""Who reads what, by the assignors of the libraries. The broker passes on their decisions without reading them."""

from collections.abc import Callable

import pytest

from tests.integration.clients.conftest import CLIENTS
from tests.integration.clients.groups import Group, partitions_of
from tests.integration.clients.interface import Assignor, Client, ProducerRecord

BROKERS = (1, 3)


def clients_with(*assignors: Assignor) -> pytest.MarkDecorator:
    """Every library with each of the assignors that it has."""
    return pytest.mark.parametrize(
        ("client", "assignor"),
        [
            pytest.param(name, assignor, marks=[pytest.mark.java] if name == "java" else [])
            for assignor in assignors
            for name, client in CLIENTS.items()
            if assignor in client.assignors
        ],
        indirect=["client"],
    )


@pytest.fixture
def topics(client: Client, new_name: str) -> list[str]:
    """Two topics of three partitions."""
    names = [f"{new_name}-a", f"{new_name}-b"]
    for name in names:
        client.create_topic(name, partitions=3)
    return names


class TestTwoTopicsOfThreePartitionsAndTwoMembers:
    @clients_with("range")
    def test_range_gives_four_and_two(self, client: Client, assignor: Assignor, topics: list[str], group: Group):
        """It divides each topic separately, and the first member gets the larger part of each."""
        group.join(client, *topics, assignor=assignor)
        group.join(client, *topics, assignor=assignor)

        shares = group.poll_until_shared(partitions_of(*topics, count=3))

        a, b = topics
        assert sorted(shares, key=len) == [{(a, 2), (b, 2)}, {(a, 0), (a, 1), (b, 0), (b, 1)}]

    @clients_with("roundrobin")
    def test_roundrobin_gives_three_and_three(
        self, client: Client, assignor: Assignor, topics: list[str], group: Group
    ):
        """It deals the partitions of all topics like cards."""
        group.join(client, *topics, assignor=assignor)
        group.join(client, *topics, assignor=assignor)

        shares = group.poll_until_shared(partitions_of(*topics, count=3))

        a, b = topics
        assert sorted(shares, key=sorted) == [{(a, 0), (a, 2), (b, 1)}, {(a, 1), (b, 0), (b, 2)}]


@clients_with("sticky", "cooperative-sticky")
def test_sticky_keeps_what_it_can_when_one_of_three_members_leaves(
    client: Client, assignor: Assignor, topics: list[str], group: Group
):
    for _ in range(3):
        group.join(client, *topics, assignor=assignor)
    everything = partitions_of(*topics, count=3)
    before = group.poll_until_shared(everything)
    assert [len(share) for share in before] == [2, 2, 2]
    told_before = [list(member.revoked) for member in group.members]

    group.leave(group.members[0])
    after = group.poll_until_shared(everything)

    assert [len(share) for share in after] == [3, 3]
    for kept, share in zip(before[1:], after, strict=True):
        assert kept <= share
    if assignor == "cooperative-sticky":
        assert [member.revoked for member in group.members] == told_before[1:]


@clients_with("cooperative-sticky")
def test_cooperative_takes_away_only_what_moves(client: Client, assignor: Assignor, topics: list[str], group: Group):
    everything = partitions_of(*topics, count=3)
    first = group.join(client, *topics, assignor=assignor)
    group.poll_until_shared(everything)

    second = group.join(client, *topics, assignor=assignor)
    shares = group.poll_until_shared(everything)

    assert [len(share) for share in shares] == [3, 3]
    assert sorted(first.assigned) == sorted(everything)
    assert sorted(first.revoked) == sorted(everything - shares[0])
    assert sorted(second.assigned) == sorted(shares[1])
    assert second.revoked == []


@clients_with("range", "sticky")
def test_the_others_take_everything_away_first(client: Client, assignor: Assignor, topics: list[str], group: Group):
    everything = partitions_of(*topics, count=3)
    first = group.join(client, *topics, assignor=assignor)
    group.poll_until_shared(everything)

    group.join(client, *topics, assignor=assignor)
    shares = group.poll_until_shared(everything)

    assert sorted(first.revoked) == sorted(everything)
    assert sorted(first.assigned) == sorted([*everything, *shares[0]])


@pytest.mark.parametrize(
    ("leader", "follower"),
    [
        ("kafka-python", "confluent-kafka"),
        ("confluent-kafka", "aiokafka"),
        ("aiokafka", "kafka-python"),
        pytest.param("java", "kafka-python", marks=pytest.mark.java),
        pytest.param("confluent-kafka", "java", marks=pytest.mark.java),
        pytest.param("aiokafka", "java", marks=pytest.mark.java),
    ],
)
def test_two_libraries_share_a_topic(
    client_named: Callable[[str], Client], new_name: str, group: Group, leader: str, follower: str
):
    client_named(leader).create_topic(new_name, partitions=4)
    group.join(client_named(leader), new_name)
    group.poll_until_shared(partitions_of(new_name, count=4))
    group.join(client_named(follower), new_name)
    shares = group.poll_until_shared(partitions_of(new_name, count=4))

    sent = [ProducerRecord(b"%d" % number, partition=number % 4) for number in range(40)]
    client_named(leader).write(new_name, *sent)
    found = group.read(40)

    assert sorted(record.value for records in found for record in records) == sorted(record.value for record in sent)
    assert [{(new_name, record.partition) for record in records} for records in found] == shares
