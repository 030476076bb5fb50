"""barnabas.simulation.registry: the contract of all registries, and what only a simulated one can do."""

import asyncio

import pytest

from barnabas.broker.registry.errors import RegistryUnavailable, SessionExpired
from barnabas.simulation.loop import Scheduler
from barnabas.simulation.network import Fabric
from barnabas.simulation.registry import HOST, SESSION_TIMEOUT, RegistryServer
from tests.broker.registry.contract import RegistryContract


@pytest.fixture
async def registry():
    loop = asyncio.get_running_loop()
    return RegistryServer(None, loop).connect("broker", "host", loop)


class TestSimulatedSession(RegistryContract):
    pass


class World:
    def __init__(self):
        self.scheduler = Scheduler(1)
        self.fabric = Fabric(self.scheduler)
        self.server = RegistryServer(self.fabric, self.scheduler.process("registry"))

    def session(self, host):
        self.loop = self.scheduler.process(host)
        return self.server.connect(host, host, self.loop)

    def cut_off(self, host):
        self.fabric.cut(host, HOST)
        self.fabric.cut(HOST, host)

    def mend(self, host):
        self.fabric.mend(host, HOST)
        self.fabric.mend(HOST, host)

    def do(self, session, work):
        task = session._loop.create_task(work)
        self.scheduler.run(task.done)
        return task.result()

    def wait(self, seconds):
        self.scheduler.run(end=self.scheduler.now + seconds)


@pytest.fixture
def world():
    return World()


def test_a_session_hears_of_others_after_a_while(world):
    first, second = world.session("a"), world.session("b")
    seen = []
    first.watch("/x", seen.extend)
    world.do(second, second.create("/x", b"data"))
    world.wait(0.1)
    assert [change.path for change in seen] == ["/x"]
    assert first.get("/x").data == b"data"


def test_a_session_that_is_cut_off_is_suspended_then_expires(world):
    first, second = world.session("a"), world.session("b")
    world.do(first, first.create_ephemeral("/x"))
    told = []
    first.on_expired(lambda: told.append(world.scheduler.now))
    world.cut_off("a")
    world.wait(SESSION_TIMEOUT + 0.1)
    assert second.find("/x") is None
    assert first.find("/x") is not None
    assert not told
    with pytest.raises(RegistryUnavailable):
        world.do(first, first.create("/y"))
    world.mend("a")
    world.wait(SESSION_TIMEOUT)
    assert told
    with pytest.raises(SessionExpired):
        world.do(first, first.create("/y"))


def test_what_was_under_way_when_the_connection_was_lost_may_have_happened(world):
    first, second = world.session("a"), world.session("b")
    world.fabric.cut(HOST, "a")
    with pytest.raises(RegistryUnavailable):
        world.do(first, first.create("/x"))
    assert second.find("/x") is not None
    world.fabric.mend(HOST, "a")
    world.wait(1)
    assert first.find("/x") is not None


def test_a_process_that_stands_still_for_too_long_loses_its_session(world):
    first = world.session("a")
    loop = world.loop
    second = world.session("b")
    world.do(first, first.create_ephemeral("/x"))
    loop.pause()
    world.wait(SESSION_TIMEOUT + 1)
    assert second.find("/x") is None
    assert not first.is_expired
    loop.resume()
    world.wait(1)
    assert first.is_expired
