"""A streams group: its members, its topology, its epochs, its target assignment.

Only replayed records change it, but for what it has not in its records: the configured topology, who asked for a
shutdown, and the epoch of its endpoints. A new coordinator finds that out again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Final

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.kind import Committer, GroupKind, Since
from barnabas.broker.group.records import CommittedOffset
from barnabas.broker.group.streams.configuration import ConfiguredTopology
from barnabas.broker.group.streams.member import StreamsMember
from barnabas.broker.group.streams.records import group_tombstones
from barnabas.broker.group.streams.tasks import NO_TASKS, TaskEpochs, Tasks, each_task
from barnabas.broker.group.streams.topology import Topology
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

STREAMS: Final = "streams"
_FIRST_COMMIT_VERSION: Final = 9  # of OffsetCommit, that can name a member epoch
_NOWHERE: Final[Collection[str]] = ()


class StreamsGroupState(Enum):
    """What a group's epochs say of it, with the name that answers carry. It is derived, never set."""

    EMPTY = "Empty"
    """No members."""

    NOT_READY = "NotReady"
    """The topology cannot be configured: topics are missing, or have the wrong number of partitions."""

    ASSIGNING = "Assigning"
    """The target assignment is older than the group: it will be computed with a member's next heartbeat."""

    RECONCILING = "Reconciling"
    """Some members have not reached the target yet."""

    STABLE = "Stable"
    """Every member has what the target gives it."""


class StreamsGroup:
    kind = GroupKind.STREAMS

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}  # with which the last target was computed
        self.assignment_epoch = 1
        self.assignment_timestamp = 0
        self.members: dict[str, StreamsMember] = {}
        self.target: dict[str, Tasks] = {}
        self.topology: Topology | None = None

        # Soft state.
        self.configured: ConfiguredTopology | None = None
        self.topics_changed = True  # topics that it needs may be others than its hash says
        self.shutdown_by: str | None = None
        self.endpoint_epoch = 0

        # Processes whose members have a task, or have not let go of it yet.
        self._active_in: dict[tuple[str, int], str] = {}
        self._copied_in: dict[tuple[str, int], set[tuple[str, str]]] = {}  # with the role in which they have it

    # --- changes ---

    def put(self, member: StreamsMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self.members[member.member_id] = member
        process = member.process_id
        for tasks in (member.assigned, member.revoking):
            for task in each_task(tasks.active):
                self._active_in[task] = process
            for role, copies in (("standby", tasks.standby), ("warmup", tasks.warmup)):
                for task in each_task(copies):
                    self._copied_in.setdefault(task, set()).add((role, process))

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member)
        if not self.members:
            self.shutdown_by = None

    def _release(self, member: StreamsMember) -> None:
        process = member.process_id
        for tasks in (member.assigned, member.revoking):
            for task in each_task(tasks.active):
                if self._active_in.get(task) == process:
                    del self._active_in[task]
            for role, copies in (("standby", tasks.standby), ("warmup", tasks.warmup)):
                for task in each_task(copies):
                    found = self._copied_in.get(task)
                    if found is not None:
                        found.discard((role, process))
                        if not found:
                            del self._copied_in[task]

    def ask_for_shutdown(self, member_id: str) -> None:
        """Everybody is told. The first who asked is named, until the group is empty."""
        if self.shutdown_by is None:
            self.shutdown_by = member_id

    # --- questions ---

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def active_in(self, subtopology: str, partition: int) -> str | None:
        return self._active_in.get((subtopology, partition))

    def copied_in(self, subtopology: str, partition: int) -> Collection[str]:
        found = self._copied_in.get((subtopology, partition))
        return _NOWHERE if found is None else [process for _, process in sorted(found)]

    def target_of(self, member_id: str) -> Tasks:
        return self.target.get(member_id, NO_TASKS)

    def needs(self, topics: Collection[str]) -> bool:
        """Whether one of these is read, or is a topic of its own."""
        return self.topology is not None and any(topic in topics for topic in self.topology.required_topics)

    # --- what all kinds of groups are asked ---

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return STREAMS

    @property
    def generation(self) -> int:
        return self.epoch

    def identities(self) -> Sequence[tuple[str, str | None]]:
        return [(member.member_id, member.instance_id) for member in self.members.values()]

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_forgettable(self) -> bool:
        return self.is_empty

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members)

    def heard_from(self, member_id: str, now_ms: int, elapsed_ms: int) -> None:
        """A commit does not keep a member of this protocol alive."""

    def objection_to_commit(
        self, by: Committer, offsets: Sequence[tuple[TopicPartition, CommittedOffset]]
    ) -> ErrorCode:
        """Why offsets may not be committed.

        As in a consumer group, whoever names no member may commit as long as the group is empty, or in a transaction. A
        member whose epoch has moved on may still commit for active tasks that it has had since.
        """
        if by.epoch < 0 and self.is_empty:
            return ErrorCode.NONE
        if by.in_transaction and by.epoch == -1 and not by.member_id and by.instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(by.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not by.in_transaction and by.version < _FIRST_COMMIT_VERSION:
            return ErrorCode.UNSUPPORTED_VERSION
        if by.epoch == member.epoch:
            return ErrorCode.NONE
        if by.epoch > member.epoch or not all(self._had(member, by.epoch, partition) for partition, _ in offsets):
            return ErrorCode.ILLEGAL_GENERATION if by.in_transaction else ErrorCode.STALE_MEMBER_EPOCH
        return ErrorCode.NONE

    def _had(self, member: StreamsMember, epoch: int, partition: TopicPartition) -> bool:
        """Whether the member had the task that reads a partition in this epoch, and has it still."""
        subtopology = None if self.topology is None else self.topology.readers.get(partition.topic)
        if subtopology is None:
            return False
        had_since = _since(member.assigned.active, subtopology, partition.partition)
        if had_since is None:
            had_since = _since(member.revoking.active, subtopology, partition.partition)
        return had_since is not None and epoch >= had_since

    def objection_to_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Why offsets may not be read. Whoever does not name a member may read them."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member.epoch == epoch else ErrorCode.STALE_MEMBER_EPOCH

    def objection_to_deleting_offsets(self) -> ErrorCode:
        return ErrorCode.NONE

    def read_topics(self) -> Collection[str]:
        return () if self.is_empty or self.topology is None else self.topology.readers.keys()

    def offsets_kept_since(self) -> Since:
        """While it has members, offsets of topics that it reads stay. Others expire some time after their commit."""
        topics = self.read_topics()
        return lambda topic, committed: None if topic in topics else committed.commit_timestamp


def _since(active: TaskEpochs, subtopology: str, partition: int) -> int | None:
    return active.get(subtopology, {}).get(partition)
