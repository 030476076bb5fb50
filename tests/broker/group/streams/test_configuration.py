"""Topologies, configured for the topics that there are."""

import time

import pytest

from barnabas.broker.group.refused import Refused
from barnabas.broker.group.streams.configuration import configure
from barnabas.broker.group.streams.statuses import StatusCode
from barnabas.broker.group.streams.topology import topology_in
from barnabas.client.requests.streams import subtopology, topic_info, topology
from barnabas.protocol.errors import ErrorCode


def configured(*subtopologies, **topics):
    return configure(topology_in(topology(*subtopologies)), topics.get)


def counts(result):
    return {topic.name: topic.partitions for topic in result.missing}


def test_a_changelog_topic_has_a_partition_for_each_task():
    result = configured(subtopology("0", "t", "u", changelogs=["log"]), t=2, u=5)
    assert result.subtopologies["0"].tasks == 5
    assert counts(result) == {"log": 5}
    assert result.problem.code is StatusCode.MISSING_INTERNAL_TOPICS


def test_a_repartition_topic_is_as_wide_as_what_is_written_to_it():
    result = configured(
        subtopology("2", repartition=["b"], changelogs=["log"]),
        subtopology("1", repartition=["a"], sinks=["b"]),
        subtopology("0", "t", sinks=["a"]),
        t=7,
    )
    assert counts(result) == {"a": 7, "b": 7, "log": 7}


def test_a_repartition_topic_is_as_wide_as_what_is_read_with_it():
    joined = subtopology("1", "u", repartition=["a"], copartitioned=[([0], [0])])
    result = configured(subtopology("0", "t", sinks=["a"]), joined, t=7, u=3)
    assert counts(result) == {"a": 3}
    assert result.subtopologies["1"].tasks == 3


def test_everything_is_there():
    result = configured(subtopology("0", "t", changelogs=["log"]), t=3, log=3)
    assert result.is_ready
    assert result.subtopologies["0"].is_stateful


def test_a_topic_of_its_own_with_another_number_of_partitions():
    result = configured(subtopology("0", "t", changelogs=["log"]), t=3, log=4)
    assert result.problem.code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert result.subtopologies is None


@pytest.mark.parametrize(
    "wrong",
    [
        [subtopology("0")],
        [subtopology("0", repartition=["a"])],
        [subtopology("0", repartition=["a"], sinks=["a"])],
    ],
)
def test_a_topology_that_contradicts_itself(wrong):
    with pytest.raises(Refused) as refused:
        configured(*wrong)
    assert refused.value.error == ErrorCode.STREAMS_INVALID_TOPOLOGY


@pytest.mark.parametrize(
    "wrong",
    [
        [subtopology("0", "t", copartitioned=[([1], [])])],
        [subtopology("0", "t", sinks=["a"]), subtopology("1", repartition=[topic_info("a", -1)])],
        [subtopology("0", "t", changelogs=["log", "log"])],
    ],
)
def test_what_kafka_did_not_expect(wrong):
    with pytest.raises(Refused) as refused:
        configured(*wrong, t=1)
    assert refused.value.error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_long_chain_of_repartition_topics_does_not_take_long():
    """Kafka goes over all of them again for each that it has counted."""
    length = 10_000
    chain = [subtopology(f"{index:06}", repartition=[f"r{index}"], sinks=[f"r{index + 1}"]) for index in range(length)]
    chain.append(subtopology("first", "t", sinks=["r0"]))
    chain.append(subtopology("last", repartition=[f"r{length}"]))
    began = time.process_time()
    result = configured(*reversed(chain), t=3)
    assert len(result.missing) == length + 1
    assert time.process_time() - began < 5
