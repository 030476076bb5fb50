"""Kafka's own tools for share groups, unchanged, against our broker."""

import pytest

from barnabas.client.requests import lookup
from barnabas.client.requests.data import produce
from barnabas.protocol.api import ApiKey
from tests.support.apache_kafka import run_tool
from tests.support.batches import batch
from tests.support.broker_process import BrokerProcess
from tests.support.group_side import GroupSide

pytestmark = pytest.mark.java

RECORDS = 10  # in partition 0

# What kafka-share-groups is asked, one after the other.
COMMANDS = {
    "list": "--list",
    "list by state": "--list --state stable",
    "describe": "--describe --group live",
    "describe members": "--describe --group live --members --verbose",
    "describe state": "--describe --group live --state --verbose",
    "describe a group without members": "--describe --group stopped",
    "describe an unknown group": "--describe --group nobody",
    "to earliest": "--reset-offsets --group stopped --topic t --to-earliest --execute",
    "to latest": "--reset-offsets --group stopped --all-topics --to-latest --execute",
    "after that": "--describe --group stopped",
    "reset a group with members": "--reset-offsets --group live --topic t --to-earliest --execute",
    "delete offsets": "--delete-offsets --group stopped --topic t",
    "delete offsets again": "--delete-offsets --group stopped --topic t",
    "delete offsets of a group with members": "--delete-offsets --group live --topic t",
    "delete": "--delete --group stopped",
    "delete a group with members": "--delete --group live",
    "delete an unknown group": "--delete --group nobody",
    "list at last": "--list",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("data")) as broker:
        yield broker


@pytest.fixture(scope="module")
def printed(broker):
    """What the tools print for each command, as rows of words."""
    side = GroupSide(broker.port)
    side.of(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(0, "g"))
    side.topic("t")
    for _ in range(RECORDS):
        side.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"value"))), 9)
    for group in ("stopped", "live"):
        side.begin(group, 1)
        side.share("A", 0, ["t"])
        side.initialized(t=3)
    side.begin("stopped", 1)
    side.share("A", -1)

    def rows(tool, command):
        done = run_tool(tool, "--bootstrap-server", broker.bootstrap, *command.split(), check=False)
        return [line.split() for line in (done.stderr + done.stdout).splitlines() if line.strip()]

    yield {
        "groups": rows("kafka-groups", "--list"),
        "share groups": rows("kafka-groups", "--list --share"),
        **{name: rows("kafka-share-groups", command) for name, command in COMMANDS.items()},
    }
    side.close()


def words(rows):
    return " ".join(word for row in rows for word in row)


def test_groups_are_listed(printed):
    assert sorted(printed["list"]) == [["live"], ["stopped"]]
    assert printed["list by state"] == [["GROUP", "STATE"], ["live", "Stable"]]
    for each in ("groups", "share groups"):
        rows = [row for row in printed[each] if "Share" in row]
        assert sorted(rows) == [["live", "Share", "share"], ["stopped", "Share", "share"]]


def test_a_group_is_described(printed):
    heading, *rows = printed["describe"]
    assert words([heading]) == "GROUP TOPIC PARTITION START-OFFSET LAG"
    assert sorted(rows) == [["live", "t", str(index), "-", "-"] for index in range(3)]
    heading, row = printed["describe members"]
    assert row[:2] == ["live", "A"]
    heading, row = printed["describe state"]
    assert (row[0], row[heading.index("STATE")]) == ("live", "Stable")
    assert [row[0] for row in printed["describe a group without members"][1:]] == ["stopped"] * 3
    assert "Group nobody not found." in words(printed["describe an unknown group"])


def test_offsets_are_reset(printed):
    assert sorted(printed["to earliest"][1:]) == [["stopped", "t", str(index), "0"] for index in range(3)]
    after = [row for row in printed["after that"] if row[0] == "stopped"]
    assert sorted(after) == [["stopped", "t", "0", "10", "0"], *(["stopped", "t", str(i), "0", "0"] for i in (1, 2))]
    assert "live" in words(printed["reset a group with members"])
    assert "not" in words(printed["reset a group with members"])


def test_offsets_are_deleted(printed):
    assert words(printed["delete offsets"]).endswith("t Successful")
    assert "Error" in words(printed["delete offsets again"]) or "not" in words(printed["delete offsets again"])
    assert "has members" in words(printed["delete offsets of a group with members"])


def test_groups_are_deleted(printed):
    assert "successful" in words(printed["delete"])
    assert "GroupNotEmptyException" in words(printed["delete a group with members"])
    assert "nobody" in words(printed["delete an unknown group"])
    assert printed["list at last"] == [["live"]]
