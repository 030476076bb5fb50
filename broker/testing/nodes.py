"""The brokers of a cluster, which a test can kill, stop, start, cut off and heal, each by its id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.local_cluster import LocalCluster, Node, NodeError
from barnabas.broker.obstacles import CannotStart
from barnabas.broker.server.addresses import host_and_port
from barnabas.broker.testing.http import BadRequest, Call, ControlError, NotFound, Route
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.cluster.term import Term

# Longer than an election or an order takes.
_SECONDS: Final = 10.0
_PAUSE: Final = 0.001


def node_routes(cluster: LocalCluster) -> list[Route]:
    return _NodeRoutes(cluster).routes()


class _NodeRoutes:
    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._changing = asyncio.Lock()

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/nodes", self.all),
            Route("GET", "/nodes/{id}", self.one),
            Route("POST", "/nodes/{id}/kill", self.kill),
            Route("POST", "/nodes/{id}/stop", self.stop),
            Route("POST", "/nodes/{id}/start", self.start),
            Route("POST", "/nodes/{id}/isolate", self.isolate),
            Route("POST", "/nodes/{id}/heal", self.heal),
            Route("POST", "/controller", self.change_controller),
            Route("POST", "/topics/{name}/partitions/{index}/leader", self.move_leader),
        ]

    async def all(self, call: Call) -> Any:
        return [describe(self._cluster, node) for node in self._cluster.nodes.values()]

    async def one(self, call: Call) -> Any:
        return describe(self._cluster, self._node(call))

    async def kill(self, call: Call) -> Any:
        call.fields()
        async with self._changing:
            with refusals():
                await self._cluster.kill_node(self._node(call).broker_id)

    async def stop(self, call: Call) -> Any:
        call.fields()
        async with self._changing:
            with refusals():
                await self._cluster.stop_node(self._node(call).broker_id)

    async def start(self, call: Call) -> Any:
        call.fields()
        async with self._changing:
            with refusals():
                await self._cluster.start_node(self._node(call).broker_id)
        return describe(self._cluster, self._node(call))

    async def isolate(self, call: Call) -> Any:
        clients = call.fields("clients").get("clients", False)
        if not isinstance(clients, bool):
            raise BadRequest("'clients' is true or false", "clients")
        with refusals():
            self._cluster.isolate_node(self._node(call).broker_id, clients=clients)

    async def heal(self, call: Call) -> Any:
        call.fields()
        self._cluster.heal_node(self._node(call).broker_id)

    async def change_controller(self, call: Call) -> Any:
        """Make another broker the controller: a given one, or any."""
        wanted = call.fields("broker").get("broker")
        if wanted is not None and (not isinstance(wanted, int) or isinstance(wanted, bool)):
            raise BadRequest("'broker' is the id of a broker", "broker")
        async with self._changing:
            with refusals():
                await self._change_controller(wanted)
        controller = self._cluster.controller
        return {"controller": -1 if controller is None else controller.config.node_id}

    async def _change_controller(self, wanted: int | None) -> None:
        former = self._cluster.controller
        if wanted is not None and self._cluster.node(wanted).broker is None:
            raise NodeError(f"broker {wanted} is not running")
        if former is not None and former.config.node_id == wanted:
            return
        others = [broker for broker in self._cluster.brokers if broker is not former]
        if not others:
            raise NodeError("there is no other broker that could become the controller")
        chosen = next((broker for broker in others if broker.config.node_id == wanted), others[0])
        if former is not None:
            chosen.controller.replace(former.config.node_id)
        await until(lambda: self._cluster.controller is chosen, f"broker {chosen.config.node_id} was not elected")
        # A client that asked one that has not heard of it might believe in the former controller for minutes.
        await until(
            lambda: all(
                broker.cluster.controller_id == chosen.config.node_id
                for broker in self._cluster.brokers
                if not self._cluster.node(broker.config.node_id).is_isolated
            ),
            f"not every broker has heard of the new controller, broker {chosen.config.node_id}",
        )

    async def move_leader(self, call: Call) -> Any:
        """Make one of a partition's in-sync replicas its leader."""
        broker_id = call.fields("broker").get("broker")
        if not isinstance(broker_id, int) or isinstance(broker_id, bool):
            raise BadRequest("'broker' is the id of a broker", "broker")
        if not call.params["index"].isdigit():
            raise NotFound(f"there is no partition {call.params['index']!r}: partitions have numbers")
        partition = TopicPartition(call.params["name"], int(call.params["index"]))
        result = await term_of(self._cluster).move_leader(partition, broker_id)
        if result.error_code:
            raise ControlError(HTTPStatus.CONFLICT, f"{result.error_code.name}: {result.error_message}")
        node = self._cluster.node(broker_id)

        def leads() -> bool:
            found = None if node.broker is None else node.broker.replicas.find(*partition)
            return found is not None and found.leadership is not None

        await until(leads, f"broker {broker_id} does not lead {partition}")

    def _node(self, call: Call) -> Node:
        if not call.params["id"].isdigit():
            raise NotFound(f"there is no broker {call.params['id']!r}: brokers have numbers")
        try:
            return self._cluster.node(int(call.params["id"]))
        except NodeError as error:
            raise NotFound(str(error)) from None


def describe(cluster: LocalCluster, node: Node) -> dict[str, Any]:
    broker = node.broker
    listener = None if broker is None else broker.server.listeners[0]
    return {
        "id": node.broker_id,
        "address": None if listener is None else host_and_port(listener.host, listener.port),
        "rack": node.config.broker_rack,
        "running": broker is not None,
        "controller": broker is not None and broker is cluster.controller,
        "isolated": node.is_isolated,
    }


def term_of(cluster: LocalCluster) -> Term:
    """The controller's term."""
    controller = cluster.controller
    term = None if controller is None else controller.controller.term
    if term is None:
        raise ControlError(HTTPStatus.CONFLICT, "there is no controller at this moment")
    return term


async def all_well(cluster: LocalCluster) -> None:
    """Heal brokers that are cut off, and start those that do not run."""
    for node in cluster.nodes.values():
        if node.is_isolated or node.is_cut_off_from_clients:
            cluster.heal_node(node.broker_id)
    # A starting broker waits for the controller, which may have been cut off.
    for node in cluster.nodes.values():
        if node.broker is None:
            with refusals():
                await cluster.start_node(node.broker_id)


async def known_everywhere(cluster: LocalCluster, topic: str) -> None:
    """Wait until each broker that can be reached shows the leaders of a topic's partitions to clients."""

    def is_known() -> bool:
        return all(
            (image := broker.cluster.topic(topic)) is not None
            and all(partition.leader_id >= 0 for partition in image.partitions)
            for broker in cluster.brokers
            if not cluster.node(broker.config.node_id).is_isolated
        )

    await until(is_known, f"not every broker knows about {topic}")


async def until(condition: Callable[[], bool], otherwise: str) -> None:
    """Wait for something that the brokers do; `otherwise` is what to say if they do not."""
    end = asyncio.get_running_loop().time() + _SECONDS
    while not condition():
        if asyncio.get_running_loop().time() > end:
            raise ControlError(HTTPStatus.CONFLICT, otherwise)
        await asyncio.sleep(_PAUSE)


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except (NodeError, CannotStart) as error:
        raise ControlError(HTTPStatus.CONFLICT, str(error)) from None
