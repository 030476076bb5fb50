"""A broker's registration: the node that says that it is alive, for as long as its session with the registry lasts.

The number of the transaction that created the node is the broker's epoch. A write whose answer was lost may have
succeeded: the broker checks, and recognizes its own node by the timestamp in it.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from barnabas.broker.clock import Clock
from barnabas.broker.controller import znodes
from barnabas.broker.controller.images import BrokerImage
from barnabas.broker.registry.errors import NodeExists, RegistryUnavailable
from barnabas.broker.registry.registry import Registry
from barnabas.broker.registry.tree_operations import Create, Operation

log = structlog.get_logger()

MIRRORED: Final = (
    *(znodes.BROKER_IDS, znodes.CONTROLLER, znodes.CONTROLLER_EPOCH, "/cluster", znodes.DELETIONS),
    *(znodes.CONFIG_CHANGES, znodes.TOPIC_CONFIGS, znodes.BROKER_CONFIGS, znodes.USER_CONFIGS),
)
"""What every broker needs to know about the tree."""

_LOOK_AGAIN_SECONDS: Final = 0.2
# How much longer than its time-out a session may seem to last: clocks and heartbeats are not exact.
_MARGIN_MS: Final = 3000


class RegistrationRefused(Exception):
    """Why a broker cannot be a member of this cluster, in a sentence for the user."""


async def mirror(registry: Registry) -> None:
    """Mirror what every broker needs to know about the tree."""
    for path in MIRRORED:
        await registry.mirror(path)


async def join_cluster(registry: Registry, cluster_id: str, *, may_be_new: bool = True) -> str:
    """Create the parents that the tree lacks. Returns the cluster's id, which is the given one if it had none.

    A broker that has partitions must not create a cluster: it would set all of them aside, because no topic is known.
    RegistrationRefused unless the cluster `may_be_new`.
    """
    while True:
        operations: list[Operation] = [Create(path) for path in znodes.SKELETON if registry.find(path) is None]
        known = registry.find(znodes.CLUSTER_ID)
        if known is None:
            if not may_be_new:
                raise RegistrationRefused(
                    f"{registry.name} knows no cluster, but this broker has partitions of the cluster {cluster_id}, "
                    "which would be set aside; is this the right registry, or has it lost its data?"
                )
            operations.append(Create(znodes.CLUSTER_ID, znodes.write_cluster_id(cluster_id)))
        if registry.find(znodes.FEATURE) is None:
            operations.append(Create(znodes.FEATURE, znodes.write_feature()))
        if not operations:
            return cluster_id if known is None else znodes.read_cluster_id(known)
        try:
            await registry.multi(operations)
        except NodeExists:  # another broker was faster, or it is not mirrored
            for path in (*znodes.SKELETON, znodes.CLUSTER_ID, znodes.FEATURE):
                await registry.refresh(path)


def check_listener(registry: Registry, broker_id: int, listener: str) -> None:
    """RegistrationRefused if no other broker has this listener, by which brokers reach each other.

    A broker that reaches nobody, or that nobody reaches, keeps every controller from telling the others anything.
    """
    others = [znodes.read_broker_id(name) for name in registry.children(znodes.BROKER_IDS)]
    names = {
        endpoint.name
        for other in others
        if other != broker_id and (node := registry.find(znodes.broker_path(other))) is not None
        for endpoint in znodes.read_broker(other, node).endpoints
    }
    if names and listener not in names:
        raise RegistrationRefused(
            f"no other broker of the cluster has a listener {listener}, only {', '.join(sorted(names))}; "
            "inter.broker.listener.name must be the same on all brokers"
        )


async def register(
    registry: Registry,
    broker: BrokerImage,
    clock: Clock,
    *,
    directory_id: str,
    session_timeout_ms: int,
) -> int:
    """Register a broker, and return its epoch. RegistrationRefused if another one has its id.

    Waits until a node of this broker's former session is gone.
    """
    path = znodes.broker_path(broker.broker_id)
    patience = (session_timeout_ms + _MARGIN_MS) / 1000
    end = clock.monotonic() + patience
    failed_before = False
    while True:
        data = znodes.write_broker(broker, clock.now_ms(), directory_id)
        try:
            await registry.multi([Create(path, data, ephemeral=True)])
        except NodeExists:
            await registry.refresh(path)
            await _wait_for_former_session(registry, broker, clock, directory_id, patience)
            continue
        except RegistryUnavailable:
            if not await _was_written(registry, path, data, clock, end):
                if failed_before:
                    raise
                failed_before = True
                continue
        epoch = registry.get(path).czxid
        log.info("registered", broker=broker.broker_id, epoch=epoch)
        return epoch


async def _was_written(registry: Registry, path: str, data: bytes, clock: Clock, end: float) -> bool:
    """Whether a write whose answer was lost has happened. RegistryUnavailable if that cannot be found out in time."""
    while True:
        try:
            await registry.refresh(path)
        except RegistryUnavailable:
            if clock.monotonic() >= end:
                raise
            await _pause(clock, _LOOK_AGAIN_SECONDS)
            continue
        node = registry.find(path)
        return node is not None and node.data == data


async def _wait_for_former_session(
    registry: Registry, broker: BrokerImage, clock: Clock, directory_id: str, patience: float
) -> None:
    """Wait until the node that is in the way is gone. RegistrationRefused if it is another broker's, or stays.

    A registry that was away gives every session its whole time again when it is back.
    """
    path = znodes.broker_path(broker.broker_id)
    gone = asyncio.Event()
    cancel = registry.watch(path, lambda changes: gone.set())
    answered = clock.monotonic()  # when the registry last did
    end = answered + patience
    waited = False
    try:
        while (node := registry.find(path)) is not None:
            other = znodes.read_broker(broker.broker_id, node)
            where = ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in other.endpoints)
            if znodes.read_directory_id(broker.broker_id, node) != directory_id:
                raise RegistrationRefused(
                    f"another broker with the id {broker.broker_id} is registered, at {where}; "
                    "each broker of a cluster needs a node.id of its own"
                )
            if clock.monotonic() >= end:
                raise RegistrationRefused(
                    f"broker {broker.broker_id} is still registered, at {where}, by a session that does not end; "
                    "is the same broker running twice?"
                )
            if not waited:
                waited = True
                log.info("waiting for the end of this broker's former session", broker=broker.broker_id)
            timer = clock.call_later(_LOOK_AGAIN_SECONDS, gone.set)
            await gone.wait()
            timer.cancel()
            gone.clear()
            try:
                await registry.refresh(path)
            except RegistryUnavailable:
                if clock.monotonic() - answered >= patience:
                    raise
                end = clock.monotonic() + patience
            else:
                answered = clock.monotonic()
    finally:
        cancel()


async def _pause(clock: Clock, seconds: float) -> None:
    waited = asyncio.Event()
    clock.call_later(seconds, waited.set)
    await waited.wait()
