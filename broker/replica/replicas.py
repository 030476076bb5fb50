"""All partitions that this broker has: found by name or id; created, led, followed and deleted as the controller
orders.

Orders (LeaderAndIsr, StopReplica) are checked at once and carried out in turns, those of one topic in their order. A
topic's new partitions can be found when all that the order names exist, and none before that.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

import structlog

from barnabas.broker.clock import Clock, Later
from barnabas.broker.config import BrokerConfig
from barnabas.broker.controller.images import TopicImage
from barnabas.broker.controller.orders import EPOCH_DURING_DELETE
from barnabas.broker.replica.disk_watch import DiskWatch
from barnabas.broker.replica.fetchers import Fetchers, OpenChannel
from barnabas.broker.replica.folder_deletions import FolderDeletions
from barnabas.broker.replica.hosted_topic import HostedTopic
from barnabas.broker.replica.isr_changes import AskController, IsrChanges
from barnabas.broker.replica.long_work import LongWork
from barnabas.broker.replica.moments import Moments
from barnabas.broker.replica.order_sequence import OrderSequence
from barnabas.broker.replica.partition import MAX_COST, NO_LEADER, Partition
from barnabas.broker.replica.replica_selector import Selector, selector
from barnabas.broker.replica.traffic import Traffic
from barnabas.broker.replica.turns import Job, Turns
from barnabas.broker.replica.worker import Worker
from barnabas.broker.set_aside import SetAside
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)
from barnabas.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from barnabas.protocol.schema import ZERO_UUID
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import LogFailure
from barnabas.storage.log_directory import LogDirectory

logger = structlog.get_logger()

# How soon to retry a log that could not be created, because the disk was full for example.
_RETRY_MS: Final = 1000
_NO_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1


class Cluster(Protocol):
    """What the whole cluster looks like, as far as this broker knows."""

    def topic(self, name: str) -> TopicImage | None: ...
    def topic_by_id(self, topic_id: bytes) -> TopicImage | None: ...


class RoleListener(Protocol):
    """An object with work to do for the partitions that this broker leads."""

    def on_leader(self, partition: Partition) -> None:
        """This broker leads the partition in a new epoch. It may have led it before."""

    def on_not_leader(self, partition: Partition) -> None:
        """This broker follows, or has no such partition any more."""


class Replicas:
    def __init__(
        self,
        config: BrokerConfig,
        cluster: Cluster,
        directory: LogDirectory,
        worker: Worker,
        set_aside: SetAside,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        at_end_of_turn: Callable[[], None],
        log_config_of: Callable[[str], LogConfig],
        is_deleted: Callable[[bytes], bool],
        on_deleted: Callable[[bytes], None],
        broker_epoch: Callable[[], int] = lambda: -1,
        is_alive: Callable[[int], bool] = lambda broker_id: True,
        open_channel: OpenChannel | None = None,
        ask_controller: AskController | None = None,
        on_disk: Callable[[], None] | None = None,
    ) -> None:
        """`at_end_of_turn` has `append_due` called once this turn's callbacks are done.

        `log_config_of` gives a topic's settings. `is_deleted` says whether the deletion of a topic with this id is
        noted; `on_deleted` is called when no start of this broker will find a folder of that topic again. `is_alive` is
        about other brokers. `open_channel` connects to a leader, for one fetcher alone; `ask_controller` is for changes
        of in-sync replicas. `on_disk` is called when the disk starts to fail or works again: the controller should send
        its orders again, and see from the answers who can lead.
        """
        self.worker = worker
        self.set_aside = set_aside
        self.clock = clock
        self.directory = directory
        self.broker_id: int = config.node_id
        self.traffic = Traffic()
        self.moments = Moments()
        self.order_sequence = OrderSequence()
        self.controller_epoch = 0  # of the last controller whose orders this broker accepted
        self._config = config
        self._cluster = cluster
        self._at_end_of_turn = at_end_of_turn
        self._log_config_of = log_config_of
        self._is_deleted = is_deleted
        self._on_deleted = on_deleted
        self._broker_epoch = broker_epoch
        self._hosted: dict[str, HostedTopic] = {}
        self._partitions: dict[str | bytes, list[Partition | None]] = {}  # the same lists, by name and by id
        self._due: list[Partition] = []
        self._turns = Turns(clock, loop, set_aside)
        self._failures: dict[str, str] = {}  # of topics that lack partitions: why those could not be created
        self._next_try = Later(clock, lambda: _RETRY_MS, self._try_failed)
        self.long_work = LongWork(worker)
        self._deletions = FolderDeletions(directory, worker, set_aside)
        self._role_listeners: list[RoleListener] = []
        # Partitions that this broker was told to delete, and in which leader epoch: it has them again in a later one.
        self._deleted_in: dict[tuple[bytes, int], int] = {}
        self._stopped = False
        self.is_alive = is_alive
        self._on_disk = on_disk
        self._disk = DiskWatch(directory, worker, clock, None if on_disk is None else self._disk_changed)
        self._fetchers = Fetchers(
            self.broker_id, broker_epoch, open_channel, config, directory, worker, self._disk, clock, loop
        )
        self._isr_changes = IsrChanges(
            self.broker_id, broker_epoch, self, lambda: self.max_lag_ms, ask_controller, is_alive, clock, loop
        )
        for name, log in list(directory.logs.items()):
            if log.topic_id is not None and is_deleted(log.topic_id.bytes):
                self._deletions.add(name)

    @property
    def max_lag_ms(self) -> int:
        lag: int = self._config.replica_lag_time_max_ms
        return lag

    @property
    def selector(self) -> Selector | None:
        """Chooses the replica that a consumer should read from (`replica.selector.class`)."""
        return selector(self._config.replica_selector_class)

    def start(self) -> None:
        """Watch from now on whether followers keep up."""
        self._isr_changes.start()

    # --- finding ---

    def find(self, topic: str | bytes, index: int) -> Partition | None:
        """A partition by its topic's name or id."""
        partitions = self._partitions.get(topic)
        return partitions[index] if partitions is not None and 0 <= index < len(partitions) else None

    def missing(self, topic: str | bytes, index: int) -> ErrorCode:
        """The error for a client that looks for a partition that this broker does not have."""
        by_name = isinstance(topic, str)
        image = self._cluster.topic(topic) if isinstance(topic, str) else self._cluster.topic_by_id(topic)
        if image is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name else ErrorCode.UNKNOWN_TOPIC_ID
        known = 0 <= index < len(image.partitions)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def of_topic(self, topic: str) -> Sequence[Partition]:
        """The partitions of a topic that this broker has."""
        return tuple(partition for partition in self._partitions.get(topic, ()) if partition is not None)

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has, on whatever brokers."""
        image = self._cluster.topic(topic)
        return 0 if image is None else len(image.partitions)

    def __iter__(self) -> Iterator[Partition]:
        for topic in self._hosted.values():
            for partition in topic.partitions:
                if partition is not None:
                    yield partition

    # --- appends ---

    def append_soon(self, partition: Partition) -> None:
        """Schedule what is queued for a partition to be written at the end of this turn of the loop, with the
        others'."""
        self._due.append(partition)
        self._at_end_of_turn()

    def in_turns(self, name: str, job: Job) -> None:
        self._turns.add(name, job)

    @property
    def has_due(self) -> bool:
        return bool(self._due)

    def append_due(self) -> bool:
        """Append what is due. False if that is too much for one turn of the loop: the rest is for the next."""
        cost = 0
        while self._due:  # the consequences of an append may include other appends
            due, self._due = self._due, []
            now_ms = self.clock.now_ms()
            for number, partition in enumerate(due, 1):
                try:
                    cost += partition.append_queued(now_ms)
                except Exception as error:  # this is unexpected; the other partitions continue
                    self.set_aside.add("append", str(partition.log.topic_partition), error)
                if cost >= MAX_COST:
                    self._due[:0] = due[number:]
                    return not self._due
        return True

    # --- following and being followed ---

    def follower_fetched(
        self, partition: Partition, broker_id: int, offset: int, log_start_offset: int, broker_epoch: int
    ) -> ErrorCode:
        """A follower of a partition that is led here has everything below `offset`."""
        error = partition.follower_fetched(broker_id, offset, log_start_offset, broker_epoch)
        if not error:
            self._isr_changes.expand(partition, broker_id)
        return error

    def is_on_disk(self, partition: Partition) -> None:
        self._fetchers.wake(partition)

    # --- a disk that fails ---

    def disk_failed(self, reason: str) -> None:
        self._disk.failed(reason)

    def _disk_changed(self) -> None:
        if not self._disk.is_failing:
            self._fetchers.wake_all()
        if self._on_disk is not None:
            self._on_disk()

    def _storage_error(self, partition: Partition, state: LeaderAndIsrPartitionState) -> ErrorCode:
        """Whether others should take over. What is in sync only here stays: it can still be read."""
        fails = self._disk.is_failing or partition.log.failed
        others = any(member != self.broker_id for member in state.isr)
        return ErrorCode.KAFKA_STORAGE_ERROR if fails and others else ErrorCode.NONE

    # --- orders ---

    def subscribe_roles(self, listener: RoleListener) -> None:
        """Tell `listener` about each new role, once a partition has it, in the order of leader epochs."""
        self._role_listeners.append(listener)

    def brokers_changed(self) -> None:
        """Brokers have come or gone. What waits for one that is gone no longer has to wait."""
        for partition in self:
            if partition.leadership is not None and partition.leadership.followers:
                partition.look_at_followers()

    async def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Carry out LeaderAndIsr. Returns when all logs exist, or could not be created."""
        answer = self.take_roles(request)
        if not answer.error_code:
            for topic in request.topic_states:
                await self._turns.done(topic.topic_name)
        return answer

    async def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Carry out StopReplica. Returns when no start will find what had to be deleted."""
        answer = self.drop_roles(request)
        if not answer.error_code:
            for topic in request.topic_states:
                await self._turns.done(topic.topic_name)
        return answer

    def check_sender(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Whether to accept an order: not from a deposed controller, and not for an earlier registration of this
        broker.

        A newer broker epoch is fine: the controller may learn about a registration first (KAFKA-9839).
        """
        if broker_epoch != _NO_EPOCH and broker_epoch < self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = controller_epoch
        return ErrorCode.NONE

    def take_roles(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Start to carry out LeaderAndIsr. The errors in the answer are complete when the topics are `made`."""
        error = self.check_sender(request.controller_epoch, request.broker_epoch)
        if error:
            return LeaderAndIsrResponse(error_code=error)
        self._fetchers.leaders_are_at(request.live_leaders)
        topics = [self._take_roles_of(topic) for topic in request.topic_states]
        errors = [error for topic in topics for error in topic.partition_errors]
        return LeaderAndIsrResponse(topics=topics, partition_errors=errors)

    def _take_roles_of(self, order: LeaderAndIsrTopicState) -> LeaderAndIsrTopicError:
        answer = LeaderAndIsrTopicError(topic_id=order.topic_id, partition_errors=[])
        topic = self._topic_for(order)
        accepted: list[tuple[LeaderAndIsrPartitionState, LeaderAndIsrPartitionError]] = []
        for state in order.partition_states:
            error = LeaderAndIsrPartitionError(topic_name=order.topic_name, partition_index=state.partition_index)
            answer.partition_errors.append(error)
            if topic is None:
                error.error_code = ErrorCode.INCONSISTENT_TOPIC_ID
                continue
            if state.leader_epoch <= self._deleted_in.get((topic.topic_id, state.partition_index), _NO_EPOCH):
                error.error_code = ErrorCode.STALE_CONTROLLER_EPOCH  # it was sent twice, and arrives late
                continue
            error.error_code = topic.objection(state, self.broker_id)
            if not error.error_code:
                topic.states[state.partition_index] = state
                accepted.append((state, error))
        if topic is not None and accepted:
            self._hosted[topic.name] = topic
            self._partitions[topic.name] = self._partitions[topic.topic_id] = topic.partitions
            self._turns.add(topic.name, self._carry_out(topic, accepted))
        return answer

    def _topic_for(self, order: LeaderAndIsrTopicState) -> HostedTopic | None:
        """The topic that the order is about. None if this broker has another one of that name whose deletion is not
        known."""
        topic = self._hosted.get(order.topic_name)
        if topic is None:
            return HostedTopic(order.topic_name, order.topic_id)
        if order.topic_id in (ZERO_UUID, topic.topic_id):
            return topic
        if not self._is_deleted(topic.topic_id):
            return None
        self._drop(topic, list(topic.states))
        return HostedTopic(order.topic_name, order.topic_id)

    def _carry_out(
        self, topic: HostedTopic, orders: Sequence[tuple[LeaderAndIsrPartitionState, LeaderAndIsrPartitionError]]
    ) -> Job:
        """Create a log for each partition, and give each its role. What is no longer ordered is left out."""
        made: list[Partition] = []
        config = self._log_config_of(topic.name)
        failure: str | None = None
        for state, error in orders:
            index = state.partition_index
            if topic.states.get(index) is not state:
                continue
            name = TopicPartition(topic.name, index)
            if failure is not None:
                error.error_code = ErrorCode.KAFKA_STORAGE_ERROR
                continue
            try:
                partition = topic.find(index)
                if partition is None:
                    partition = self._make(topic, name, config)
                    if partition is None:
                        error.error_code = ErrorCode.INCONSISTENT_TOPIC_ID
                        continue
                    self._give_role(partition, state)
                    made.append(partition)
                elif self._give_role(partition, state):
                    self._has_role(partition)
            except (LogFailure, OSError) as raised:
                failure = str(raised)
                error.error_code = ErrorCode.KAFKA_STORAGE_ERROR
                self._try_again(name, failure)
                continue
            except Exception as raised:
                error.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
                self.set_aside.add("partition", str(name), raised)
                continue
            self.set_aside.remove("partition", str(name))
            error.error_code = self._storage_error(partition, state)
            yield
            if self._stopped:
                return
        self._show(topic, made, config)
        if failure is None and not any(topic.is_undone(state) for state in topic.states.values()):
            self._failures.pop(topic.name, None)  # otherwise an earlier order has failed for another partition

    def _make(self, topic: HostedTopic, name: TopicPartition, config: LogConfig) -> Partition | None:
        """None if there is a log of another topic of this name, whose deletion is not known."""
        log = self.directory.logs.get(name)
        if log is not None and log.topic_id is not None and topic.topic_id not in (ZERO_UUID, log.topic_id.bytes):
            if not self._is_deleted(log.topic_id.bytes) or not self._deletions.add(name):
                return None
            self._forget_deleted(log.topic_id.bytes)
        log = self.directory.create_log(name, uuid.UUID(bytes=topic.topic_id), config, self.clock.now_ms())
        if log.config != config:
            log.config = config
        partition = Partition(self, topic.name, topic.topic_id, name.partition, log)
        partition.traffic = self.traffic.of(topic.name)
        return partition

    def _give_role(self, partition: Partition, state: LeaderAndIsrPartitionState) -> bool:
        """Returns whether the role is a new one."""
        before = partition.leader_epoch, partition.leader_id
        if state.leader == self.broker_id:
            partition.lead(state.leader_epoch, state.partition_epoch, state.replicas, state.isr)
        elif before != (state.leader_epoch, state.leader):
            partition.follow(state.leader, state.leader_epoch)
        return before != (partition.leader_epoch, partition.leader_id)

    def _has_role(self, partition: Partition) -> None:
        """A partition that can be found has a new role."""
        if partition.leadership is None and partition.leader_id != NO_LEADER:
            self._fetchers.follow(partition)
        else:
            self._fetchers.forget(partition)
        for listener in self._role_listeners:
            try:
                if partition.leadership is None:
                    listener.on_not_leader(partition)
                else:
                    listener.on_leader(partition)
            except Exception as error:  # others must be told nevertheless
                self.set_aside.add("role", str(partition.log.topic_partition), error)

    def _show(self, topic: HostedTopic, made: Sequence[Partition], config: LogConfig) -> None:
        """Let new partitions be found, except those that were dropped while the others were created."""
        shown = [partition for partition in made if partition.index in topic.states]
        for partition in shown:
            topic.put(partition)
        if shown and self._log_config_of(topic.name) != config:  # it has changed meanwhile
            self.reconfigure([topic.name])
        for partition in shown:
            self._has_role(partition)

    def _try_again(self, name: TopicPartition, reason: str) -> None:
        self.set_aside.add("partition", str(name), reason)
        if not self._failures:
            self._next_try.start()
        self._failures[name.topic] = reason

    def _try_failed(self) -> None:
        failed, self._failures = self._failures, {}
        for name in failed:
            topic = self._hosted.get(name)
            if topic is not None:
                undone = [state for state in topic.states.values() if topic.is_undone(state)]
                orders = [
                    (state, LeaderAndIsrPartitionError(partition_index=state.partition_index)) for state in undone
                ]
                self._turns.add(name, self._carry_out(topic, orders))

    # --- dropping ---

    def drop_roles(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Start to carry out StopReplica: partitions are gone at once, their folders when the topic is `made`."""
        error = self.check_sender(request.controller_epoch, request.broker_epoch)
        if error:
            return StopReplicaResponse(error_code=error)
        return StopReplicaResponse(
            partition_errors=[error for topic in request.topic_states for error in self._drop_roles_of(topic)]
        )

    def _drop_roles_of(self, order: StopReplicaTopicState) -> list[StopReplicaPartitionError]:
        topic = self._hosted.get(order.topic_name) or HostedTopic(order.topic_name, ZERO_UUID)
        doomed: list[int] = []
        errors = []
        for state in order.partition_states:
            index = state.partition_index
            error = StopReplicaPartitionError(topic_name=order.topic_name, partition_index=index)
            errors.append(error)
            if self._is_outdated(topic, index, state.leader_epoch):
                error.error_code = ErrorCode.FENCED_LEADER_EPOCH
            elif state.delete_partition:
                doomed.append(index)
                if topic.topic_id != ZERO_UUID:
                    is_for_ever = state.leader_epoch == EPOCH_DURING_DELETE
                    self._deleted_in[topic.topic_id, index] = _LAST_EPOCH if is_for_ever else state.leader_epoch
            else:
                partition = topic.find(index)
                if partition is not None:
                    partition.follow(NO_LEADER, partition.leader_epoch)
                    self._has_role(partition)
        if doomed:
            self._drop(topic, doomed)
        return errors

    def _is_outdated(self, topic: HostedTopic, index: int, leader_epoch: int) -> bool:
        """Whether a partition has been given another role since the order to stop it: the order arrives late, or twice.

        A deletion has no epoch that could be compared. But brokers are told that a topic is deleted before they are
        ordered to delete it: a topic that they still know is another one of that name.
        """
        if leader_epoch == EPOCH_DURING_DELETE:
            return topic.topic_id != ZERO_UUID and self._cluster.topic_by_id(topic.topic_id) is not None
        last = topic.states.get(index)
        return last is not None and leader_epoch != _NO_EPOCH and leader_epoch < last.leader_epoch

    def _drop(self, topic: HostedTopic, indexes: Iterable[int]) -> None:
        """Drop these partitions. Logs that are being created are left to the job that deletes them."""
        names = [TopicPartition(topic.name, index) for index in indexes]
        self._take_out(topic, names)
        self._turns.add(topic.name, self._delete(topic, names))

    def _take_out(self, topic: HostedTopic, names: Iterable[TopicPartition]) -> None:
        for name in names:
            partition = topic.take_out(name.partition)
            self.set_aside.remove("partition", str(name))
            if partition is not None:
                partition.delete()
                self._has_role(partition)
        if not topic.states:
            self.set_aside.remove("topic", topic.name)
            self._failures.pop(topic.name, None)
            if self._hosted.get(topic.name) is topic:
                del self._hosted[topic.name]
                self.traffic.forget(topic.name)
                del self._partitions[topic.name]
                self._partitions.pop(topic.topic_id, None)

    def _delete(self, topic: HostedTopic, names: Sequence[TopicPartition]) -> Job:
        all_gone = True
        found: dict[bytes, None] = {}
        for name in names:
            log = self.directory.logs.get(name)
            if log is not None:
                if log.topic_id is not None:
                    found[log.topic_id.bytes] = None
                all_gone = self._deletions.add(name) and all_gone
                yield
        if topic.topic_id == ZERO_UUID:  # this broker had no role for it
            for topic_id in found:
                self._forget_deleted(topic_id)
        elif all_gone and not topic.states:
            self._on_deleted(topic.topic_id)

    def _forget_deleted(self, topic_id: bytes) -> None:
        """Report that nothing is left of a topic, if that is so."""
        if not any(log.topic_id is not None and log.topic_id.bytes == topic_id for log in self.directory.logs.values()):
            self._on_deleted(topic_id)

    def set_aside_strays(self, is_known: Callable[[TopicPartition, bytes | None], bool]) -> None:
        """Do not use partitions that the cluster does not know. Folders are kept, except those of deleted topics.

        `is_known` is asked about each log, with the topic id in its folder. One may have a role: this broker had no
        session with the registry when its topic was deleted, or when the partition was moved elsewhere.
        """
        for topic in list(self._hosted.values()):
            indexes = [
                index for index in topic.states if not is_known(TopicPartition(topic.name, index), topic.topic_id)
            ]
            if indexes and self._is_deleted(topic.topic_id):
                self._drop(topic, indexes)
            elif indexes:
                self._take_out(topic, [TopicPartition(topic.name, index) for index in indexes])
        for name, log in list(self.directory.logs.items()):
            topic_id = None if log.topic_id is None else log.topic_id.bytes
            if self.find(*name) is not None or is_known(name, topic_id):
                continue
            if topic_id is None or not self._is_deleted(topic_id):
                logger.warning("stray partition set aside", partition=str(name))
                self.directory.set_aside(name)

    # --- settings, and the end ---

    def reconfigure(self, topics: Iterable[str] | None = None) -> None:
        """The settings of topics changed; without names, those of the broker, which all topics follow."""
        for name in list(self._hosted) if topics is None else topics:
            topic = self._hosted.get(name)
            if topic is not None:
                config = self._log_config_of(name)
                for partition in topic.partitions:
                    if partition is not None and partition.log.config is not config:
                        partition.log.config = config

    async def made(self, topic: str) -> None:
        """Wait until what was ordered for a topic is done: creating many logs takes more than one turn of the loop."""
        await self._turns.done(topic)

    def failure(self, topic: str) -> str | None:
        """Why a topic lacks partitions. They are created as soon as that is possible."""
        return self._failures.get(topic)

    @property
    def is_working(self) -> bool:
        """Whether appends are due, or logs are being created or removed."""
        return bool(self._due) or self._deletions.are_due or self._turns.are_due

    @property
    def isr_changes(self) -> tuple[int, int]:
        """How often the controller was asked to add a replica to an ISR, and to remove one."""
        return self._isr_changes.expands, self._isr_changes.shrinks

    @property
    def is_changing_isrs(self) -> bool:
        return self._isr_changes.are_under_way

    def stop(self) -> None:
        """Leave logs that have yet to be created, and folders that have yet to be deleted, to the next start."""
        self._stopped = True
        self._disk.stop()
        self._fetchers.close()
        self._isr_changes.stop()
        self._next_try.cancel()
        self._turns.finish()
        self._deletions.stop()
