"""Groups of three kinds that began with Barnabas: Apache Kafka knows them from the logs, and carries them on.

Groups name topics by their ids, so the topics have the same ids in both clusters.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.requests import shares
from barnabas.client.requests.data import produce
from barnabas.client.requests.records import batch
from barnabas.client.requests.shares import ACCEPT, RELEASE
from barnabas.client.requests.streams import subtopology, topic_info, topology
from barnabas.protocol.api import ApiKey
from tests.integration.test_group_records import SETTINGS, ready
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.polling import pause
from tests.support.streams_side import StreamsSide
from tests.support.topic_ids import replace_ids, topic_id

pytestmark = pytest.mark.java

TOPICS = ("t", "u", "v")
# The logs that Barnabas hands over.
LOGS = ("__consumer_offsets-0", "__share_group_state-0", "t-0", "t-1", "t-2")
FLOW = topology(
    subtopology("1", "t", sinks=["u"], copartitioned=[([0], [])]),
    subtopology("0", repartition=[topic_info("u", 3, 1)], changelogs=[topic_info("v", configs=[("a", "b")])]),
    epoch=4,
)
EVERY_TASK = {"0": [0, 1, 2], "1": [0, 1, 2]}


def tell(side: StreamsSide) -> None:
    """A group of each kind with two members, whose work is half done."""
    tell_of_the_consumer_protocol(side)
    tell_of_share_groups(side)
    tell_of_streams(side)


def tell_of_the_consumer_protocol(side: StreamsSide) -> None:
    side.begin("modern", 9)
    side.beat("A", 0, topics=["t"], server_assignor="range")
    side.beat("B", 0, topics=["t"])
    side.beat("A", 2, owned={"t": [0, 1, 2]})
    side.beat("A", 2, owned={"t": [0, 1]})
    side.beat("B", 3, owned={})
    committed(side, 3, "half way")


def tell_of_share_groups(side: StreamsSide) -> None:
    """Of five records the first two are done with, and the others have been given back."""
    side.begin("shared", 9)
    side.set_for_group("share.auto.offset.reset", "earliest")
    side.share("A", 0, ["t"])
    side.initialized(t=3)
    side.share("A", 2)
    side.share("B", 0, ["t"])
    written(side, 5)
    assert share_fetched(side, 0) == [(0, 4, 1)]
    acknowledged(side, (0, 1, [ACCEPT]), (2, 4, [RELEASE]))


def tell_of_streams(side: StreamsSide) -> None:
    side.begin("flow", 9)
    side.stream("A", 0, topology=FLOW)
    side.stream("B", 0, topology=FLOW)
    asked = side.stream("A", 2, active=EVERY_TASK)
    side.stream("A", 2, active=tasks(asked))
    side.stream("B", 3, active={})
    committed(side, 4, "")


def committed(side: StreamsSide, offset: int, metadata: str) -> None:
    answer = side.commit(("t", 0, offset), member="A", generation=3, metadata=metadata)
    assert [part.error_code for topic in answer.topics for part in topic.partitions] == [0]


def place(side: StreamsSide) -> tuple[bytes, int]:
    name = side.name("t", by_id=True)
    assert isinstance(name, bytes)
    return name, 0


def share_fetched(side: StreamsSide, epoch: int) -> list[tuple[int, int, int]]:
    """First and last offsets that member A acquires, and how often they have been delivered."""
    message = shares.share_fetch("shared", "A", epoch, [place(side)], max_wait_ms=10_000, min_bytes=1)
    (topic,) = side.ask(ApiKey.SHARE_FETCH, message, 2).responses
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for partition in topic.partitions
        for each in partition.acquired_records
    ]


def acknowledged(side: StreamsSide, *batches: shares.Acknowledgement) -> None:
    answer = side.ask(ApiKey.SHARE_ACKNOWLEDGE, shares.share_acknowledge("shared", "A", 1, {place(side): batches}), 2)
    assert [part.error_code for topic in answer.responses for part in topic.partitions] == [0]


def written(side: StreamsSide, count: int) -> None:
    records = batch(*(b"%d" % number for number in range(count)))
    (topic,) = side.ask(ApiKey.PRODUCE, produce(("t", 0, records)), 9).responses
    assert topic.partition_responses[0].error_code == 0


def tasks(answer: Any) -> dict[str, list[int]]:
    return {each.subtopology_id: each.partitions for each in answer.active_tasks or ()}


def known(side: StreamsSide) -> object:
    """What the broker says of the groups."""
    side.begin("any", 9)
    modern, shared, flow = side.described("modern"), side.described_shares("shared"), side.streams_described("flow")
    flow.groups[0].topology = None  # its partitions are counted with the next heartbeat
    offsets = side.fetch_groups({"modern": None, "flow": None})
    return side.comparable([modern, shared, side.share_offsets(group="shared"), flow, offsets])


@dataclass(frozen=True)
class HandedOver:
    known_to_barnabas: object
    kafka: StreamsSide


@pytest.fixture(scope="module")
def handed_over(tmp_path_factory):
    """Apache Kafka with the logs that Barnabas wrote."""
    data = tmp_path_factory.mktemp("data")
    with BrokerProcess(data, settings=SETTINGS) as barnabas:
        side = begun(barnabas.port)
        tell(side)
        said = known(side)
        side.close()
    kafka = ApacheKafka(SETTINGS, directory=tmp_path_factory.mktemp("apache-kafka"))
    with kafka:
        begun(kafka.port).close()
    hand_over(data, kafka.data_directory)
    with kafka:
        new = StreamsSide(kafka.port)
        ready(new)
        new.topics_are(side)
        yield HandedOver(said, new)
        new.close()


def begun(port: int) -> StreamsSide:
    """The topics, and those of both coordinators."""
    side = StreamsSide(port)
    ready(side)
    side.begin("first", 9)
    for topic in TOPICS:
        side.shared_topic(topic)
    side.delete("first")
    return side


def hand_over(barnabas: Path, kafka: Path) -> None:
    replace_ids(kafka, {topic_id(kafka / f"{topic}-0"): topic_id(barnabas / f"{topic}-0") for topic in TOPICS})
    (kafka / ".kafka_cleanshutdown").unlink()  # so that the logs are checked, and the files beside them made again
    for path in kafka.glob("*-checkpoint"):
        path.unlink()
    for log in LOGS:
        for path in (kafka / log).iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in (barnabas / log).glob("*.log"):
            shutil.copy(path, kafka / log)


def test_apache_kafka_knows_the_groups(handed_over):
    assert known(handed_over.kafka) == handed_over.known_to_barnabas


def test_a_consumer_group_goes_on(handed_over):
    side = handed_over.kafka
    side.begin("modern", 9)
    answer = side.beat("A", 3, owned={"t": [0, 1]})
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 3, None)  # as it was
    assert side.described().groups[0].group_epoch == 3
    committed(side, 5, "done")
    assert side.beat("B", -1).member_epoch == -1
    while answer.assignment is None:
        answer = side.beat("A", answer.member_epoch)
        pause()
    assert [each.partitions for each in answer.assignment.topic_partitions] == [[0, 1, 2]]


def test_a_share_group_goes_on(handed_over):
    """What was accepted does not come again, and what was given back comes with its count."""
    side = handed_over.kafka
    side.begin("shared", 9)
    before = side.described_shares().groups[0]
    assert side.share("A", before.members[0].member_epoch).error_code == 0
    assert side.described_shares().groups[0].group_epoch == before.group_epoch
    assert share_fetched(side, 0) == [(2, 4, 2)]
    acknowledged(side, (2, 4, [ACCEPT]))
    written(side, 1)
    assert share_fetched(side, 2) == [(5, 5, 1)]


def test_a_streams_group_goes_on(handed_over):
    side = handed_over.kafka
    side.begin("flow", 9)
    answer = side.stream("A", 3)
    assert answer.error_code == 0
    assert side.streams_described().groups[0].group_epoch == 3
    side.stream("B", -1)
    while tasks(answer) != EVERY_TASK:
        answer = side.stream("A", answer.member_epoch)
        pause()
