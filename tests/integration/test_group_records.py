"""What groups leave in __consumer_offsets: Kafka's own tools read it, and one broker loads what the other wrote.

The same story is played to both brokers, so that each record of one has its counterpart in the other.
"""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas.client.requests import lookup
from barnabas.client.requests.streams import subtopology, topic_info, topology
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.streams_group_heartbeat import RequestEndpoint
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.console_consumer import formatted_records
from tests.support.dump_log import dump_log
from tests.support.polling import pause
from tests.support.streams_side import StreamsSide

pytestmark = pytest.mark.java

SETTINGS = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}
GROUPS = ["workers", "static", "left", "simple", "deleted", "aged", "modern", "flow"]
LONG = {"session_timeout_ms": 1_800_000}
PARTITION = "__consumer_offsets-0"
SEGMENT = "00000000000000000000.log"
FORMATTERS = ["OffsetsMessageFormatter", "GroupMetadataMessageFormatter"]


def tell(side: StreamsSide) -> None:
    """A story that leaves records of every kind."""
    topic = side.topic("t")
    side.topic("u")
    side.topic("v")
    side.begin("workers", 9)
    side.stable("A", "B", **LONG)
    side.commit((topic, 0, 5), (topic, 1, 6), who="A", generation=2, metadata="half way", leader_epoch=0)
    side.commit((topic, 0, 7), who="A", generation=2)
    side.begin("static", 9)
    side.stable("A", group_instance_id="a", **LONG)
    del side.ids["A"]
    side.join("A", group_instance_id="a", **LONG)
    side.begin("left", 9)
    side.stable("A")
    side.commit((topic, 0, 8), who="A", generation=1)
    side.leave("A")
    side.begin("simple", 9)
    side.commit((topic, 0, 9), (topic, 2, 10), metadata="caf\N{LATIN SMALL LETTER E WITH ACUTE}")
    side.delete_offsets(("t", 2))
    side.begin("deleted", 9)
    side.commit((topic, 0, 11))
    side.delete()
    side.begin("aged", 3)
    side.commit((topic, 0, 12), retention_time_ms=3_600_000)
    tell_of_the_consumer_protocol(side, topic)
    tell_of_streams(side, topic)
    tell_of_share_groups(side)


def tell_of_the_consumer_protocol(side: StreamsSide, topic: str | bytes) -> None:
    side.begin("modern", 9)
    side.beat("A", 0, topics=["t"], instance_id="i", rack_id="r", server_assignor="range")
    side.beat("B", 0, topics=["t"])
    side.beat("A", 2, owned={"t": [0, 1, 2]}, instance_id="i")
    side.beat("A", 2, owned={"t": [0, 1]}, instance_id="i")
    side.beat("B", 3, owned={})
    side.commit((topic, 0, 13), member="A", generation=3)
    side.beat("A", -2, instance_id="i")
    side.beat("C", 0, topics=["t"], instance_id="i")
    side.beat("B", -1)
    side.begin("modern-deleted", 9)
    side.beat("A", 0, topics=["t"])
    side.beat("A", -1)
    side.delete()


def tell_of_share_groups(side: StreamsSide) -> None:
    """Which partitions members get of one topic depends on its id: each member has a topic of its own."""
    side.begin("shared", 9)
    side.share("A", 0, ["t"], rack_id="r")
    side.initialized(t=3)
    side.share("A", 2)
    side.share("B", 0, ["u"])
    side.initialized(t=3, u=3)
    side.share("B", 4)
    side.share("A", 3)
    side.share("B", -1)
    side.begin("shared-deleted", 9)
    side.share("A", 0, ["t"])
    side.initialized(t=3)
    side.share("A", -1)
    side.delete()


def tell_of_streams(side: StreamsSide, topic: str | bytes) -> None:
    flow = topology(
        subtopology("1", "t", sinks=["u"], copartitioned=[([0], [])]),
        subtopology("0", repartition=[topic_info("u", 3, 1)], changelogs=[topic_info("v", configs=[("a", "b")])]),
        epoch=4,
    )
    side.begin("flow", 9)
    side.stream("A", 0, topology=flow, tags=[("zone", "z"), ("area", "a")], rack_id="r")
    side.stream("B", 0, topology=flow, user_endpoint=RequestEndpoint(host="here", port=50_000))
    mine = {"0": [0, 1, 2], "1": [0, 1, 2]}
    asked = side.stream("A", 2, active=mine)
    side.stream("A", 2, active={each.subtopology_id: each.partitions for each in asked.active_tasks})
    side.stream("B", 3, active={})
    side.commit((topic, 0, 14), member="A", generation=3)
    side.stream("B", -1)
    side.begin("flow-deleted", 9)
    side.stream("A", 0, topology=flow)
    side.stream("A", -1)
    side.delete()


# The offsets in the story: the group, the partition, and the offset, which is None when it was deleted.
COMMITTED = [
    ("workers", 0, 5),
    ("workers", 1, 6),
    ("workers", 0, 7),
    ("left", 0, 8),
    ("simple", 0, 9),
    ("simple", 2, 10),
    ("simple", 2, None),
    ("deleted", 0, 11),
    ("deleted", 0, None),
    ("aged", 0, 12),
    ("modern", 0, 13),
    ("flow", 0, 14),
]
# And the groups: the generation, and what each member was assigned, in base64.
GENERATIONS = [
    ("workers", 0, []),
    ("workers", 1, ["QQ=="]),
    ("workers", 2, ["QQ==", "Qg=="]),
    ("static", 0, []),
    ("static", 1, ["QQ=="]),
    ("static", 1, ["QQ=="]),
    ("left", 0, []),
    ("left", 1, ["QQ=="]),
    ("left", 2, []),
    ("deleted", None, None),
]


# How many records the groups of the consumer protocol leave, besides that offset: for a member that joins, its
# subscription, the group's epoch, the targets that change, their epoch, and what the member has.
MODERN = (5 + 6 + 1 + 1 + 1) + (1 + 6 + 1 + 4) + (5 + 4 + 3)
# The same of share groups, and which partitions have a state: first those that are asked for, then those that exist.
SHARED = (6 + 1 + 4) + (6 + 1 + 4 + 1 + 4) + (6 + 1 + 4 + 4)
# And streams groups: the first member brings the topology, too.
STREAMS = (6 + 6 + 1 + 1 + 1) + 4 + (6 + 4 + 3)
RECORDS = len(COMMITTED) + len(GENERATIONS) + MODERN + SHARED + STREAMS


def ready(side: StreamsSide) -> None:
    """Nothing tells a client that a coordinator has created and loaded its topic; polling is the only way."""
    while side.ask(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(0, "g"), 0).error_code:
        pause()
    while side.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"]), 0).groups[0].error_code:
        pause()


def groups_and_offsets(side: StreamsSide) -> object:
    side.begin("any", 9)
    described = side.describe(*GROUPS)
    side.ids = {member.member_id: member.member_id for group in described.groups for member in group.members}
    modern = side.described("modern")
    for member in modern.groups[0].members:
        member.assignment = member.target_assignment = None  # the topic of this id is not there
    shared = side.described_shares("shared")
    for member in shared.groups[0].members:
        member.assignment = None
    flow = side.streams_described("flow")
    flow.groups[0].topology = None  # its partitions are counted with the next heartbeat
    return side.comparable([described, modern, shared, flow, side.fetch_groups(dict.fromkeys(GROUPS))])


@dataclass(frozen=True)
class Told:
    """Where both brokers wrote, what Apache Kafka knew at last, and what the console consumer read from Barnabas."""

    kafka: Path
    barnabas: Path
    known_to_kafka: object
    printed: dict[str, list[dict]]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    with BrokerProcess(data, settings=SETTINGS) as barnabas:
        side = StreamsSide(barnabas.port)
        ready(side)
        tell(side)
        side.close()
        printed = {
            name: formatted_records(barnabas.bootstrap, "__consumer_offsets", name, RECORDS) for name in FORMATTERS
        }
    folder = tmp_path_factory.mktemp("apache-kafka")
    with ApacheKafka(SETTINGS, directory=folder) as kafka:
        side = StreamsSide(kafka.port)
        ready(side)
        tell(side)
        known = groups_and_offsets(side)
        side.close()
    return Told(kafka.data_directory, data, known, printed)


def test_the_console_consumer_prints_the_offsets_that_were_committed(told):
    found = told.printed["OffsetsMessageFormatter"]
    assert {record["key"]["data"]["topic"] for record in found} == {"t"}
    assert [
        (
            record["key"]["data"]["group"],
            record["key"]["data"]["partition"],
            record["value"] and record["value"]["data"]["offset"],
        )
        for record in found
    ] == COMMITTED
    first = found[0]["value"]["data"]
    assert (first["metadata"], first["leaderEpoch"]) == ("half way", 0)


def test_the_console_consumer_prints_the_generations_of_groups(told):
    found = told.printed["GroupMetadataMessageFormatter"]
    assert [
        (
            record["key"]["data"]["group"],
            record["value"] and record["value"]["data"]["generation"],
            record["value"] and [member["assignment"] for member in record["value"]["data"]["members"]],
        )
        for record in found
    ] == GENERATIONS


PAYLOAD = re.compile(r"\| offset: (\d+) .* key: (.*) payload: (.*)")
GIVEN_ID = re.compile(r'"[a-z]+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"')
TIME = re.compile(r'"\w+Timestamp":\d+')
HASH = re.compile(r'"metadataHash":-?\d+')
TOPIC_ID = re.compile(r'"topicId":"[^"]{22}"')


def records(folder: Path) -> list[tuple[str, str, object]]:
    """Offset, key and value of every record, without what each broker chooses: times, topic ids and members' ids."""
    found = PAYLOAD.findall(dump_log([folder / PARTITION / SEGMENT], "--offsets-decoder"))
    return [(offset, key, comparable(value)) for offset, key, value in found]


def comparable(value: str) -> object:
    if value == "<DELETE>":
        return value
    for pattern, instead in (
        (GIVEN_ID, '"an id"'),
        (TIME, '"a": "time"'),
        (TOPIC_ID, '"a": "topic id"'),
        (HASH, '"a": "hash"'),
    ):
        value = pattern.sub(instead, value)
    found = json.loads(value)
    # Apache Kafka keeps members in the order of their hash codes.
    found["data"].get("members", []).sort(key=lambda member: member["assignment"])
    # And topics in the order of their ids.
    for topics in ("initializingTopics", "initializedTopics"):
        found["data"].get(topics, []).sort(key=lambda topic: topic["topicName"])
    return found


def test_kafka_dump_log_finds_the_same_records_in_both_logs(told):
    assert records(told.barnabas) == records(told.kafka)


def test_groups_that_apache_kafka_wrote_are_loaded(told, tmp_path):
    with BrokerProcess(tmp_path, settings=SETTINGS) as barnabas:
        side = StreamsSide(barnabas.port)
        ready(side)
        side.close()
    (tmp_path / ".kafka_cleanshutdown").unlink()  # so that the replacement is checked
    shutil.copy(told.kafka / PARTITION / SEGMENT, tmp_path / PARTITION / SEGMENT)
    with BrokerProcess(tmp_path, settings=SETTINGS) as barnabas:
        side = StreamsSide(barnabas.port)
        ready(side)
        assert groups_and_offsets(side) == told.known_to_kafka
        side.close()
