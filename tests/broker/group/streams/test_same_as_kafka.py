"""Topologies made up at random, against Apache Kafka 4.3.1's own class: tasks, partitions, missing topics, complaints.

BARNABAS_TOPOLOGIES=5000 BARNABAS_SEED=1 .venv/bin/pytest tests/broker/group/streams/test_same_as_kafka.py
"""

import json
import os
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.group.refused import Refused
from barnabas.broker.group.streams.configuration import configure
from barnabas.broker.group.streams.topology import topology_in
from barnabas.client.requests.streams import streams_group_heartbeat, subtopology, topic_info, topology
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Struct
from tests.support.apache_kafka import run_java

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parents[3] / "java" / "Topologies.java"
TOPOLOGIES = int(os.environ.get("BARNABAS_TOPOLOGIES", "800"))
SEED = int(os.environ.get("BARNABAS_SEED", "7"))


def made_up(random):
    """A topology, and the topics that exist."""
    topics = {f"t{number}": random.choice((1, 2, 3, 3, 3, 6)) for number in range(random.randint(1, 5))}
    repartition = [f"r{number}" for number in range(random.choice((0, 1, 2, 2, 3, 8)))]
    ids = random.sample(["0", "1", "2", "ü", "long-id-10", *map(str, range(3, 20))], random.choice((1, 1, 2, 3, 4, 9)))
    subtopologies = []
    for place, id in enumerate(ids):
        sources = random.sample(list(topics), random.randint(0 if random.random() < 0.1 else 1, min(3, len(topics))))
        if random.random() < 0.03:
            sources.append("nowhere")
        read = [
            topic_info(name, random.choice((0, 0, 0, 0, 2, 3, -1 if random.random() < 0.05 else 0)))
            for name in random.sample(repartition, random.randint(0, min(2, len(repartition))))
        ]
        if read and random.random() < 0.4:
            sources = []
        groups = []
        for _ in range(random.choice((0, 0, 1, 1, 2))):
            own = random.sample(range(len(sources)), random.randint(0, len(sources)))
            others = random.sample(range(len(read)), random.randint(0, len(read)))
            groups.append((own, others if random.random() > 0.02 else [len(read)]))
        subtopologies.append(
            subtopology(
                id,
                *sources,
                sinks=random.sample(repartition, random.randint(0, min(3, len(repartition)))),
                repartition=read,
                changelogs=[f"log-{place}-{number}" for number in range(random.choice((0, 0, 1, 2)))],
                copartitioned=groups,
            )
        )
    for name in (*repartition, *(f"log-{place}-0" for place in range(len(ids)))):
        if random.random() < 0.2:
            topics[name] = random.choice((1, 2, 3, 3, 6))
    return topology(*subtopologies), topics


def as_json(value):
    """As Kafka's converters read a message."""
    if isinstance(value, Struct):
        return {_camel(name): as_json(getattr(value, name)) for name in type(value).__slots__}
    return [as_json(each) for each in value] if isinstance(value, list) else value


def _camel(name):
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def ours(asked, topics):
    try:
        found = configure(topology_in(asked), topics.get)
    except Refused as refused:
        return {"error": refused.error}
    answer = {
        "tasks": {id: each.tasks for id, each in (found.subtopologies or {}).items()},
        "missing": [[topic.name, topic.partitions] for topic in found.missing],
    }
    if found.problem is not None:
        answer |= {"status": found.problem.code, "detail": found.problem.detail}
    return answer


def test_topologies_are_configured_as_kafka_does_it():
    made = [made_up(Random(seed)) for seed in range(SEED, SEED + TOPOLOGIES)]
    calls = [
        {"request": as_json(streams_group_heartbeat("g", "m", 0, topology=asked)), "topics": topics}
        for asked, topics in made
    ]
    done = run_java(PROGRAM, input="".join(json.dumps(call) + "\n" for call in calls), timeout=300)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(made)
    kinds = set()
    for seed, ((asked, topics), answer) in enumerate(zip(made, answers, strict=True), start=SEED):
        if "error" in answer:
            is_invalid = answer["error"] == "StreamsInvalidTopologyException"
            answer = {"error": ErrorCode.STREAMS_INVALID_TOPOLOGY if is_invalid else ErrorCode.UNKNOWN_SERVER_ERROR}
        assert ours(asked, topics) == answer, f"seed {seed}"
        kinds.add(answer.get("status", answer.get("error", "ready")))
    assert len(kinds) >= 6, kinds  # every outcome was among them
