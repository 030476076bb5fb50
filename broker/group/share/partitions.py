"""Which partitions of a share group have a state at the share coordinator: a value, with each change as a new one.

A partition is assigned only when its state is initialized. That is asked for with the heartbeat of a member that reads
its topic, and asked for again if there is no answer for a while.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from barnabas.broker.group.topics import Topics

_UNKNOWN: Final = "<UNKNOWN>"  # what Kafka calls a topic that is gone


class NamedPartitions(NamedTuple):
    topic_name: str
    partitions: frozenset[int]


# By topic id.
Partitions = Mapping[bytes, frozenset[int]]


@dataclass(frozen=True, slots=True)
class StatePartitions:
    initializing: Mapping[bytes, NamedPartitions] = field(default_factory=dict)
    initialized: Mapping[bytes, NamedPartitions] = field(default_factory=dict)
    deleting: Mapping[bytes, str] = field(default_factory=dict)  # the topics' names

    def assignable(self) -> Partitions:
        return {topic_id: named.partitions for topic_id, named in self.initialized.items()}

    def missing(self, names: Iterable[str], topics: Topics, with_initializing: bool) -> dict[bytes, NamedPartitions]:
        """The partitions of these topics that have no state; without those of which it was asked for already."""
        missing: dict[bytes, NamedPartitions] = {}
        for name in sorted(names):
            image = topics.topic(name)
            if image is None:
                continue
            known = _partitions(self.initialized, image.topic_id)
            if with_initializing:
                known |= _partitions(self.initializing, image.topic_id)
            if len(known) < len(image.partitions):
                missing[image.topic_id] = NamedPartitions(name, frozenset(range(len(image.partitions))) - known)
        return missing

    def begin(self, asked: Mapping[bytes, NamedPartitions]) -> StatePartitions:
        """The state of these partitions is asked for. What was being deleted is wanted again."""
        left = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in asked}
        return replace(self, initializing=_joined(self.initializing, asked), deleting=left)

    def complete(self, done: Partitions, topics: Topics) -> StatePartitions:
        """These partitions have a state now. But not those whose deletion has begun since they were asked for."""
        named = {
            topic_id: NamedPartitions(topics.name_of(topic_id) or _UNKNOWN, wanted)
            for topic_id, partitions in done.items()
            if (wanted := partitions & _partitions(self.initializing, topic_id))
        }
        return replace(
            self,
            initializing=_without(self.initializing, done),
            initialized=_joined(self.initialized, named),
        )

    def give_up(self, failed: Partitions) -> StatePartitions:
        """These partitions have got no state. It is asked for again with a later heartbeat."""
        return replace(self, initializing=_without(self.initializing, failed))

    def begin_deletion(self, topic_ids: Collection[bytes], topics: Topics) -> StatePartitions:
        """The state of these topics is about to be deleted, which is no longer assigned."""
        gone = {topic_id: topics.name_of(topic_id) or _UNKNOWN for topic_id in topic_ids}
        return StatePartitions(
            {id: named for id, named in self.initializing.items() if id not in gone},
            {id: named for id, named in self.initialized.items() if id not in gone},
            {**self.deleting, **gone},
        )

    def finish_deletion(self, topic_ids: Collection[bytes]) -> StatePartitions:
        """The states of these topics are gone."""
        return replace(self, deleting={id: name for id, name in self.deleting.items() if id not in topic_ids})

    def without(self, topic_ids: Collection[bytes]) -> StatePartitions:
        """These topics are gone."""
        return StatePartitions(
            {id: named for id, named in self.initializing.items() if id not in topic_ids},
            {id: named for id, named in self.initialized.items() if id not in topic_ids},
            {id: name for id, name in self.deleting.items() if id not in topic_ids},
        )

    def all_partitions(self, topics: Topics) -> Partitions:
        """Everything that the share coordinator may know of, to delete it."""
        found = {
            topic_id: _partitions(self.initialized, topic_id) | _partitions(self.initializing, topic_id)
            for topic_id in dict.fromkeys([*self.initialized, *self.initializing])
        }
        for topic_id in self.deleting:
            image = topics.topic(topics.name_of(topic_id) or "")
            if image is not None:
                found[topic_id] = found.get(topic_id, frozenset()) | frozenset(range(len(image.partitions)))
        return found


NONE: Final = StatePartitions()


def _partitions(of: Mapping[bytes, NamedPartitions], topic_id: bytes) -> frozenset[int]:
    return of[topic_id].partitions if topic_id in of else frozenset()


def _joined(
    first: Mapping[bytes, NamedPartitions], second: Mapping[bytes, NamedPartitions]
) -> dict[bytes, NamedPartitions]:
    joined = dict(first)
    for topic_id, named in second.items():
        joined[topic_id] = NamedPartitions(named.topic_name, _partitions(first, topic_id) | named.partitions)
    return joined


def _without(of: Mapping[bytes, NamedPartitions], gone: Partitions) -> dict[bytes, NamedPartitions]:
    left = {
        topic_id: named._replace(partitions=named.partitions - gone.get(topic_id, frozenset()))
        for topic_id, named in of.items()
    }
    return {topic_id: named for topic_id, named in left.items() if named.partitions}
