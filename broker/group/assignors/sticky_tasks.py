"""The `sticky` assignor of streams groups, equal to Apache Kafka's.

Active tasks go first to those who had them, then to those who had them as standby tasks, as long as nobody gets more
than a fair share; what is left goes to the least loaded process, and in it to the least loaded member. Standby tasks
are placed in the same manner, at most one copy of a task in a process. Where loads are equal, the order of Java's hash
tables and queues decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.broker.group.assignors.hash_order import in_hash_order, string_hash
from barnabas.broker.group.assignors.java_queue import JavaQueue

TaskIds = Mapping[str, frozenset[int]]


class TaskId(NamedTuple):
    subtopology: str
    partition: int


class StreamsMemberSpec(NamedTuple):
    process_id: str
    active: TaskIds  # its current target
    standby: TaskIds


class SubtopologySpec(NamedTuple):
    tasks: int
    is_stateful: bool  # only those have standby tasks


class GivenTasks(NamedTuple):
    active: dict[str, set[int]]
    standby: dict[str, set[int]]


def assign(
    members: Mapping[str, StreamsMemberSpec], subtopologies: Mapping[str, SubtopologySpec], standby_replicas: int
) -> dict[str, GivenTasks]:
    """What each member gets. The order of the members matters where hashes collide: see `hash_order`."""
    assignment = _Assignment(members, subtopologies, standby_replicas)
    assignment.assign_active(_tasks(subtopologies))
    if standby_replicas > 0:
        assignment.assign_standby(_tasks({id: each for id, each in subtopologies.items() if each.is_stateful}))
    return assignment.given


def _tasks(subtopologies: Mapping[str, SubtopologySpec]) -> list[TaskId]:
    return [TaskId(id, partition) for id, each in subtopologies.items() for partition in range(each.tasks)]


def java_order(text: str) -> bytes:
    """What sorts texts as Java compares strings: by their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def _by_partition(task: TaskId) -> tuple[int, bytes]:
    return task.partition, java_order(task.subtopology)


def _by_subtopology(task: TaskId) -> tuple[bytes, int]:
    return java_order(task.subtopology), task.partition


@dataclass(slots=True)
class _Process:
    """A process of the application, with the members (threads) in it."""

    counts: dict[str, int] = field(default_factory=dict)  # how many tasks each member has
    tasks: set[TaskId] = field(default_factory=set)
    total: int = 0
    # The members by their load, while tasks are only given to the least loaded.
    queue: JavaQueue[str] | None = None

    @property
    def load(self) -> float:
        return self.total / len(self.counts)

    def add(self, member_id: str, task: TaskId) -> int:
        """Returns how many tasks the member has now."""
        self.total += 1
        self.tasks.add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]

    def least_loaded(self) -> str:
        """The member that gets the next task. Hand it back with `added`."""
        if self.queue is None:
            self.queue = JavaQueue()
            for member_id in in_hash_order(self.counts, string_hash):
                self.queue.add(self.counts[member_id], member_id)
        return self.queue.poll()

    def added(self, member_id: str) -> None:
        assert self.queue is not None
        self.queue.add(self.counts[member_id], member_id)


class _Quota:
    """How many tasks a member may get by what it had before. It falls when members have got their share."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.per_member = self._share()

    def got(self, count: int) -> None:
        """A member has this many now."""
        if count == self.per_member:
            self._members -= 1
            self._tasks -= count
            self.per_member = self._share()

    def _share(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


class _Assignment:
    def __init__(
        self,
        members: Mapping[str, StreamsMemberSpec],
        subtopologies: Mapping[str, SubtopologySpec],
        standby_replicas: int,
    ) -> None:
        self.given = {member_id: GivenTasks({}, {}) for member_id in members}
        self._standby_replicas = standby_replicas
        active = sum(each.tasks for each in subtopologies.values())
        copies = standby_replicas * sum(each.tasks for each in subtopologies.values() if each.is_stateful)
        self._active_quota = _Quota(active, len(members))
        self._total_quota = _Quota(active + copies, len(members))
        self._process_of: dict[str, _Process] = {}
        self._had_active: dict[TaskId, str] = {}
        self._had_standby: dict[TaskId, list[str]] = {}
        by_id: dict[str, _Process] = {}
        for member_id in in_hash_order(members, string_hash):
            spec = members[member_id]
            process = by_id.setdefault(spec.process_id, _Process())
            process.counts[member_id] = 0
            self._process_of[member_id] = process
            for subtopology, partitions in spec.active.items():
                for partition in sorted(partitions):
                    self._had_active[TaskId(subtopology, partition)] = member_id
            for subtopology, partitions in spec.standby.items():
                for partition in sorted(partitions):
                    self._had_standby.setdefault(TaskId(subtopology, partition), []).append(member_id)
        capacity = 1 << (len(members) - 1).bit_length() if members else 1
        self._processes = [by_id[id] for id in in_hash_order(by_id, string_hash, capacity)]

    # --- active tasks ---

    def assign_active(self, tasks: list[TaskId]) -> None:
        tasks.sort(key=_by_partition)
        left = [task for task in tasks if not self._give_active(task, self._had_active.get(task))]
        left = [task for task in left if not self._give_active(task, self._least_loaded(self._had_standby.get(task)))]
        left.sort(key=_by_subtopology)
        queue = self._by_load()
        for task in left:
            process = queue.poll()
            count = self._give_to_process(process, task, is_active=True)
            self._active_quota.got(count)
            self._total_quota.got(count)
            queue.add(process.load, process)

    def _give_active(self, task: TaskId, member_id: str | None) -> bool:
        if member_id is None or self._process_of[member_id].counts[member_id] >= self._active_quota.per_member:
            return False
        count = self._give(member_id, task, is_active=True)
        self._active_quota.got(count)
        self._total_quota.got(count)
        return True

    # --- standby tasks ---

    def assign_standby(self, tasks: list[TaskId]) -> None:
        left: list[tuple[TaskId, int]] = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            for copy in range(self._standby_replicas):
                if not (
                    self._give_standby_to_active(task)
                    or self._give_standby(task, self._least_loaded(self._had_standby.get(task), task))
                ):
                    left.append((task, self._standby_replicas - copy))
                    break
        left.sort(key=lambda each: _by_subtopology(each[0]), reverse=True)
        queue = self._by_load()
        for task, copies in left:
            for _ in range(copies):
                if not self._give_standby_to_least_loaded(queue, task):
                    break  # there are not enough processes

    def _give_standby_to_active(self, task: TaskId) -> bool:
        """Who had it as an active task has its state."""
        member_id = self._had_active.get(task)
        if member_id is None or task in self._process_of[member_id].tasks:
            return False
        return self._give_standby(task, member_id)

    def _give_standby(self, task: TaskId, member_id: str | None) -> bool:
        if member_id is None or self._process_of[member_id].counts[member_id] >= self._total_quota.per_member:
            return False
        self._total_quota.got(self._give(member_id, task, is_active=False))
        return True

    def _give_standby_to_least_loaded(self, queue: JavaQueue[_Process], task: TaskId) -> bool:
        taken: list[_Process] = []
        found = False
        while len(queue) and not found:
            process = queue.poll()
            taken.append(process)
            if task not in process.tasks:
                self._total_quota.got(self._give_to_process(process, task, is_active=False))
                found = True
        for process in reversed(taken):
            queue.add(process.load, process)
        return found

    # --- both ---

    def _give(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        process = self._process_of[member_id]
        process.queue = None
        return self._note(process, member_id, task, is_active=is_active)

    def _give_to_process(self, process: _Process, task: TaskId, *, is_active: bool) -> int:
        member_id = process.least_loaded()
        count = self._note(process, member_id, task, is_active=is_active)
        process.added(member_id)
        return count

    def _note(self, process: _Process, member_id: str, task: TaskId, *, is_active: bool) -> int:
        given = self.given[member_id]
        (given.active if is_active else given.standby).setdefault(task.subtopology, set()).add(task.partition)
        return process.add(member_id, task)

    def _by_load(self) -> JavaQueue[_Process]:
        queue: JavaQueue[_Process] = JavaQueue()
        for process in self._processes:
            queue.add(process.load, process)
        return queue

    def _least_loaded(self, member_ids: Sequence[str] | None, task: TaskId | None = None) -> str | None:
        """Of those who had a standby task; with a task, none if the process of the first already has it.

        Another takes the first one's place only if both its process and itself have less to do.
        """
        if not member_ids:
            return None
        chosen = member_ids[0]
        first = self._process_of[chosen]
        process_load, member_load = first.load, first.counts[chosen]
        for member_id in member_ids[1:]:
            process = self._process_of[member_id]
            if process.load >= process_load or (task is not None and task in process.tasks):
                continue
            if process.counts[member_id] < member_load:
                process_load, member_load, chosen = process.load, process.counts[member_id], member_id
        return None if task is not None and task in first.tasks else chosen
