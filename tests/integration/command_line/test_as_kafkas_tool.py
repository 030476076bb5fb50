"""What `barnabas groups describe` says about a group, compared with Kafka's own tool."""

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.command import columns, kafkas_description, partitions_read, rows, started

pytestmark = pytest.mark.java


@pytest.fixture(scope="module", params=["barnabas", "apache kafka"])
def served(request, tmp_path_factory):
    """Every broker in turn; the fixtures that run commands run them against it."""
    if request.param == "barnabas":
        with BrokerProcess(tmp_path_factory.mktemp("described"), settings={"num.partitions": "3"}) as process:
            yield process
    else:
        yield request.getfixturevalue("apache_kafka")


def test_a_group_without_members(served, done, produce, topic, group):
    for index in range(3):
        produce(topic, *"abc"[: index + 1], options=("--partition", index))
    done("consume", topic, "--group", group, "-e")
    produce(topic, "d", options=("--partition", 1))
    said = done("groups", "describe", group)
    assert said.startswith(f"Group '{group}' has no active members.\n")
    assert rows(said.split("\n", 1)[1]) == rows(kafkas_description(served.bootstrap, group))
    assert [row["LAG"] for row in columns(said.split("\n", 1)[1])] == ["0", "1", "0"]


def test_a_group_with_a_member(served, done, produce, topic, group):
    """It has read and committed everything, so nothing changes between the two descriptions."""
    produce(topic, "a", options=("--partition", 1))
    done("consume", topic, "--group", group, "-e")
    with started(served, "consume", topic, "--group", group, "-v") as member:
        assert partitions_read(member) == [0, 1, 2]
        assert rows(done("groups", "describe", group)) == rows(kafkas_description(served.bootstrap, group))

        (ours,) = columns(done("groups", "describe", group, "--members"))
        (theirs,) = rows(kafkas_description(served.bootstrap, group, "--members"))
        assert [ours[title] for title in ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS")] == theirs

        (ours,) = columns(done("groups", "describe", group, "--state"))
        (theirs,) = rows(kafkas_description(served.bootstrap, group, "--state"))
        titles = ("GROUP", "COORDINATOR", "COORDINATOR-ID", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
        assert [ours[title] for title in titles] == [cell.strip("()") for cell in theirs]
