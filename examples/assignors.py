"""Two custom assignors for kafka-python, to show that a group's members, not its broker, decide who reads what.

Random: every partition goes to a random member that subscribes to its topic.
Broadcast: every member gets every partition of its topics, for example for a cache that must see everything.

    KafkaConsumer("topic", group_id="g", partition_assignment_strategy=[BroadcastAssignor])

All members of a group must offer the assignor. Run this file against a broker to see both:

    python examples/assignors.py 127.0.0.1:9092
"""

from __future__ import annotations

import random
import sys
import threading
import time
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import NewTopic
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription


class _Assignor(AbstractPartitionAssignor):
    """The common part: subscriptions name topics, assignments list partitions."""

    version = 0

    @classmethod
    def metadata(cls, topics):
        return ConsumerProtocolSubscription(version=cls.version, topics=sorted(topics), user_data=b"")

    @classmethod
    def on_assignment(cls, assignment, generation=None):
        pass

    @classmethod
    def assign(cls, cluster, members):
        """Assign each partition of each topic to the members that `choose` picks from its subscribers."""
        given = {member.member_id: defaultdict(list) for member in members}
        for topic in sorted({topic for member in members for topic in member.metadata.topics}):
            subscribers = [member.member_id for member in members if topic in member.metadata.topics]
            for partition in sorted(cluster.partitions_for_topic(topic) or ()):
                for member_id in cls.choose(subscribers):
                    given[member_id][topic].append(partition)
        return {
            member_id: ConsumerProtocolAssignment(
                version=cls.version, assigned_partitions=list(topics.items()), user_data=b""
            )
            for member_id, topics in given.items()
        }


class RandomAssignor(_Assignor):
    name = "random"

    @staticmethod
    def choose(subscribers):
        return [random.choice(subscribers)]


class BroadcastAssignor(_Assignor):
    name = "broadcast"

    @staticmethod
    def choose(subscribers):
        return subscribers


def _read(consumer: KafkaConsumer, is_over: threading.Event) -> None:
    """A consumer takes part in its group's rebalances while it is polled."""
    while not is_over.is_set():
        consumer.poll(500)
    consumer.close()


def _assignments(admin: KafkaAdminClient, group: str, members: int) -> list[list[int]]:
    """Poll until this many members share the topic. Return the partitions of each."""
    while True:
        described = admin.describe_groups([group])[group]
        if described["group_state"] == "Stable" and len(described["members"]) == members:
            shares = [member["member_assignment"]["assigned_partitions"] for member in described["members"]]
            return [[number for topic in share for number in topic["partitions"]] for share in shares]
        time.sleep(0.1)


def main(bootstrap: str) -> None:
    topic = f"assignors-{uuid.uuid4().hex[:8]}"
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, num_partitions=6, replication_factor=1)])
    for assignor in (RandomAssignor, BroadcastAssignor):
        group = f"{topic}-{assignor.name}"
        is_over = threading.Event()
        with ThreadPoolExecutor() as threads:
            for _ in range(2):
                consumer = KafkaConsumer(
                    topic,
                    bootstrap_servers=bootstrap,
                    group_id=group,
                    partition_assignment_strategy=[assignor],
                    heartbeat_interval_ms=300,  # how soon it notices a new member
                )
                consumer.topics()  # the group leader must know the topic's partitions
                threads.submit(_read, consumer, is_over)
            for number, partitions in enumerate(_assignments(admin, group, members=2)):
                print(f"{assignor.name:9}  member {number}: {partitions}")
            is_over.set()
    admin.delete_topics([topic])
    admin.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092")
