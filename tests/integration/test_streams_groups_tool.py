"""Kafka's own tools for streams groups, and `barnabas groups`, against our broker."""

import json

import pytest

from barnabas.client.requests import lookup
from barnabas.client.requests.streams import subtopology, topology
from barnabas.command import main
from barnabas.protocol.api import ApiKey
from tests.support.apache_kafka import run_tool
from tests.support.broker_process import BrokerProcess
from tests.support.streams_side import StreamsSide

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("data")) as broker:
        side = StreamsSide(broker.port)
        side.of(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(0, "g"))
        side.topic("t")
        side.close()
        yield broker


@pytest.fixture
def side(broker):
    side = StreamsSide(broker.port)
    side.begin("flow", 9)
    side.stream("A", 0, topology=topology(subtopology("0", "t")))
    side.commit(("t", 0, 4), member="A", generation=2)
    yield side
    side.stream("A", -1)
    side.delete()
    side.close()


def rows(broker, tool, *arguments):
    done = run_tool(tool, "--bootstrap-server", broker.bootstrap, *arguments, check=False)
    return [line.split() for line in (done.stderr + done.stdout).splitlines() if line.strip()]


def test_kafka_groups_lists_it(broker, side):
    assert ["flow", "Streams", "streams"] in rows(broker, "kafka-groups", "--list")
    assert ["flow", "Streams", "streams"] in rows(broker, "kafka-groups", "--list", "--group-type", "streams")
    assert all("flow" not in row for row in rows(broker, "kafka-groups", "--list", "--group-type", "consumer"))


def test_kafka_streams_groups_describes_and_deletes_it(broker, side):
    tool = "kafka-streams-groups"
    assert rows(broker, tool, "--list") == [["flow"]]
    assert ["flow", "Stable"] in rows(broker, tool, "--list", "--state", "stable")
    _, row = rows(broker, tool, "--describe", "--group", "flow", "--state", "--verbose")
    assert (row[0], *row[-4:]) == ("flow", "Stable", "2", "2", "1")
    _, row = rows(broker, tool, "--describe", "--group", "flow", "--members")
    assert row == ["flow", "A", *["process", "of", "A"], "barnabas", "ACTIVE:", "0:[0,1,2];"]
    _, *found = rows(broker, tool, "--describe", "--group", "flow", "--verbose")
    assert ["flow", "t", "0", "4", "-", "0", "-4"] in found
    assert "GroupNotEmptyException" in str(rows(broker, tool, "--delete", "--group", "flow"))
    side.stream("A", -1)
    rows(broker, tool, "--delete", "--group", "flow")
    assert rows(broker, tool, "--list") == []


def test_barnabas_groups_describes_it(broker, side, capsys):
    def asked(*arguments):
        assert main(["groups", *arguments, "--bootstrap", broker.bootstrap, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert [(row["group"], row["type"]) for row in asked("list") if row["group"] == "flow"] == [("flow", "streams")]
    (state,) = asked("describe", "flow", "--state")
    assert (state["state"], state["assignor"], state["members"]) == ("Stable", "sticky", 1)
    offsets = {row["partition"]: (row["current_offset"], row["consumer_id"]) for row in asked("describe", "flow")}
    assert offsets == {0: (4, "A"), 1: (None, "A"), 2: (None, "A")}
