"""The vigil: a broker that refuses connections after it was reached is suspected, and no other."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator

import pytest

from barnabas.broker.cluster.vigil import Vigil
from barnabas.broker.controller import znodes
from barnabas.broker.controller.images import BrokerImage, Endpoint
from barnabas.broker.network import Network
from barnabas.broker.registry.tree_operations import Create, Delete, Set
from tests.broker.registry.memory import MemoryRegistry
from tests.support.manual_clock import ManualClock

ME = 1


class Hosts(Network):
    """Brokers as ports: each accepts connections, refuses them, or does not answer."""

    def __init__(self) -> None:
        self.errors: dict[int, int] = {}
        self.ends: dict[int, socket.socket] = {}  # the far end of the last connection to each
        self.opened: list[int] = []

    async def connect(self, host: str, port: int) -> socket.socket:
        if port in self.errors:
            raise OSError(self.errors[port], os.strerror(self.errors[port]))
        near, self.ends[port] = socket.socketpair()
        near.setblocking(False)
        self.opened.append(port)
        return near

    def dies(self, port: int, error: int = errno.ECONNREFUSED) -> None:
        self.errors[port] = error
        self.ends.pop(port).close()


class Scene:
    def __init__(self) -> None:
        self.tree = MemoryRegistry()
        self.clock = ManualClock()
        self.hosts = Hosts()
        self.told: list[int] = []
        loop = asyncio.get_running_loop()
        self.vigil = Vigil(ME, "INTERNAL", self.hosts, self.clock, loop, self.told.append)
        self.tree.apply([Create(path) for path in znodes.SKELETON])
        for broker_id in (1, 2, 3):
            self.register(broker_id)

    def register(self, broker_id: int) -> None:
        endpoints = tuple(Endpoint(name, "PLAINTEXT", "h", broker_id) for name in ("CLIENT", "INTERNAL"))
        image = BrokerImage(broker_id, endpoints, None)
        self.tree.apply([Create(znodes.broker_path(broker_id), znodes.write_broker(image, 0), ephemeral=True)])

    def elect(self, broker_id: int) -> None:
        data = znodes.write_controller(broker_id, 0)
        known = self.tree.find(znodes.CONTROLLER) is not None
        self.tree.apply([Set(znodes.CONTROLLER, data) if known else Create(znodes.CONTROLLER, data)])

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0.001)

    async def pass_time(self, seconds: float) -> None:
        await self.settle()
        self.clock.advance(seconds)
        await self.settle()

    @property
    def suspects(self) -> list[int]:
        return list(self.vigil.suspects)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    yield scene
    scene.vigil.stop()
    await scene.settle()
    for end in scene.hosts.ends.values():
        with contextlib.suppress(OSError):
            end.close()


async def watching(scene: Scene, controller: int) -> None:
    scene.elect(controller)
    scene.vigil.follow(scene.tree)
    await scene.pass_time(5)


async def test_the_controller_watches_all_and_the_others_watch_the_controller(scene: Scene) -> None:
    await watching(scene, 2)
    assert scene.hosts.opened == [2]
    scene.elect(ME)
    await scene.settle()
    assert sorted(scene.hosts.opened) == [2, 3]
    scene.register(4)
    await scene.settle()
    assert sorted(scene.hosts.opened) == [2, 3, 4]


async def test_a_broker_that_dies_is_suspected_after_the_second_refusal(scene: Scene) -> None:
    await watching(scene, ME)
    scene.hosts.dies(2)
    await scene.settle()
    assert scene.suspects == []
    await scene.pass_time(0.1)
    assert scene.vigil.suspects == {2: scene.tree.get(znodes.broker_path(2)).czxid}
    assert scene.told == [2]
    await scene.pass_time(10)
    assert scene.told == [2]


async def test_a_broker_that_is_reached_again_is_no_longer_suspected(scene: Scene) -> None:
    await watching(scene, ME)
    scene.hosts.dies(2)
    await scene.pass_time(0.1)
    assert scene.suspects == [2]
    del scene.hosts.errors[2]
    await scene.pass_time(1)
    assert scene.suspects == []
    assert scene.told == [2, 2]


async def test_a_connection_that_ends_and_can_be_opened_again_raises_no_suspicion(scene: Scene) -> None:
    await watching(scene, ME)
    scene.hosts.ends.pop(2).close()
    await scene.pass_time(5)
    assert scene.hosts.opened.count(2) == 2
    assert scene.told == []


async def test_a_broker_that_closes_connections_is_not_reconnected_to_all_the_time(scene: Scene) -> None:
    await watching(scene, ME)
    for _ in range(3):
        scene.hosts.ends.pop(2).close()
        await scene.settle()
        if 2 not in scene.hosts.ends:
            await scene.pass_time(1)
    assert scene.hosts.opened.count(2) == 4
    scene.hosts.ends.pop(2).close()
    await scene.settle()
    assert scene.hosts.opened.count(2) == 4


@pytest.mark.parametrize("error", [errno.ETIMEDOUT, errno.EHOSTUNREACH])
async def test_a_broker_that_cannot_be_reached_is_not_suspected(scene: Scene, error: int) -> None:
    await watching(scene, ME)
    scene.hosts.dies(2, error)
    for _ in range(5):
        await scene.pass_time(1)
    assert scene.told == []


async def test_a_broker_that_was_never_reached_is_not_suspected(scene: Scene) -> None:
    scene.hosts.errors[2] = errno.ECONNREFUSED
    await watching(scene, ME)
    for _ in range(5):
        await scene.pass_time(1)
    assert scene.told == []


async def test_a_suspicion_goes_with_the_registration(scene: Scene) -> None:
    await watching(scene, ME)
    scene.hosts.dies(2)
    await scene.pass_time(0.1)
    assert scene.suspects == [2]
    scene.tree.apply([Delete(znodes.broker_path(2))])
    assert scene.suspects == []
    scene.register(2)  # after its restart, before its ports are open
    for _ in range(5):
        await scene.pass_time(1)
    assert scene.suspects == []


async def test_a_suspected_controller_is_a_suspect_of_the_next(scene: Scene) -> None:
    await watching(scene, 2)
    scene.hosts.dies(2)
    await scene.pass_time(0.1)
    assert scene.suspects == [2]
    scene.tree.apply([Delete(znodes.CONTROLLER)])
    assert scene.suspects == [2]
    scene.elect(ME)
    assert scene.suspects == [2]


async def test_a_node_that_cannot_be_read_does_no_harm(scene: Scene) -> None:
    await watching(scene, ME)
    scene.tree.apply([Set(znodes.broker_path(2), b"nonsense")])
    scene.hosts.dies(3)
    await scene.pass_time(0.1)
    assert scene.suspects == [3]
