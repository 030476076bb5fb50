"""Kafka's own tools for consumer groups, unchanged, against our broker."""

import time
from datetime import UTC, datetime

import pytest

from barnabas.client.requests import lookup
from barnabas.client.requests.data import produce
from barnabas.client.requests.groups import assignment
from barnabas.protocol.api import ApiKey
from tests.support.apache_kafka import run_tool
from tests.support.batches import batch
from tests.support.broker_process import BrokerProcess
from tests.support.group_side import GroupSide

pytestmark = pytest.mark.java

HOUR = 3_600_000
NOW = int(time.time() * 1000)
RECORDS = 10  # in partition 0, an hour between one and the next, the last of them now
# Less a minute, so that it lies between two records.
FIVE_HOURS_AGO = datetime.fromtimestamp((NOW - 5 * HOUR) / 1000 + 60, UTC).strftime("%Y-%m-%dT%H:%M:%S.000+0000")
LONG = {"session_timeout_ms": 1_800_000}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    settings = {"group.initial.rebalance.delay.ms": "0", "log.retention.ms": "-1"}
    with BrokerProcess(tmp_path_factory.mktemp("data"), settings=settings) as broker:
        side = GroupSide(broker.port)
        side.of(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(0, "g"))
        side.topic("t")
        for index in range(RECORDS):
            records = batch(b"value", timestamp=NOW - (RECORDS - 1 - index) * HOUR)
            side.ask(ApiKey.PRODUCE, produce(("t", 0, records)), 9)
        side.begin("live", 9)
        side.enter("A", **LONG)
        side.joined("A")
        side.sync("A", 1, {"A": assignment(("t", [0, 1]))})
        side.commit(("t", 0, 4), who="A", generation=1)
        side.commit(("t", 0, 5), ("t", 2, 0), group="stopped")
        side.commit(("t", 0, 1), group="other")
        yield broker
        side.close()


# The commands for kafka-consumer-groups, one after another.
COMMANDS = {
    "list": "--list",
    "list by state": "--list --state stable",
    "list by type": "--list --type",
    "list another type": "--list --type consumer",
    "describe": "--describe --group live",
    "describe members": "--describe --group live --members --verbose",
    "describe state": "--describe --group live --state",
    "describe a group without members": "--describe --group stopped",
    "describe an unknown group": "--describe --group nobody",
    "to earliest": "--reset-offsets --group stopped --topic t --to-earliest --execute",
    "to latest": "--reset-offsets --group stopped --all-topics --to-latest --execute",
    "to offset": "--reset-offsets --group stopped --topic t:0 --to-offset 7 --execute",
    "after that": "--describe --group stopped",
    "shift by": "--reset-offsets --group stopped --topic t:0 --shift-by -3 --execute",
    "to datetime": f"--reset-offsets --group stopped --topic t:0 --to-datetime {FIVE_HOURS_AGO} --execute",
    "by duration": "--reset-offsets --group stopped --topic t:0 --by-duration PT2H30M --execute",
    "to current": "--reset-offsets --group stopped --topic t:0 --to-current --dry-run",
    "export": "--reset-offsets --group stopped --topic t:0 --to-earliest --export --dry-run",
    "from file": "--reset-offsets --group stopped --from-file {file} --execute",
    "after all": "--describe --group stopped",
    "reset a group with members": "--reset-offsets --group live --topic t:0 --to-earliest --execute",
    "delete offsets": "--delete-offsets --group stopped --topic t:2",
    "delete offsets of a group with members": "--delete-offsets --group live --topic t:0",
    "delete offsets of an unknown group": "--delete-offsets --group nobody --topic t:0",
    "delete": "--delete --group other",
    "delete a group with members": "--delete --group live",
    "delete an unknown group": "--delete --group nobody",
    "list at last": "--list",
}


@pytest.fixture(scope="module")
def printed(broker, tmp_path_factory):
    """What the tool prints for each command, as rows of words."""
    file = tmp_path_factory.mktemp("plan") / "offsets.csv"
    file.write_text("t,0,3\nt,1,0\n")

    def rows(command):
        arguments = command.format(file=file).split()
        done = run_tool("kafka-consumer-groups", "--bootstrap-server", broker.bootstrap, *arguments, check=False)
        return [line.split() for line in (done.stderr + done.stdout).splitlines() if line.strip()]

    return {name: rows(command) for name, command in COMMANDS.items()}


def words(rows):
    return " ".join(word for row in rows for word in row)


def test_groups_are_listed(printed):
    assert sorted(printed["list"]) == [["live"], ["other"], ["stopped"]]
    assert printed["list by state"] == [["GROUP", "STATE"], ["live", "Stable"]]
    assert sorted(printed["list by type"][1:]) == [[name, "Classic"] for name in ("live", "other", "stopped")]
    assert printed["list another type"] == [["GROUP", "TYPE"]]


def test_a_group_is_described(printed):
    heading, *rows = printed["describe"]
    assert words([heading]) == "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    member_id = rows[0][6]
    assert sorted(rows) == [
        ["live", "t", "0", "4", "10", "6", member_id, "/127.0.0.1", "barnabas"],
        ["live", "t", "1", "-", "0", "-", member_id, "/127.0.0.1", "barnabas"],
    ]
    heading, row = printed["describe members"]
    assert row[:5] == ["live", member_id, "/127.0.0.1", "barnabas", "2"]
    assert row[heading.index("CURRENT-ASSIGNMENT")] == "t:0,1"
    _, row = printed["describe state"]
    assert (row[0], *row[-3:]) == ("live", "range", "Stable", "1")


def test_a_group_without_members_is_described(printed):
    said, _, *rows = printed["describe a group without members"]
    assert words([said]) == "Consumer group 'stopped' has no active members."
    assert sorted(rows) == [
        ["stopped", "t", "0", "5", "10", "5", "-", "-", "-"],
        ["stopped", "t", "2", "0", "0", "0", "-", "-", "-"],
    ]


def test_a_group_that_does_not_exist_is_not_described(printed):
    assert "GroupIdNotFoundException: Group nobody not found." in words(printed["describe an unknown group"])


@pytest.mark.parametrize(
    ("name", "offsets"),
    {
        "to earliest": {"0": "0", "1": "0", "2": "0"},
        "to latest": {"0": "10", "1": "0", "2": "0"},
        "to offset": {"0": "7"},
        "shift by": {"0": "4"},
        "to datetime": {"0": "5"},
        "by duration": {"0": "7"},
        "to current": {"0": "7"},
        "from file": {"0": "3", "1": "0"},
    }.items(),
)
def test_offsets_are_reset(printed, name, offsets):
    heading, *rows = printed[name]
    assert heading == ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
    assert {partition: offset for _, _, partition, offset in rows} == offsets


def test_a_reset_can_be_written_to_a_file(printed):
    assert printed["export"] == [["t,0,0"]]


def test_after_a_reset_a_group_is_where_it_was_put(printed):
    _, _, *rows = printed["after that"]
    assert {row[2]: row[3] for row in rows} == {"0": "7", "1": "0", "2": "0"}
    _, _, *rows = printed["after all"]
    assert {row[2]: row[3] for row in rows} == {"0": "3", "1": "0", "2": "0"}


def test_offsets_are_deleted(printed):
    assert printed["delete offsets"][-1] == ["t", "2", "Successful"]
    assert "GroupSubscribedToTopicException" in words(printed["delete offsets of a group with members"])
    assert "GroupIdNotFoundException" in words(printed["delete offsets of an unknown group"])


def test_groups_are_deleted(printed):
    assert words(printed["delete"]) == "Deletion of requested consumer groups ('other') was successful."
    assert "GroupNotEmptyException" in words(printed["delete a group with members"])
    assert "GroupIdNotFoundException" in words(printed["delete an unknown group"])
    assert sorted(printed["list at last"]) == [["live"], ["stopped"]]


def test_a_group_with_members_is_not_reset(printed):
    said, *_ = printed["reset a group with members"]
    assert "can only be reset if the group 'live' is inactive" in words([said])


def committed(broker, group):
    side = GroupSide(broker.port)
    side.begin(group, 9)
    (found,) = side.fetch().groups
    side.close()
    return {(topic.name, p.partition_index): p.committed_offset for topic in found.topics for p in topic.partitions}


def test_the_console_consumer_reads_as_a_group(broker):
    done = run_tool(
        "kafka-console-consumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", "t", "--group", "console"),
        *("--from-beginning", "--max-messages", str(RECORDS)),
    )
    assert done.stdout.split() == ["value"] * RECORDS
    assert committed(broker, "console")["t", 0] == RECORDS


def test_the_performance_test_reads_as_a_group(broker):
    done = run_tool(
        "kafka-consumer-perf-test",
        *("--bootstrap-server", broker.bootstrap, "--topic", "t", "--group", "performance"),
        *("--num-records", str(RECORDS), "--hide-header"),
    )
    assert int(done.stdout.split(",")[4]) == RECORDS
    assert committed(broker, "performance")["t", 0] == RECORDS


@pytest.mark.usefixtures("printed")  # the commands above see only classic groups
def test_a_group_of_the_consumer_protocol(broker):
    def rows(tool, *arguments):
        done = run_tool(tool, "--bootstrap-server", broker.bootstrap, *arguments, check=False)
        return [line.split() for line in (done.stderr + done.stdout).splitlines() if line.strip()]

    side = GroupSide(broker.port)
    side.begin("modern", 9)
    side.beat("A", 0, topics=["t"])
    assert rows("kafka-consumer-groups", "--list", "--type", "consumer") == [["GROUP", "TYPE"], ["modern", "Consumer"]]
    _, row = rows("kafka-consumer-groups", "--describe", "--group", "modern", "--state")
    assert (row[0], *row[-3:]) == ("modern", "uniform", "Stable", "1")
    heading, row = rows("kafka-consumer-groups", "--describe", "--group", "modern", "--members", "--verbose")
    assert row[:2] == ["modern", "A"]
    assert row[heading.index("TARGET-ASSIGNMENT")] == "t:0,1,2"
    about = ("--entity-type", "groups", "--entity-name", "modern")
    rows("kafka-configs", "--alter", *about, "--add-config", "consumer.heartbeat.interval.ms=6000")
    assert side.beat("A", 2).heartbeat_interval_ms == 6000
    assert "consumer.heartbeat.interval.ms=6000" in words(rows("kafka-configs", "--describe", *about))
    side.beat("A", -1)
    assert "successful" in words(rows("kafka-consumer-groups", "--delete", "--group", "modern"))
    side.close()
