"""Tasks: a subtopology and a partition. A member processes its active tasks, and keeps copies of its standby tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

# By subtopology: the partitions.
TaskIds = Mapping[str, frozenset[int]]
# By subtopology: the partitions, and for each the epoch in which the member got it.
TaskEpochs = Mapping[str, Mapping[int, int]]


class Tasks(NamedTuple):
    """What a target gives a member, or what a member says it has. Apache Kafka 4.3 gives nobody warm-up tasks."""

    active: TaskIds
    standby: TaskIds
    warmup: TaskIds

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


class AssignedTasks(NamedTuple):
    """What a member has. It may commit with an older epoch for active tasks that it has had since."""

    active: TaskEpochs
    standby: TaskIds
    warmup: TaskIds

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def overlaps(self, tasks: Tasks) -> bool:
        """Whether any of these is among them, in the same role."""
        return any(
            index in mine.get(subtopology, ())
            for mine, theirs in (
                (self.active, tasks.active),
                (self.standby, tasks.standby),
                (self.warmup, tasks.warmup),
            )
            for subtopology, indexes in theirs.items()
            for index in indexes
        )

    def contains(self, tasks: Tasks) -> bool:
        """Whether all of these are among them, in the same role."""
        return all(
            subtopology in mine and all(index in mine[subtopology] for index in indexes)
            for mine, theirs in (
                (self.active, tasks.active),
                (self.standby, tasks.standby),
                (self.warmup, tasks.warmup),
            )
            for subtopology, indexes in theirs.items()
        )


NO_TASKS: Final = Tasks({}, {}, {})
NOTHING_ASSIGNED: Final = AssignedTasks({}, {}, {})


def each_task(tasks: Mapping[str, frozenset[int]] | TaskEpochs) -> Iterator[tuple[str, int]]:
    for subtopology, indexes in tasks.items():
        for index in sorted(indexes):
            yield subtopology, index
