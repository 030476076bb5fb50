"""Several brokers in one process and on one loop: each with its own port, its own folder and its own session.

They share an embedded registry instead of ZooKeeper, and reach each other over the wire like brokers of different
machines. A single broker is such a cluster of one. With `zookeeper.connect`, the brokers here are members of a cluster
whose other members are elsewhere; then there is no embedded registry, and operations on the whole cluster are refused.

A broker can be killed, stopped and started again, and cut off from the others, from the registry and from clients. What
it had is then lost, kept or diverged as it would be on a machine of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from barnabas.broker.broker import Broker
from barnabas.broker.clock import Clock, Timer
from barnabas.broker.config import BrokerConfig
from barnabas.broker.local_network import LocalNetwork
from barnabas.broker.network import Network
from barnabas.broker.obstacles import refuse_directory_of_kraft, unusable
from barnabas.broker.registry.embedded import EmbeddedRegistry
from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.registry.registry import Registry
from barnabas.broker.registry.session import Session
from barnabas.broker.replica.moments import Moments

OpenRegistry = Callable[[], Awaitable[Registry]]
MakeBroker = Callable[[BrokerConfig, OpenRegistry, Network], Broker]

REGISTRY_FILE = "registry.db"
_EVENTS_KEPT: Final = 200


class NodeError(Exception):
    """A request does not fit the state of a broker; the message is a sentence for the user."""


class NodeEvent(NamedTuple):
    """What happened to a broker."""

    at_ms: int
    broker_id: int
    what: str


@dataclass(eq=False)
class Node:
    """A place for a broker, which may be running or not."""

    config: BrokerConfig
    broker: Broker | None = None
    session: Session | None = None
    is_isolated: bool = False
    is_cut_off_from_clients: bool = False
    expiry: Timer | None = None
    past: Moments | None = None  # of the broker that ran here before

    @property
    def broker_id(self) -> int:
        return self.config.node_id


class LocalCluster:
    def __init__(
        self,
        configs: Sequence[BrokerConfig],
        make_broker: MakeBroker,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        durable: bool = True,
    ) -> None:
        """The registry is in the first broker's data directory.

        Without `durable` it survives this process but not a crash of the machine: for throw-away data.
        """
        self.clock = clock
        self.nodes = {config.node_id: Node(config) for config in configs}
        self.network = LocalNetwork(loop)
        self._make_broker = make_broker
        self._folder = configs[0].data_dirs[0]
        self._durable = durable
        self._tree: EmbeddedRegistry | None = None
        self.events: deque[NodeEvent] = deque(maxlen=_EVENTS_KEPT)  # for people who look
        self.on_started: list[Callable[[Broker], None]] = []  # called for each broker before it accepts clients
        # Then this process sees only a part of the cluster, and cannot put all of it into another state.
        self.uses_zookeeper = configs[0].zookeeper_connect is not None
        self._loop = loop

    @property
    def tree(self) -> EmbeddedRegistry:
        """NodeError if the registry is in ZooKeeper."""
        self.require_all_here()
        assert self._tree is not None
        return self._tree

    @property
    def is_writing(self) -> bool:
        """Whether the embedded registry is being written."""
        return self._tree is not None and self._tree.is_writing

    def require_all_here(self) -> None:
        """NodeError unless this process has all of the cluster."""
        if self.uses_zookeeper:
            raise NodeError("this cannot be done around ZooKeeper: this process has only a part of the cluster")

    @property
    def brokers(self) -> Iterator[Broker]:
        """Those that are running."""
        return (node.broker for node in self.nodes.values() if node.broker is not None)

    @property
    def controller(self) -> Broker | None:
        """The broker that is the controller. One that was cut off may not know yet that it no longer is."""
        terms = {term.epoch: broker for broker in self.brokers if (term := broker.controller.term) is not None}
        return terms[max(terms)] if terms else None

    # --- all of them ---

    async def start(self) -> None:
        for node in self.nodes.values():
            refuse_directory_of_kraft(node.config.data_dirs[0])
        self._open_registry()
        try:
            first, *others = self.nodes.values()
            await self._start(first)
            await _all_of(self._start(node) for node in others)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop everybody; the controller last, so that it can hand over what the others lead."""
        controller = self.controller
        for broker in sorted(self.brokers, key=lambda broker: broker is controller):
            await self._stop(self.nodes[broker.config.node_id])
        if self._tree is not None:
            await self._tree.close()
        self.network.close()

    async def reopen(self, change: Callable[[], None]) -> None:
        """Drop the data as a crash would, let `change` put other data in its place, and continue with that.

        Clients are disconnected. They reconnect to the same addresses and find that data.
        """
        brokers = list(self.brokers)
        for broker in brokers:
            await broker.suspend()
        await self.tree.close()
        change()
        self._open_registry()
        first, *others = brokers
        await first.resume()
        await _all_of(broker.resume() for broker in others)

    def _open_registry(self) -> None:
        if self.uses_zookeeper:
            return
        try:
            os.makedirs(self._folder, exist_ok=True)
            self._tree = EmbeddedRegistry.open(os.path.join(self._folder, REGISTRY_FILE), durable=self._durable)
        except (OSError, RegistryError) as error:
            raise unusable(self._folder, error) from error

    # --- one of them ---

    def node(self, broker_id: int) -> Node:
        try:
            return self.nodes[broker_id]
        except KeyError:
            known = ", ".join(map(str, self.nodes))
            raise NodeError(f"there is no broker {broker_id}, only {known}") from None

    async def start_node(self, broker_id: int) -> None:
        node = self.node(broker_id)
        if node.broker is not None:
            raise NodeError(f"broker {broker_id} is already running")
        await self._start(node)

    async def stop_node(self, broker_id: int) -> None:
        """Stop a broker cleanly: it hands over what it leads first."""
        await self._stop(self._running(broker_id))

    async def kill_node(self, broker_id: int) -> None:
        """End a broker as SIGKILL would. The registry notices at once, as it does when a connection is reset."""
        node = self._running(broker_id)
        broker, node.broker = node.broker, None
        assert broker is not None
        self._note(broker_id, "was killed", broker)
        await broker.kill()
        self.network.hold_ports(broker_id)
        if node.session is not None:
            await node.session.expire()
        self._forget_isolation(node)

    def isolate_node(self, broker_id: int, *, clients: bool = False) -> None:
        """Cut a broker off from the others and from the registry, and with `clients` from clients too.

        Its session expires after zookeeper.session.timeout.ms, unless it is healed before.
        """
        self.require_all_here()
        node = self._running(broker_id)
        assert node.broker is not None
        self.network.cut(broker_id, [other for other in self.nodes if other != broker_id])
        if clients:
            node.is_cut_off_from_clients = True
            node.broker.server.refuse_clients(True)
        if not node.is_isolated and node.session is not None:
            self._note(broker_id, "was cut off from the others")
            node.is_isolated = True
            session = node.session
            session.cut_off()
            node.expiry = self.clock.call_later(
                node.config.zookeeper_session_timeout_ms / 1000, lambda: self._expire(node, session)
            )

    def heal_node(self, broker_id: int) -> None:
        """End what `isolate_node` did."""
        node = self.node(broker_id)
        if node.is_isolated:
            self._note(broker_id, "can reach the others again")
        self._forget_isolation(node)
        if node.session is not None:
            node.session.restore()

    def _expire(self, node: Node, session: Session) -> None:
        if node.session is session and node.broker is not None:
            node.broker.spawn(session.expire())

    def _forget_isolation(self, node: Node) -> None:
        self.network.heal(node.broker_id)
        if node.expiry is not None:
            node.expiry.cancel()
            node.expiry = None
        if node.is_cut_off_from_clients and node.broker is not None:
            node.broker.server.refuse_clients(False)
        node.is_isolated = node.is_cut_off_from_clients = False

    def _note(self, broker_id: int, what: str, broker: Broker | None = None) -> None:
        """What a broker noted that ends is kept: it led until now."""
        self.events.append(NodeEvent(self.clock.now_ms(), broker_id, what))
        if broker is not None:
            self.nodes[broker_id].past = broker.replicas.moments

    def _running(self, broker_id: int) -> Node:
        node = self.node(broker_id)
        if node.broker is None:
            raise NodeError(f"broker {broker_id} is not running")
        return node

    async def _start(self, node: Node) -> None:
        if self.uses_zookeeper:
            broker = self._make_broker(node.config, partial(open_zookeeper, node.config), Network(self._loop))
            # Brokers of other processes are known by the listener that they use.
            between_brokers = node.config.inter_broker_listener.name
            broker.server.is_from_broker = lambda connection: connection.listener.name == between_brokers
        else:
            broker = self._make_broker(node.config, partial(self._open_session, node), self.network.of(node.broker_id))
            broker.server.is_from_broker = lambda connection: self.network.is_broker(
                connection.peer, connection.local_address
            )
        broker.bind()
        self.network.listens(node.broker_id, [listener.port for listener in broker.server.listeners])
        for started in self.on_started:
            started(broker)
        await broker.start()
        node.broker = broker
        self._note(node.broker_id, "started")

    async def _open_session(self, node: Node) -> Registry:
        node.session = Session(self.tree)
        return node.session

    async def _stop(self, node: Node) -> None:
        broker, node.broker = node.broker, None
        assert broker is not None
        self._note(node.broker_id, "was stopped", broker)
        await broker.stop()
        self.network.hold_ports(node.broker_id)
        self._forget_isolation(node)


async def open_zookeeper(config: BrokerConfig) -> Registry:
    """A new session with ZooKeeper. RegistryError if there is none, in a sentence for the user."""
    assert config.zookeeper_connect is not None
    try:
        from barnabas.broker.registry.zookeeper import ZooKeeperRegistry
    except ImportError as error:
        raise RegistryError(
            f"zookeeper.connect needs a package that is not installed ({error}): "
            "pip install '.[zookeeper]' in a clone of Barnabas"
        ) from error
    session_ms = config.zookeeper_session_timeout_ms
    return await ZooKeeperRegistry.open(
        config.zookeeper_connect, session_ms, config.zookeeper_connection_timeout_ms or session_ms
    )


async def _all_of(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all, even if one fails: no work is still running when the exception is raised."""
    for outcome in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
