"""The number that stands for a group's topics, against Apache Kafka 4.3.1's own class, for clusters made up at random.

BARNABAS_CLUSTERS=5000 BARNABAS_SEED=1 .venv/bin/pytest tests/broker/group/test_topic_hashes_as_kafka.py
"""

import json
import os
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.controller.cluster_image import ClusterImage
from barnabas.broker.controller.images import BrokerImage, PartitionImage, TopicImage
from barnabas.broker.controller.uuids import uuid_to_string
from barnabas.broker.group.topics import metadata_hash
from tests.support.apache_kafka import run_java

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parents[2] / "java" / "TopicHashes.java"
CLUSTERS = int(os.environ.get("BARNABAS_CLUSTERS", "100"))
SEED = int(os.environ.get("BARNABAS_SEED", "7"))
# Java orders the last two the other way round than their code points.
RACKS = ["a", "b", "ab", "rack-of-a-longer-name", "ü", "\N{FULLWIDTH LATIN SMALL LETTER A}", "\N{ROCKET}"]


def made_up(random):
    racks = random.sample(RACKS, random.randint(1, len(RACKS))) if random.random() < 0.7 else []
    cluster = ClusterImage()
    cluster.brokers = {
        index: BrokerImage(index, (), random.choice([None, *racks])) for index in range(random.randint(1, 6))
    }
    for number in range(random.choice((1, 1, 1, 2, 3, 20))):
        name = f"t{number}" + "-" * random.choice((0, 0, 1, 7, 40, 200))
        partitions = tuple(
            PartitionImage(
                index, tuple(random.sample(list(cluster.brokers), random.randint(1, min(3, len(cluster.brokers)))))
            )
            for index in range(random.choice((1, 2, 3, 6, 12, 50)))
        )
        cluster.put(name, TopicImage(name, random.randbytes(16), partitions, {}, 0))
    return cluster


def as_json(cluster):
    topics = {
        name: {"id": uuid_to_string(topic.topic_id), "replicas": [each.replica_nodes for each in topic.partitions]}
        for name, topic in cluster.topics.items()
    }
    return json.dumps({"racks": [broker.rack for broker in cluster.brokers.values()], "topics": topics})


def test_hashes_are_kafkas():
    random = Random(SEED)
    clusters = [made_up(random) for _ in range(CLUSTERS)]
    asked = "".join(as_json(cluster) + "\n" for cluster in clusters)
    answers = run_java(PROGRAM, input=asked, timeout=300).stdout.split()
    for number, (cluster, answer) in enumerate(zip(clusters, answers, strict=True)):
        assert metadata_hash(cluster.topics.keys(), cluster) == int(answer), f"cluster {number} of seed {SEED}"
