"""Brokers' replicas with real logs, and a controller that a test scripts: no sockets, and time stands still.

Requests between brokers are encoded, decoded and handled as on a real connection, by the real handlers. They arrive in
the same turn of the loop; a test decides which brokers reach each other.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.config import BrokerConfig, TopicConfig
from barnabas.broker.config.log_config import log_config
from barnabas.broker.controller.images import BrokerImage, TopicImage
from barnabas.broker.handlers import fetch, list_offsets
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.replica.fetch_sessions import FetchSessions
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.replicas import Replicas
from barnabas.broker.security.authorizer import EVERYTHING
from barnabas.broker.set_aside import SetAside
from barnabas.protocol.api import ApiKey
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionResponse,
    TopicResponse,
)
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from barnabas.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from barnabas.protocol.schema import Message
from barnabas.storage.errors import LogFailure
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.segment import FileSlice
from barnabas.storage.write import AppendResult
from tests.storage.support import batch, read_all, values_of
from tests.support.compiled import IS_COMPILED
from tests.support.file_systems import WatchedFileSystem
from tests.support.manual_clock import ManualClock

if IS_COMPILED:
    pytest.skip("compiled, a fake request cannot stand in for a real one", allow_module_level=True)

TOPIC_ID = uuid.UUID(int=7).bytes


class InlineWorker:
    """Does everything at once."""

    def run(self, work: Callable[[], Any], done: Callable[[Any], None] | None = None) -> None:
        outcome: Any
        try:
            outcome = work()
        except Exception as error:
            outcome = error
        if done is not None:
            done(outcome)

    async def call(self, work: Callable[[], Any]) -> Any:
        return work()


class Told:
    """What a broker was told about the rest of the cluster."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerImage] = {}
        self.topics: dict[str | bytes, TopicImage] = {}

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        return self.topics.get(topic_id)


class Node:
    """The replicas of one broker, with as much of a broker around them as handlers need."""

    def __init__(
        self, broker_id: int, folder: Path, clock: ManualClock, cluster: Cluster | None = None, **settings: object
    ) -> None:
        self.broker_id = broker_id
        self.clock = clock
        self.in_cluster = cluster
        self.broker_epoch = 1
        self.deleted: set[bytes] = set()  # ids of topics whose deletion is noted
        self.forgotten: list[bytes] = []
        self.topic_configs: dict[str, str] = {}
        names = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = BrokerConfig({"node.id": str(broker_id), "log.dirs": str(folder), **names})
        self.cluster = Told()
        self.folder = folder
        self.open()

    def open(self) -> None:
        self.is_up = True
        self.set_aside = SetAside()
        self.worker = InlineWorker()
        self.fetch_sessions = FetchSessions(lambda: 100, count(1).__next__)
        self.disk = WatchedFileSystem()
        self.disk_events = 0
        self.directory = LogDirectory(
            str(self.folder),
            node_id=self.broker_id,
            config_of=self._log_config_of,
            now_ms=self.clock.now_ms(),
            file_system=self.disk,
        )
        cluster = self.in_cluster
        self.replicas = Replicas(
            self.config,
            self.cluster,
            self.directory,
            self.worker,  # type: ignore[arg-type]
            self.set_aside,
            self.clock,
            asyncio.get_running_loop(),
            at_end_of_turn=lambda: None,
            log_config_of=self._log_config_of,
            is_deleted=self.deleted.__contains__,
            on_deleted=self.forgotten.append,
            broker_epoch=lambda: self.broker_epoch,
            is_alive=(lambda _: True) if cluster is None else (lambda broker_id: cluster.nodes[broker_id].is_up),
            open_channel=None if cluster is None else (lambda _, port: FakeChannel(cluster, self, port)),  # type: ignore[arg-type,return-value]
            ask_controller=None if cluster is None else (lambda *asked: cluster.controller.ask(self, *asked)),
            on_disk=self._count_disk_event,
        )
        self.replicas.start()

    def _count_disk_event(self) -> None:
        self.disk_events += 1

    def _log_config_of(self, topic: str) -> Any:
        return log_config(TopicConfig.stored(self.topic_configs, self.config))

    def partition(self, topic: str = "t", index: int = 0) -> Partition:
        found = self.replicas.find(topic, index)
        if found is None:
            raise LookupError(f"{topic}-{index}")
        return found

    def append(self, *values: bytes, acks: Acks | None = None) -> int:
        """Append a batch as a client would, and return its offset. `acks` records when it is committed."""
        result = self.partition().append_now(memoryview(bytearray(batch(*values))), self.clock.now_ms())
        if not isinstance(result, AppendResult):
            raise result
        if acks is not None:
            self.partition().when_committed(result.last_offset + 1, acks.committed(values))
        return result.base_offset

    @property
    def values(self) -> list[bytes]:
        """Everything in its log."""
        return values_of(read_all(self.partition().log))

    @property
    def committed(self) -> list[bytes]:
        """What consumers can read here."""
        log = self.partition().log
        return values_of(read_all(log, upper_bound=log.high_watermark))

    async def order(self, *states: LeaderAndIsrPartitionState, **fields: Any) -> LeaderAndIsrResponse:
        return await self.replicas.become_leader_or_follower(leader_and_isr(*states, **fields))

    async def stop_replicas(self, *states: StopReplicaPartitionState, **fields: Any) -> StopReplicaResponse:
        return await self.replicas.stop_replicas(stop_replica(*states, **fields))

    async def ask(self, key: ApiKey, message: Message, version: int) -> Message:
        """What this broker answers to a request."""
        handle = {ApiKey.FETCH: fetch.handle, ApiKey.LIST_OFFSETS: list_offsets.handle}[key]
        request = FakeRequest(version)
        found: Any = handle(self, request, decode(type(message), version, encode(message, version)))  # type: ignore[arg-type,operator]
        if found is None:
            try:
                found = await request.answered
            except asyncio.CancelledError:
                if request.on_abandon is not None:
                    request.on_abandon()
                raise
        elif asyncio.iscoroutine(found):
            found = await found
        if isinstance(found, FetchResponse):
            _load_records(found)
        return decode(type(found), version, encode(found, version))

    def close(self, clean: bool = False) -> None:
        """Stop at once. What was written stays on disk, as when a process is killed."""
        self.is_up = False
        self.replicas.stop()
        if clean:
            self.directory.close()
        else:
            self.directory.abandon()


class FakeRequest:
    def __init__(self, version: int) -> None:
        self.version = version
        self.connection = SimpleNamespace(is_from_broker=True, access=None)
        self.access = EVERYTHING
        self.on_abandon: Callable[[], None] | None = None
        self.answered: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

    def answer(self, message: Message) -> None:
        if not self.answered.done():
            self.answered.set_result(message)


def _load_records(response: FetchResponse) -> None:
    for topic in response.responses:
        for partition in topic.partitions:
            if isinstance(partition.records, FileSlice):
                part = partition.records
                partition.records = os.pread(part.handle.fileno(), part.size, part.position)


class FakeChannel:
    """From one broker to another, as long as the cluster lets them reach each other."""

    def __init__(self, cluster: Cluster, own: Node, broker_id: int) -> None:
        self.host, self.port = "", broker_id
        self._cluster = cluster
        self._own = own
        self._other = cluster.nodes[broker_id]
        self.closed = False

    async def request(
        self, key: ApiKey, message: Message, version: int, answer: type[Message], timeout_ms: int
    ) -> Message:
        self._check()
        asking = asyncio.ensure_future(self._other.ask(key, message, version))
        lost = self._cluster.lost(self._own.broker_id, self._other.broker_id)
        try:
            await asyncio.wait([asking, lost], return_when=asyncio.FIRST_COMPLETED)
            await self._cluster.answers_go()
            self._check()
            return asking.result()
        finally:
            asking.cancel()

    def _check(self) -> None:
        reach = self._cluster.reach(self._own.broker_id, self._other.broker_id)
        if self.closed or not self._other.is_up or not reach:
            raise ChannelError("not reached")

    def close(self) -> None:
        self.closed = True


class Acks:
    """What clients were told about what they wrote with acks=all."""

    def __init__(self) -> None:
        self.acknowledged: list[bytes] = []
        self.failed: list[bytes] = []

    def committed(self, values: Sequence[bytes]) -> Callable[[LogFailure | None], None]:
        return lambda failure: (self.acknowledged if failure is None else self.failed).extend(values)


class Controller:
    """Decides what a test tells it to, and about ISRs as a real one does."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.leader = self.leader_epoch = -1
        self.partition_epoch = 0
        self.isr: tuple[int, ...] = ()
        self.asked: list[tuple[int, ...]] = []
        self.errors: list[ErrorCode] = []  # for the next changes of ISRs
        self.is_reachable = True

    async def elect(self, leader: int, isr: Sequence[int] | None = None, tell: Sequence[int] | None = None) -> None:
        """Make a broker lead in a new epoch, and tell all brokers that are up, or those in `tell`."""
        self.leader = leader
        self.leader_epoch += 1
        self.partition_epoch += 1
        self.isr = tuple(sorted(self._cluster.nodes)) if isr is None else tuple(isr)
        await self.tell(tell)

    async def tell(self, whom: Sequence[int] | None = None) -> None:
        for broker_id, node in self._cluster.nodes.items():
            if node.is_up and (whom is None or broker_id in whom):
                told = state(
                    leader=self.leader,
                    leader_epoch=self.leader_epoch,
                    replicas=tuple(sorted(self._cluster.nodes)),
                    isr=self.isr,
                    partition_epoch=self.partition_epoch,
                )
                answer = await node.order(told, leaders=tuple(self._cluster.nodes))
                if answer.error_code or answer.topics[0].partition_errors[0].error_code:
                    raise RuntimeError(answer)
        await self._cluster.settle()

    async def ask(
        self, node: Node, key: ApiKey, request: AlterPartitionRequest, version: int, answer: type[Any], timeout_ms: int
    ) -> AlterPartitionResponse:
        if not self.is_reachable:
            raise ChannelError("not reached")
        (topic,) = request.topics
        (wanted,) = topic.partitions
        isr = tuple(each.broker_id for each in wanted.new_isr_with_epochs)
        self.asked.append(isr)
        error = self.errors.pop(0) if self.errors else ErrorCode.NONE
        if not error and wanted.leader_epoch != self.leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        if not error and wanted.partition_epoch != self.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        if not error:
            self.isr = isr
            self.partition_epoch += 1
        found = PartitionResponse(
            partition_index=wanted.partition_index,
            error_code=error,
            leader_id=self.leader,
            leader_epoch=self.leader_epoch,
            isr=list(self.isr),
            partition_epoch=self.partition_epoch,
        )
        topics = [TopicResponse(topic_id=topic.topic_id, partitions=[found])]
        return AlterPartitionResponse(topics=topics)


class Cluster:
    """Brokers 1, 2, …, with one partition t-0 that all of them have."""

    def __init__(self, folder: Path, brokers: int = 3, **settings: object) -> None:
        self.clock = ManualClock()
        self.nodes: dict[int, Node] = {}
        self.controller = Controller(self)
        self.hold_answers = False  # whether answers stay on their way
        self._held: list[asyncio.Future[None]] = []
        self._cut: set[frozenset[int]] = set()
        self._lost: list[tuple[frozenset[int], asyncio.Future[None]]] = []
        self._settings = settings
        for broker_id in range(1, brokers + 1):
            self.nodes[broker_id] = Node(broker_id, folder / str(broker_id), self.clock, self, **settings)

    def __getitem__(self, broker_id: int) -> Node:
        return self.nodes[broker_id]

    def reach(self, one: int, other: int) -> bool:
        return frozenset((one, other)) not in self._cut

    def lost(self, one: int, other: int) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lost.append((frozenset((one, other)), future))
        return future

    async def answers_go(self) -> None:
        if self.hold_answers:
            self._held.append(asyncio.get_running_loop().create_future())
            await self._held[-1]

    def let_answers_go(self) -> None:
        self.hold_answers = False
        for held in self._held:
            held.set_result(None)
        self._held = []

    async def cut(self, one: int, other: int) -> None:
        self._cut.add(frozenset((one, other)))
        await self._lose(lambda pair: pair == frozenset((one, other)))

    async def mend(self) -> None:
        self._cut.clear()
        await self.settle(backoff=True)

    async def kill(self, broker_id: int) -> None:
        self.nodes[broker_id].close()
        await self._lose(lambda pair: broker_id in pair)

    async def restart(self, broker_id: int) -> None:
        """It knows nothing until the controller tells it."""
        self.nodes[broker_id].broker_epoch += 1
        self.nodes[broker_id].open()
        await self.settle()

    async def _lose(self, which: Callable[[frozenset[int]], bool]) -> None:
        for pair, future in self._lost:
            if which(pair) and not future.done():
                future.set_result(None)
        self._lost = [(pair, future) for pair, future in self._lost if not future.done()]
        await self.settle()

    async def settle(self, backoff: bool = False) -> None:
        """Let everything happen that is due now; with `backoff`, also what is retried a second later."""
        for _ in range(2 if backoff else 1):
            for _ in range(60):
                await asyncio.sleep(0)
            if backoff:
                self.clock.advance(1)
        for _ in range(60):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        """In steps, so that followers fetch in between."""
        while seconds > 0:
            self.clock.advance(min(seconds, 0.5))
            seconds -= 0.5
            await self.settle()

    def close(self) -> None:
        for node in self.nodes.values():
            if node.is_up:
                node.close()


def state(
    index: int = 0,
    leader: int = 1,
    leader_epoch: int = 0,
    replicas: Sequence[int] = (1,),
    isr: Sequence[int] | None = None,
    partition_epoch: int = 0,
) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=index,
        controller_epoch=1,
        leader=leader,
        leader_epoch=leader_epoch,
        isr=list(replicas if isr is None else isr),
        partition_epoch=partition_epoch,
        replicas=list(replicas),
    )


def leader_and_isr(
    *states: LeaderAndIsrPartitionState,
    topic: str = "t",
    topic_id: bytes = TOPIC_ID,
    controller_epoch: int = 1,
    broker_epoch: int = -1,
    leaders: Sequence[int] = (),
) -> LeaderAndIsrRequest:
    topics = [LeaderAndIsrTopicState(topic_name=topic, topic_id=topic_id, partition_states=list(states))]
    return LeaderAndIsrRequest(
        controller_id=1,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=topics,
        live_leaders=[LeaderAndIsrLiveLeader(broker_id=each, host_name="", port=each) for each in leaders],
    )


def stop(index: int = 0, leader_epoch: int = -1, delete: bool = True) -> StopReplicaPartitionState:
    return StopReplicaPartitionState(partition_index=index, leader_epoch=leader_epoch, delete_partition=delete)


def stop_replica(
    *states: StopReplicaPartitionState, topic: str = "t", controller_epoch: int = 1, broker_epoch: int = -1
) -> StopReplicaRequest:
    topics = [StopReplicaTopicState(topic_name=topic, partition_states=list(states))]
    return StopReplicaRequest(
        controller_id=1, controller_epoch=controller_epoch, broker_epoch=broker_epoch, topic_states=topics
    )
