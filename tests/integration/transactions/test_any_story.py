"""Random stories: producers, including zombies, that send anything in any order.

The seeds are always the same; BARNABAS_SEED is another one to begin with.
"""

import os
from dataclasses import dataclass, field
from random import Random

import pytest

from barnabas.client.requests import admin
from barnabas.protocol.api import ApiKey
from tests.support.transaction_side import READ_COMMITTED, READ_UNCOMMITTED
from tests.support.transaction_versions import LATEST_CLASSIC, NEWEST

pytestmark = pytest.mark.java

FIRST_SEED = int(os.environ.get("BARNABAS_SEED", "1"))
STORIES = 25
EARLIEST, LATEST = -2, -1
STEPS = 60
NAMES_ITS_EPOCH = 3  # the age from which InitProducerId has a producer's id and epoch
STEPS_TO_CHOOSE = (
    *("init", "go_on", "add", "add", "verify", "produce", "produce", "produce", "produce", "end", "end", "end"),
    *("commit_offsets", "add_offsets", "committed", "read", "read", "ends", "describe", "delete_records"),
)


@dataclass
class Actor:
    """A client with a transactional id that remembers every producer id and epoch that it ever had."""

    name: str
    age: int
    had: list[tuple[int, int]] = field(default_factory=lambda: [(-1, -1)])

    def got(self, answer):
        if not answer.error_code:
            self.had.append((answer.producer_id, answer.producer_epoch))
        return answer


class Told:
    """A story from a seed, told to one broker. Both are told the same as long as they answer the same."""

    def __init__(self, side, seed):
        self._side = side
        self._chance = Random(seed)
        ages = {name: self._chance.choice((0, 3, LATEST_CLASSIC, NEWEST, NEWEST)) for name in "xy"}
        names = self._chance.choices("xxy", k=self._chance.choice((1, 2, 3)))
        self._actors = [Actor(f"{side.id}-{name}", ages[name]) for name in names]

    def __iter__(self):
        for actor in self._actors:
            yield self._step("init", actor)
        for _ in range(STEPS):
            yield self._step(self._chance.choice(STEPS_TO_CHOOSE), self._chance.choice(self._actors))
        for partition in (0, 1):
            yield self._read_at(READ_COMMITTED, partition)

    def _step(self, name, actor):
        self._side.id, self._side.age = actor.name, actor.age
        had = actor.had[-1] if self._chance.random() < 0.8 else self._chance.choice(actor.had)
        self._side.producer_id, self._side.epoch = had
        answer = getattr(self, f"_{name}")(actor)
        for each in self._actors:
            self._side.settled(each.name)
        return answer

    def _partition(self):
        return self._chance.choice((0, 1))

    def _init(self, actor):
        return actor.got(self._side.ready())

    def _go_on(self, actor):
        producer_id, epoch = self._chance.choice(actor.had)
        if actor.age < NAMES_ITS_EPOCH:
            return None
        return actor.got(self._side.ready(producer_id=producer_id, epoch=epoch))

    def _add(self, actor):
        return self._side.add(*self._chance.sample((0, 1), k=self._chance.choice((1, 2))))

    def _verify(self, actor):
        return self._side.add(self._partition(), verify_only=True) if actor.age >= LATEST_CLASSIC else None

    def _produce(self, actor):
        sequence = self._chance.choice((None, None, None, None, None, 0, 1, 2))
        return self._side.produce(b"a", partition=self._partition(), sequence=sequence)

    def _end(self, actor):
        answer = self._side.end(self._chance.random() < 0.6)
        return actor.got(answer) if actor.age == NEWEST else answer

    def _commit_offsets(self, actor):
        return self._side.commit_offsets((self._partition(), self._chance.randrange(100)))

    def _add_offsets(self, actor):
        return self._side.add_offsets()

    def _committed(self, actor):
        return self._side.committed(require_stable=self._chance.random() < 0.5)

    def _read(self, actor):
        return self._read_at(self._chance.choice((READ_UNCOMMITTED, READ_COMMITTED)), self._partition())

    def _read_at(self, isolation_level, partition):
        begin = self._side.offset_of(EARLIEST, partition).topics[0].partitions[0].offset
        answer = self._side.read(isolation_level, begin, partition)
        for topic in answer.responses:
            for each in topic.partitions:
                # Apache Kafka also lists some that lie behind the records that it sends.
                each.aborted_transactions = each.aborted_transactions and [
                    aborted for aborted in each.aborted_transactions if aborted.first_offset < each.last_stable_offset
                ]
        return answer

    def _ends(self, actor):
        return self._side.offset_of(LATEST, self._partition(), self._chance.choice((READ_UNCOMMITTED, READ_COMMITTED)))

    def _describe(self, actor):
        return self._side.describe_transactions()

    def _delete_records(self, actor):
        everything = admin.delete_records((self._side.source, self._partition(), -1))
        return self._side.ask(ApiKey.DELETE_RECORDS, everything, 2) if self._chance.random() < 0.3 else None


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + STORIES))
def test_same_answers(brokers, seed):
    for side in (brokers.kafka, brokers.barnabas):
        side.begin(f"any-{seed}", NEWEST)
    brokers.play(lambda side: Told(side, seed))
