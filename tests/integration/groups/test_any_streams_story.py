"""Stories of streams groups made up from seeds: members join, lag behind, lie about their tasks, leave and come back.

BARNABAS_STORIES=200 BARNABAS_SEED=1 .venv/bin/pytest tests/integration/groups/test_any_streams_story.py
"""

import os
from random import Random

import pytest

from barnabas.client.requests.streams import subtopology, topology
from barnabas.protocol.messages.streams_group_heartbeat import RequestEndpoint
from tests.support.polling import pause

pytestmark = pytest.mark.java

STORIES = int(os.environ.get("BARNABAS_STORIES", "8"))
SEED = int(os.environ.get("BARNABAS_SEED", "1"))
STEPS = 40
NAMES = "ABCD"  # one more than the group may have


def topologies(side):
    """Their own topics exist already: when a coordinator hears of new ones is up to each broker."""
    t, u, log = side.source("t"), side.source("two", 2), side.source("any-log")
    return [
        topology(subtopology("0", t)),
        topology(subtopology("0", t, u), subtopology("1", u)),
        topology(subtopology("0", t, sinks=[log]), subtopology("1", repartition=[log])),
        topology(subtopology("0", t, changelogs=[log]), subtopology("1", u)),
        topology(subtopology("1", t, "nowhere")),
    ]


class Storyteller:
    """Makes up what members do. All that it knows is what it was told, so that both brokers hear the same story."""

    def __init__(self, side, random):
        self.side = side
        self.random = random
        self.all = topologies(side)
        self.topology = random.choice(self.all)
        self.epochs = {}
        self.tasks = {}
        self.moves = (
            [self.join] * 3 + [self.beat] * 8 + [self.lie] * 2 + [self.leave, self.commit, self.describe, self.strange]
        )

    def tell(self):
        for _ in range(STEPS):
            yield self.random.choice(self.moves)(self.random.choice(NAMES))
        yield self.describe("A")

    def join(self, who):
        told = self.random.choice(self.all) if self.random.random() < 0.1 else self.topology
        fields = {"process_id": self.random.choice("pq")}
        # While source topics are missing, Apache Kafka fails over an endpoint.
        if self.random.random() < 0.2 and self.topology is not self.all[-1]:
            fields["user_endpoint"] = RequestEndpoint(host=who, port=1)
        if self.random.random() < 0.2:
            fields["tags"] = [("zone", self.random.choice("xy"))]
        return self.heard(who, self.side.stream(who, 0, topology=told, **fields))

    def beat(self, who):
        """An honest heartbeat, with or without the member's tasks."""
        active, standby = self.tasks.get(who, ({}, {}))
        owned = {} if self.random.random() < 0.3 else {"active": active, "standby": standby}
        known = {"endpoint_information_epoch": self.random.choice((0, 1, 2))}
        return self.heard(who, self.side.stream(who, self.epochs.get(who, 1), **owned, **known))

    def lie(self, who):
        """About the epoch, or about the tasks."""
        epoch = max(1, self.epochs.get(who, 1) + self.random.choice((-2, -1, 0, 1)))
        partitions = sorted(self.random.sample(range(4), self.random.randrange(4)))
        return self.heard(who, self.side.stream(who, epoch, active={self.random.choice("019"): partitions}))

    def leave(self, who):
        self.epochs.pop(who, None)
        self.tasks.pop(who, None)
        return self.side.stream(who, -1, shutdown_application=self.random.random() < 0.2)

    def commit(self, who):
        epoch = max(0, self.epochs.get(who, 1) + self.random.choice((-1, 0, 0, 1)))
        partition = (self.random.choice("tu"), self.random.randrange(2), self.random.randrange(100))
        return self.side.commit(partition, member=who, generation=epoch)

    def describe(self, who):
        described = self.side.streams_described()
        for group in described.groups:
            group.topology = (
                None  # Apache Kafka tells the partitions that it has counted when it writes the next record
            )
        return [described, self.side.listed(), self.side.fetch()]

    def strange(self, who):
        return self.side.stream(who, self.random.choice((-2, -3, 1, 99)), topology=self.topology)

    def heard(self, who, answer):
        if not answer.error_code:
            self.epochs[who] = answer.member_epoch
            if answer.active_tasks is not None:
                self.tasks[who] = tuple(
                    {each.subtopology_id: each.partitions for each in tasks}
                    for tasks in (answer.active_tasks, answer.standby_tasks)
                )
        return answer


def with_copies(side):
    """Have the group keep copies of its state, and wait until the coordinator knows."""
    side.set_for_group("streams.num.standby.replicas", "1")
    stateful = topologies(side)[3]
    while True:
        for who in "AB":
            side.stream(who, 0, topology=stateful)
        members = side.streams_described().groups[0].members
        for who in "AB":
            side.stream(who, -1)
        side.delete()
        if any(member.target_assignment.standby_tasks for member in members):
            return
        pause()


@pytest.mark.parametrize("seed", range(SEED, SEED + STORIES))
def test_both_tell_the_same_story(brokers, seed):
    def scenario(side):
        side.begin(f"any-streams-{seed}", 9)
        if seed % 3 == 0:
            with_copies(side)
        yield from Storyteller(side, Random(seed)).tell()

    brokers.play(scenario)
