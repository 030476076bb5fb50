"""What all clients need: connections, who leads what, who coordinates what, and patience."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from barnabas.broker.interbroker.channel import Channel, ChannelError
from barnabas.client.requests import lookup
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorResponse
from barnabas.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from barnabas.protocol.schema import Message
from barnabas.simulation.clock import SimulatedClock
from barnabas.simulation.history import History, Key
from barnabas.simulation.network import SimulatedNetwork

if TYPE_CHECKING:
    from barnabas.simulation.world import World

R = TypeVar("R", bound=Message)
T = TypeVar("T")
Address = tuple[str, int]

REQUEST_TIMEOUT_MS: Final = 5_000
_METADATA_VERSION: Final = 12
_SURE: Final = 5
_FIND_COORDINATOR_VERSION: Final = 4

# Answers after which a client looks for the right broker and tries again.
MOVED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
COORDINATOR_MOVED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)


class Lost(Exception):
    """No answer: the request may have been carried out."""


class Refused(Exception):
    """The broker has answered with an error."""

    def __init__(self, code: int, what: str = "") -> None:
        super().__init__(f"{ErrorCode(code).name} {what}".strip())
        self.code = ErrorCode(code)


class GivenUp(Exception):
    """It has not worked for too long."""


class Led(NamedTuple):
    """Who leads a partition, as far as this client knows."""

    leader: int
    epoch: int


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    partitions: dict[int, Led]

    def key(self, index: int) -> Key:
        return f"{self.name}#{self.topic_id.hex()[:6]}", index


def check(code: int, what: str = "") -> None:
    if code:
        raise Refused(code, what)


class Client:
    def __init__(self, world: World, name: str, history: History) -> None:
        self.world = world
        self.name = name
        self.history = history
        self.loop = world.process(name)
        self.host = f"10.1.0.{len(world.scheduler.loops)}"
        self.network = SimulatedNetwork(world.fabric, self.loop, self.host)
        self.clock = SimulatedClock(self.loop)
        self.chance = world.scheduler.random("client", name)
        self.brokers: dict[int, Address] = {
            machine.broker_id: (machine.host, 9092) for machine in world.machines.values()
        }
        self.controller = -1
        self.topics: dict[str, Topic] = {}
        self.stopping = False
        self._unknown: dict[str, int] = {}
        self._bootstrap = dict(self.brokers)
        self._channels: dict[tuple[Address, str], Channel] = {}
        self._coordinators: dict[tuple[str, int], int] = {}

    def start(self) -> asyncio.Task[None]:
        return self.loop.create_task(self.run())

    async def run(self) -> None:
        raise NotImplementedError

    def note(self, what: str) -> None:
        self.world.happened(self.name, what, "client")

    async def sleep(self, least: float, most: float) -> None:
        await asyncio.sleep(self.chance.uniform(least, most))

    # --- asking ---

    async def ask(
        self,
        broker: int,
        message: Message,
        version: int,
        answer: type[R],
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        purpose: str = "",
    ) -> R:
        """Ask a broker. Lost if there is no answer; then the connection is closed, as a client does."""
        address = self.brokers.get(broker)
        if address is None:
            raise Lost(f"broker {broker} is not known")
        channel = self._channels.get((address, purpose))
        if channel is None:
            channel = Channel(self.network, self.clock, self.loop, *address, self.name)
            self._channels[address, purpose] = channel
        try:
            return await channel.request(_key_of(type(message)), message, version, answer, timeout_ms)
        except ChannelError as error:
            raise Lost(str(error)) from None

    def any_broker(self) -> int:
        return self.chance.choice(sorted(self.brokers))

    # --- who leads ---

    async def refresh(self, names: Iterable[str]) -> None:
        """Learn where topics are, from any broker. An older leader epoch than the one known is not believed."""
        wanted = list(names)
        try:
            found = await self.ask(
                self.any_broker(), lookup.metadata(wanted), _METADATA_VERSION, MetadataResponse, purpose="metadata"
            )
        except Lost:
            self.brokers.update(self._bootstrap)  # those known may all be gone
            return
        self.brokers.update({each.node_id: (each.host, each.port) for each in found.brokers})
        self.controller = found.controller_id
        for topic in found.topics:
            self._learn(topic)

    def _learn(self, topic: MetadataResponseTopic) -> None:
        name = topic.name or ""
        if topic.error_code:
            # A broker that has just started may not know it yet: several have to say so.
            self._unknown[name] = self._unknown.get(name, 0) + 1
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._unknown[name] > _SURE:
                self.topics.pop(name, None)
            return
        self._unknown.pop(name, None)
        known = self.topics.get(name)
        partitions = {each.partition_index: Led(each.leader_id, each.leader_epoch) for each in topic.partitions}
        if known is not None and known.topic_id == topic.topic_id:
            for index, led in known.partitions.items():
                if index not in partitions or partitions[index].epoch < led.epoch:
                    partitions[index] = led
        self.topics[name] = Topic(name, topic.topic_id, partitions)

    async def topic(self, name: str, deadline: float = float("inf")) -> Topic:
        """A topic, asked for until it is there."""
        while name not in self.topics:
            await self.refresh([name])
            if name not in self.topics:
                self.raise_if_late(deadline, f"topic {name} is not there")
                await self.sleep(0.1, 0.5)
        return self.topics[name]

    # --- who coordinates ---

    async def coordinator(self, key: str, kind: int) -> int:
        known = self._coordinators.get((key, kind))
        if known is not None:
            return known
        found = await self.ask(
            self.any_broker(),
            lookup.find_coordinator(_FIND_COORDINATOR_VERSION, key, key_type=kind),
            _FIND_COORDINATOR_VERSION,
            FindCoordinatorResponse,
            purpose="metadata",
        )
        (each,) = found.coordinators
        check(each.error_code, "looking for a coordinator")
        self.brokers[each.node_id] = (each.host, each.port)
        self._coordinators[key, kind] = each.node_id
        return each.node_id

    def forget_coordinator(self, key: str, kind: int) -> None:
        self._coordinators.pop((key, kind), None)

    async def ask_coordinator(
        self,
        key: str,
        kind: int,
        message: Message,
        version: int,
        answer: type[R],
        error_of: Callable[[R], int],
        deadline: float,
        *,
        retried: Collection[int] = (),
        again_if_lost: bool = True,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> R:
        """Ask the coordinator until it answers, or refuses for a reason that is not about who coordinates."""
        again: Collection[int] = COORDINATOR_MOVED | frozenset(retried)
        while True:
            try:
                broker = await self.coordinator(key, kind)
                found = await self.ask(broker, message, version, answer, timeout_ms, purpose="coordinator")
                code = error_of(found)
                if code not in again:
                    check(code)
                    return found
                if code not in retried:
                    self.forget_coordinator(key, kind)
            except Lost:
                self.forget_coordinator(key, kind)
                if not again_if_lost:
                    raise
            except Refused as error:
                if error.code not in again:
                    raise
            self.raise_if_late(deadline, f"{type(message).__name__} of {key}")
            await self.sleep(0.05, 0.3)

    def raise_if_late(self, deadline: float, what: str) -> None:
        if self.stopping or self.loop.time() > deadline:
            raise GivenUp(what)

    async def ask_controller(
        self, message: Message, version: int, answer: type[R], codes_of: Callable[[R], Iterable[int]], deadline: float
    ) -> R:
        """Ask whoever is the controller, as far as this client knows. Lost if it may have been carried out."""
        while True:
            if self.controller not in self.brokers:
                await self.refresh([])
            try:
                broker = self.controller if self.controller in self.brokers else self.any_broker()
                found = await self.ask(broker, message, version, answer, 15_000, purpose="admin")
            except Lost:
                self.controller = -1
                raise
            if ErrorCode.NOT_CONTROLLER not in set(codes_of(found)):
                return found
            self.controller = -1
            self.raise_if_late(deadline, "no controller")
            await self.sleep(0.1, 0.5)


_KEYS: Final[dict[str, ApiKey]] = {key.name.replace("_", "").lower(): key for key in ApiKey}


@cache
def _key_of(message: type[Message]) -> ApiKey:
    return _KEYS[message.__name__.removesuffix("Request").lower()]
