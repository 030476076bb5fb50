"""Brokers of one process for tests of terms and elections: real sessions, elections and terms; scripted replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.broker.cluster.election import Elected, Election
from barnabas.broker.cluster.membership import Membership
from barnabas.broker.cluster.term import Term
from barnabas.broker.cluster.world import World
from barnabas.broker.controller import znodes
from barnabas.broker.controller.images import BrokerImage, Endpoint, PartitionImage, TopicImage
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.registry.registry import Registry
from barnabas.broker.registry.session import Session
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from barnabas.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from barnabas.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.broker.registry.memory import MemoryRegistry
from tests.support.manual_clock import ManualClock

NEW_CLUSTER = "a-new-cluster-of-22-ch"


@dataclass
class Settings:
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    request_timeout_ms: int = 30_000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = 300
    leader_imbalance_per_broker_percentage: int = 10
    unclean_leader_election_enable: bool = False


@dataclass
class Replica:
    """What a broker was told about a partition."""

    topic_id: bytes
    leader: int
    leader_epoch: int
    isr: list[int]
    replicas: list[int]
    is_new: bool


@dataclass
class ScriptedBroker:
    """Serves a broker's orders: follows them as a broker must, and records them."""

    broker_id: int
    reachable: bool = True
    broken_disk: bool = False
    orders: list[tuple[ApiKey, Any]] = field(default_factory=list)
    replicas: dict[tuple[str, int], Replica] = field(default_factory=dict)
    metadata: dict[str, dict[int, Any]] = field(default_factory=dict)
    live_brokers: list[int] = field(default_factory=list)
    controller: tuple[int, int] = (-1, -1)
    broker_epoch: int = -1  # that it has itself

    async def serve(self, key: ApiKey, message: Any) -> Any:
        self.orders.append((key, message))
        stale = ErrorCode.NONE
        if message.controller_epoch < self.controller[1]:
            stale = ErrorCode.STALE_CONTROLLER_EPOCH
        elif message.broker_epoch < self.broker_epoch:
            stale = ErrorCode.STALE_BROKER_EPOCH
        else:
            self.controller = (message.controller_id, message.controller_epoch)
        match message:
            case LeaderAndIsrRequest():
                return LeaderAndIsrResponse(error_code=stale, topics=[] if stale else self._lead(message))
            case UpdateMetadataRequest():
                if not stale:
                    self._learn(message)
                return UpdateMetadataResponse(error_code=stale)
            case StopReplicaRequest():
                if not stale:
                    self._stop(message)
                return StopReplicaResponse(error_code=stale)
        raise AssertionError(message)

    def _lead(self, message: LeaderAndIsrRequest) -> list[LeaderAndIsrTopicError]:
        errors = []
        for topic in message.topic_states:
            for state in topic.partition_states:
                known = self.replicas.get((topic.topic_name, state.partition_index))
                assert known is None or known.topic_id != topic.topic_id or known.leader_epoch <= state.leader_epoch
                # Apache Kafka follows no other, and is not told again.
                assert state.leader in (-1, self.broker_id, *self.live_brokers)
                if not self.broken_disk:
                    self.replicas[topic.topic_name, state.partition_index] = Replica(
                        topic.topic_id, state.leader, state.leader_epoch, state.isr, state.replicas, state.is_new
                    )
            code = ErrorCode.KAFKA_STORAGE_ERROR if self.broken_disk else ErrorCode.NONE
            errors.append(
                LeaderAndIsrTopicError(
                    topic_id=topic.topic_id,
                    partition_errors=[
                        LeaderAndIsrPartitionError(partition_index=each.partition_index, error_code=code)
                        for each in topic.partition_states
                    ],
                )
            )
        return errors

    def _learn(self, message: UpdateMetadataRequest) -> None:
        self.live_brokers = [broker.id for broker in message.live_brokers]
        for topic in message.topic_states:
            for state in topic.partition_states:
                if state.leader == -2:
                    self.metadata.pop(topic.topic_name, None)
                else:
                    self.metadata.setdefault(topic.topic_name, {})[state.partition_index] = state

    def _stop(self, message: StopReplicaRequest) -> None:
        for topic in message.topic_states:
            for state in topic.partition_states:
                known = self.replicas.get((topic.topic_name, state.partition_index))
                if (
                    state.delete_partition
                    and known
                    and (state.leader_epoch in (-2,) or state.leader_epoch >= known.leader_epoch)
                ):
                    del self.replicas[topic.topic_name, state.partition_index]

    def keys(self) -> list[ApiKey]:
        return [key for key, _ in self.orders]


class ScriptedChannel:
    def __init__(self, broker: ScriptedBroker) -> None:
        self._broker = broker
        self.closed = False

    async def request(self, key: ApiKey, message: Any, version: int, answer: type[Any], timeout_ms: int) -> Any:
        await asyncio.sleep(0)
        if self.closed or not self._broker.reachable:
            raise ChannelError("nobody is there")
        return await self._broker.serve(key, message)

    def close(self) -> None:
        self.closed = True


class Member:
    """A broker of the cluster, through as many restarts as a test wants."""

    def __init__(self, brokers: Brokers, broker_id: int, rack: str | None = None) -> None:
        self.brokers = brokers
        self.broker_id = broker_id
        self.rack = rack
        self.after_crash = False
        self.directory_id = f"directory-{broker_id}"
        self.sessions: list[Session] = []
        self.suspects: dict[int, int] = {}
        self.election = Election(broker_id, brokers.clock, self._make_term)
        self.membership = self._new_membership()

    def _new_membership(self) -> Membership:
        return Membership(
            self._open_session,
            self.election,
            self.brokers.clock,
            session_timeout_ms=18_000,
            on_session=self._on_session,
        )

    async def _open_session(self) -> Registry:
        session = self.brokers.session_type(self.brokers.tree)
        self.sessions.append(session)
        return session

    async def _on_session(self, registry: Registry) -> None:
        pass

    async def _make_term(self, registry: Registry, elected: Elected, on_end: Any) -> Term:
        term = Term(registry, self._world(), elected.epoch, elected.version, on_end)
        self.brokers.terms.append(term)
        return term

    def _world(self) -> World:
        brokers = self.brokers
        return World(
            self.broker_id,
            brokers.settings,
            brokers.clock,
            self.scripted.serve,
            lambda image: ScriptedChannel(brokers.scripted[image.broker_id]),
            "PLAINTEXT",
            lambda configs: {name: value or "" for name, value in configs.items()},
            brokers.unclean_allowed,
            brokers.random_bytes,
            suspects=lambda: self.suspects,
        )

    @property
    def scripted(self) -> ScriptedBroker:
        return self.brokers.scripted[self.broker_id]

    @property
    def session(self) -> Session:
        return self.sessions[-1]

    @property
    def term(self) -> Term | None:
        return self.election.term

    async def start(self) -> None:
        await self.membership.open(NEW_CLUSTER)
        endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9000 + self.broker_id)
        image = BrokerImage(self.broker_id, (endpoint,), self.rack, after_crash=self.after_crash)
        await self.membership.join(image, self.directory_id)
        self.scripted.broker_epoch = self.membership.broker_epoch

    async def stop(self) -> None:
        self.scripted.reachable = False
        await self.membership.leave()

    async def crash(self) -> None:
        """Let the process die: its session ends when the registry notices, here at once."""
        self.scripted.reachable = False
        session = self.session
        session.cut_off()
        if self.election._running is not None:
            self.election._running.cancel()
        if self.term is not None:
            self.term.end()
            self.election.term = None
        await session.close()

    async def restart(self, after_crash: bool = False) -> None:
        """A new process of the same broker, which knows nothing of before."""
        self.brokers.scripted[self.broker_id] = ScriptedBroker(self.broker_id)
        self.after_crash = after_crash
        self.election = Election(self.broker_id, self.brokers.clock, self._make_term)
        self.membership = self._new_membership()
        await self.start()


class Brokers:
    """A cluster. The first that is started is its controller."""

    def __init__(self, *broker_ids: int, racks: Mapping[int, str] | None = None, session_type: type[Session] = Session):
        self.tree = MemoryRegistry()
        self.clock = ManualClock()
        self.settings = Settings()
        self.session_type = session_type
        self.terms: list[Term] = []
        self._bytes = 0
        self.scripted = {broker_id: ScriptedBroker(broker_id) for broker_id in broker_ids}
        self.members = {each: Member(self, each, (racks or {}).get(each)) for each in broker_ids}

    async def start(self) -> Brokers:
        for member in self.members.values():
            await member.start()
        await self.settle()
        return self

    def random_bytes(self, count: int) -> bytes:
        self._bytes += 1
        return self._bytes.to_bytes(count)

    def unclean_allowed(self, topic: TopicImage) -> bool:
        default = "true" if self.settings.unclean_leader_election_enable else "false"
        return topic.configs.get("unclean.leader.election.enable", default) == "true"

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        for _ in range(200):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.settle()

    @property
    def controllers(self) -> list[int]:
        return [each.broker_id for each in self.members.values() if each.term is not None]

    @property
    def term(self) -> Term:
        (controller,) = self.controllers
        term = self.members[controller].term
        assert term is not None
        return term

    def partition(self, topic: str = "t", index: int = 0) -> PartitionImage:
        found = self.term.cluster.partition(topic, index)
        assert found is not None
        return found

    def agreed(self, topic: str = "t", index: int = 0) -> None:
        """Every broker, with and without a replica of the partition, was told what the tree says."""
        image = self.partition(topic, index)
        for broker_id in self.term.cluster.brokers:
            scripted = self.scripted[broker_id]
            state = scripted.metadata[topic][index]
            assert (state.leader, state.leader_epoch, tuple(state.isr), tuple(state.replicas)) == (
                image.leader_id,
                image.leader_epoch,
                image.isr_nodes,
                image.replica_nodes,
            ), broker_id
            has = (topic, index) in scripted.replicas
            assert has == (broker_id in image.replica_nodes), (broker_id, has)
            if has:
                replica = scripted.replicas[topic, index]
                assert (replica.leader, replica.leader_epoch) == (image.leader_id, image.leader_epoch)

    def epochs(self) -> Sequence[int]:
        return [znodes.read_controller_epoch(self.tree.get(znodes.CONTROLLER_EPOCH))]
