"""Groups for the tests of assignors: written out in a line, or made up at random and changed from round to round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from barnabas.broker.group.assignors import ASSIGNORS, simple
from barnabas.broker.group.assignors.spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
    PartitionAssignorError,
    SubscriptionType,
    TopicPartitions,
)

Topics = Mapping[bytes, TopicPartitions]

# Nobody subscribes to so many topics: a set that is made from another one has twice the slots then, before Java 19.
UNCERTAIN = 12


def topic_id(number: int) -> bytes:
    return number.to_bytes(16)


def topics(*counts: int) -> Topics:
    """Topics 0, 1, … with so many partitions."""
    return {topic_id(number): TopicPartitions(count, ()) for number, count in enumerate(counts)}


def member(*subscribed: int, instance: str | None = None, owned: Mapping[int, set[int]] | None = None) -> MemberSpec:
    """A member that subscribes to the topics with these numbers."""
    owns = {topic_id(number): frozenset(partitions) for number, partitions in (owned or {}).items()}
    return MemberSpec(frozenset(map(topic_id, subscribed)), instance, None, owns)


def group(**members: MemberSpec) -> GroupSpec:
    subscriptions = {each.topic_ids for each in members.values()}
    same = len(subscriptions) <= 1
    return GroupSpec(members, SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS)


def written(assignment: Assignment) -> dict[str, dict[int, tuple[int, ...]]]:
    """An assignment with the topics' numbers."""
    return {
        member_id: {int.from_bytes(id): tuple(sorted(partitions)) for id, partitions in by_topic.items()}
        for member_id, by_topic in assignment.items()
    }


def sizes(assignment: Assignment) -> dict[str, int]:
    return {member_id: sum(map(len, by_topic.values())) for member_id, by_topic in assignment.items()}


@dataclass(frozen=True)
class Round:
    assignor: str
    spec: GroupSpec
    topics: Topics
    result: Assignment | PartitionAssignorError
    assignable: Mapping[bytes, frozenset[int]] | None = None  # of share groups


def shared_rounds(random: Random, count: int) -> Iterator[Round]:
    """What the simple assignor makes of a share group. Sometimes partitions are not initialized yet, or no more."""
    made_up = RandomGroup(random, random.choice(list(SubscriptionType)))
    for _ in range(count):
        spec, topics = made_up.spec(), dict(made_up.topics)
        assignable = {
            id: frozenset(i for i in range(topic.count) if random.random() < 0.9)
            if random.random() < 0.2
            else frozenset(range(topic.count))
            for id, topic in topics.items()
            if random.random() < 0.95
        }
        result = simple.assign(spec, topics, assignable)
        yield Round("simple", spec, topics, result, assignable)
        made_up.adopt(result)
        made_up.change()


def rounds(random: Random, count: int) -> Iterator[Round]:
    """What each assignor makes of a group, one round after the other: it changes, and lives by one of the results."""
    made_up = RandomGroup(random, random.choice(list(SubscriptionType)))
    for _ in range(count):
        spec, topics = made_up.spec(), dict(made_up.topics)
        if random.random() < 0.02 and any(each.topic_ids for each in spec.members.values()):
            gone = random.choice(sorted({id for each in spec.members.values() for id in each.topic_ids}))
            topics = {id: partitions for id, partitions in topics.items() if id != gone}
        results = {name: outcome(name, spec, topics) for name in ASSIGNORS}
        yield from (Round(name, spec, topics, result) for name, result in results.items())
        chosen = results["range" if random.random() < 0.1 else "uniform"]
        if not isinstance(chosen, PartitionAssignorError):
            made_up.adopt(chosen)
        made_up.change()


def outcome(assignor: str, spec: GroupSpec, topics: Topics) -> Assignment | PartitionAssignorError:
    try:
        return ASSIGNORS[assignor](spec, topics)
    except PartitionAssignorError as error:
        return error


class RandomGroup:
    """A group whose members come, go, return under another id and change their minds, and whose topics grow and go."""

    def __init__(self, random: Random, kind: SubscriptionType) -> None:
        self._random = random
        self._kind = kind
        self.topics: dict[bytes, TopicPartitions] = {}
        self._members: dict[str, MemberSpec] = {}
        self._wanted: frozenset[bytes] = frozenset()  # by all members of a homogeneous group
        for _ in range(random.choice((1, 1, 2, 3, 5, 8, 20))):
            self._add_topic()
        self._wanted = self._some_topics()
        for _ in range(random.choice((1, 2, 3, 4, 6, 9, 14, 40))):
            self._join()

    def spec(self) -> GroupSpec:
        return GroupSpec(dict(self._members), self._kind)

    def adopt(self, assignment: Assignment) -> None:
        for member_id, by_topic in assignment.items():
            self._members[member_id] = self._members[member_id]._replace(owned=by_topic)

    def change(self) -> None:
        for _ in range(self._random.choice((0, 1, 1, 1, 2, 5))):
            self._random.choice(
                (self._join, self._join, self._leave, self._return, self._change_mind, self._grow, self._drop_topic)
            )()

    def _add_topic(self) -> None:
        count = self._random.choice((1, 2, 3, 4, 7, 12, 33, 100))
        racks = tuple(frozenset(self._random.sample(("a", "b", "c"), 2)) for _ in range(count))
        self.topics[self._random.randbytes(16)] = TopicPartitions(count, racks)

    def _some_topics(self) -> frozenset[bytes]:
        size = self._random.randint(0 if self._random.random() < 0.05 else min(1, len(self.topics)), len(self.topics))
        size -= size == UNCERTAIN
        return frozenset(self._random.sample(sorted(self.topics), size))

    def _join(self) -> None:
        subscribed = self._wanted if self._kind is SubscriptionType.HOMOGENEOUS else self._some_topics()
        instance = f"instance-{self._random.randrange(10**6)}" if self._random.random() < 0.3 else None
        rack = self._random.choice((None, "a", "b", "z"))
        self._members[self._new_id()] = MemberSpec(subscribed, instance, rack, {})

    def _leave(self) -> None:
        if len(self._members) > 1:
            del self._members[self._random.choice(list(self._members))]

    def _return(self) -> None:
        """A static member returns with another id, and owns what it owned."""
        static = [id for id, member in self._members.items() if member.instance_id]
        if static:
            self._members[self._new_id()] = self._members.pop(self._random.choice(static))

    def _change_mind(self) -> None:
        self._wanted = self._some_topics()
        everybody = list(self._members)
        for member_id in everybody if self._kind is SubscriptionType.HOMOGENEOUS else [self._random.choice(everybody)]:
            self._members[member_id] = self._members[member_id]._replace(topic_ids=self._wanted)

    def _grow(self) -> None:
        for id in self._random.sample(sorted(self.topics), min(1, len(self.topics))):
            grown = self.topics[id].count + self._random.choice((1, 2, 10))
            self.topics[id] = TopicPartitions(grown, ())

    def _drop_topic(self) -> None:
        """A topic is deleted. What members own of it they still own."""
        for gone in self._random.sample(sorted(self.topics), min(1, len(self.topics))):
            del self.topics[gone]
            self._wanted = _without(gone, self._wanted)
            for member_id, each in self._members.items():
                self._members[member_id] = each._replace(topic_ids=_without(gone, each.topic_ids))

    def _new_id(self) -> str:
        letters = "".join(self._random.choices("0123456789abcdef", k=22))
        return f"{letters}-ü𝄞" if self._random.random() < 0.05 else letters


def _without(gone: bytes, topic_ids: frozenset[bytes]) -> frozenset[bytes]:
    left = sorted(topic_ids - {gone})
    return frozenset(left[1:] if len(left) == UNCERTAIN else left)
