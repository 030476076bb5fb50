"""Stories of consumer groups made up from seeds: members join, read something else, lie about their epochs and their
partitions, leave for good or for a while, and come back under another id.

A member reads one topic at a time: which partitions of several topics it gets depends on their ids, which each broker
chooses for itself. And none changes its instance id: Apache Kafka remembers the first one even when the member is gone,
and then nobody can join with it.

BARNABAS_STORIES=200 BARNABAS_SEED=1 .venv/bin/pytest tests/integration/groups/test_any_consumer_story.py
"""

import os
from random import Random

import pytest

pytestmark = pytest.mark.java

STORIES = int(os.environ.get("BARNABAS_STORIES", "12"))
SEED = int(os.environ.get("BARNABAS_SEED", "1"))
STEPS = 50
NAMES = "ABCD"  # one more than the group may have
READ = [["t"], ["t"], ["t"], ["u"], ["t", "nowhere"], ["nowhere"], []]


class Storyteller:
    """Makes up what members do. All that it knows is what it was told, so that both brokers hear the same story."""

    def __init__(self, side, random):
        self.side = side
        self.random = random
        self.topics = {side.name(name, by_id=True): name for name in "tu"}
        self.epochs = {}
        self.owned = {}
        self.instances = {}
        self.moves = (
            [self.join] * 4
            + [self.beat] * 9
            + [self.lie] * 2
            + [self.read_something_else, self.leave, self.be_away, self.commit, self.describe, self.strange]
        )

    def tell(self):
        for _ in range(STEPS):
            yield self.random.choice(self.moves)(self.random.choice(NAMES))
        yield self.describe("A")

    def join(self, who):
        fields = {}
        if self.random.random() < 0.3:
            fields["server_assignor"] = self.random.choice(("range", "uniform", "nobody's"))
        if self.random.random() < 0.2:
            fields["rack_id"] = self.random.choice(("r", "s"))
        if self.random.random() < 0.4:
            self.instances[who] = "i" if who in "AC" else "j"
        self.owned.pop(who, None)
        return self.heard(who, self.say(who, 0, topics=self.random.choice(READ), **fields))

    def beat(self, who):
        """An honest heartbeat, with or without the member's partitions."""
        owned = None if self.random.random() < 0.3 else self.owned.get(who, {})
        return self.heard(who, self.say(who, self.epochs.get(who, 1), owned=owned))

    def lie(self, who):
        """About the epoch, or about the partitions."""
        epoch = max(1, self.epochs.get(who, 1) + self.random.choice((-2, -1, -1, 0, 0, 1)))
        owned = {self.random.choice("ttu"): sorted(self.random.sample(range(3), self.random.randrange(4)))}
        return self.heard(who, self.say(who, epoch, owned=self.random.choice((None, {}, owned))))

    def read_something_else(self, who):
        topics, owned = self.random.choice(READ), self.random.choice((None, self.owned.get(who, {})))
        return self.heard(who, self.say(who, self.epochs.get(who, 1), topics=topics, owned=owned))

    def leave(self, who):
        self.epochs.pop(who, None)
        self.owned.pop(who, None)
        return self.say(who, -1)

    def be_away(self, who):
        return self.say(who, -2)

    def commit(self, who):
        epoch = max(0, self.epochs.get(who, 1) + self.random.choice((-1, 0, 0, 1)))
        partition = (self.random.choice("tu"), self.random.randrange(3), self.random.randrange(100))
        return self.side.commit(partition, member=who, generation=epoch)

    def describe(self, who):
        return [self.side.described(), self.side.listed(), self.side.fetch()]

    def strange(self, who):
        fields = self.random.choice(({"rebalance_timeout_ms": 5}, {"rack_id": ""}, {"instance_id": "k"}, {}))
        instance = fields.pop("instance_id", self.instances.get(who))
        return self.side.beat(who, self.random.choice((-3, 0, 1, 99)), instance_id=instance, **fields)

    def say(self, who, epoch, **fields):
        return self.side.beat(who, epoch, instance_id=self.instances.get(who), **fields)

    def heard(self, who, answer):
        if not answer.error_code:
            self.epochs[who] = answer.member_epoch
            if answer.assignment is not None:
                found = answer.assignment.topic_partitions
                self.owned[who] = {self.topics[each.topic_id]: each.partitions for each in found}
        return answer


@pytest.mark.parametrize("seed", range(SEED, SEED + STORIES))
def test_both_tell_the_same_story(brokers, seed):
    def scenario(side):
        side.begin(f"any-consumers-{seed}", 9)
        for name in "tu":
            side.assignable(name)
        yield from Storyteller(side, Random(seed)).tell()

    brokers.play(scenario)
