"""The registry in a real ZooKeeper: the contract, and what a session and several clients add to it."""

import asyncio
import socket
from itertools import count

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss

from barnabas.broker.registry.errors import NodeExists, RegistryUnavailable, SessionExpired
from barnabas.broker.registry.tree_operations import Create
from barnabas.broker.registry.zookeeper import ZooKeeperRegistry
from tests.broker.registry.contract import RegistryContract
from tests.support.zookeeper import ZooKeeper, unavailable

pytestmark = [pytest.mark.java]

CHROOTS = count(1)


@pytest.fixture(scope="module")
def zookeeper():
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    with ZooKeeper() as zookeeper:
        yield zookeeper


async def open_registry(zookeeper, chroot, session_timeout_ms=6000):
    registry = await ZooKeeperRegistry.open(f"{zookeeper.connect}/{chroot}", session_timeout_ms, 20_000)
    await registry.mirror("/")
    return registry


@pytest.fixture
async def registry(zookeeper):
    registry = await open_registry(zookeeper, f"contract-{next(CHROOTS)}")
    yield registry
    await registry.close()


@pytest.fixture
async def two(zookeeper):
    """Two sessions with the same tree."""
    chroot = f"two-{next(CHROOTS)}"
    first, second = await open_registry(zookeeper, chroot), await open_registry(zookeeper, chroot)
    yield first, second
    await first.close()
    await second.close()


class TestZooKeeperRegistry(RegistryContract):
    pass


async def until(registry, condition):
    """Wait for the change that makes a condition true."""
    changed = asyncio.Event()
    cancel = registry.watch("/", lambda changes: changed.set())
    try:
        async with asyncio.timeout(60):
            while not condition():
                changed.clear()
                await changed.wait()
    finally:
        cancel()


async def test_own_changes_are_reported_once(registry, monkeypatch):
    """Also if the first event is followed late, when more has changed."""
    events, told = [], []
    monkeypatch.setattr(registry, "_follow", lambda *paths: events.extend(paths))
    registry.watch("/a/b", told.extend)
    await registry.create("/a", b"")
    await registry.create("/a/b", b"one")
    monkeypatch.undo()
    registry._follow(*events)
    await registry.set("/a", b"the events have been followed when this is done")
    assert [change.path for change in told] == ["/a/b"]


async def test_changes_of_others_are_seen(two):
    first, second = two
    await first.create("/a", b"one")
    await until(second, lambda: second.find("/a") is not None)
    await first.create("/a/b", b"two")
    await until(second, lambda: second.find("/a/b") is not None)
    await first.set("/a/b", b"three")
    await until(second, lambda: second.get("/a/b").data == b"three")
    await first.delete("/a/b")
    await until(second, lambda: second.find("/a/b") is None)


async def test_what_others_do_to_own_nodes_is_seen(two):
    first, second = two
    await first.multi([Create("/a"), Create("/a/b")])
    await until(second, lambda: second.find("/a/b") is not None)
    await second.create("/a/b/c", b"theirs")
    await until(first, lambda: first.find("/a/b/c") is not None)
    await second.set("/a", b"theirs, too")
    await until(first, lambda: first.get("/a").data == b"theirs, too")


async def test_what_others_do_below_nodes_that_they_made_first_is_seen(two, monkeypatch):
    """Brokers that start at the same time make the same parents. The one that is slower finds out by its conflict."""
    first, second = two
    held = []
    monkeypatch.setattr(second, "_follow", lambda *paths: held.extend(paths))
    await first.multi([Create("/p"), Create("/p/q")])
    with pytest.raises(NodeExists):
        await second.multi([Create("/p"), Create("/p/q")])
    await first.multi([Create("/p/q/r")])
    monkeypatch.undo()
    second._follow(*held)
    await until(second, lambda: second.find("/p/q/r") is not None)
    await first.multi([Create("/p/q/s")])
    await until(second, lambda: second.find("/p/q/s") is not None)


async def test_a_node_that_is_made_again_between_two_reads_is_seen(two, monkeypatch):
    """A broker registers as soon as its former session is gone: others have just read that nothing is there."""
    first, second = two
    await first.create("/a", b"former")
    await until(second, lambda: second.find("/a") is not None)
    look = second._client.exists_async

    def made_again(path, watch):
        monkeypatch.undo()
        first._client.create("/a", b"new")
        return look(path, watch)

    monkeypatch.setattr(second._client, "exists_async", made_again)
    await first.delete("/a")
    await until(second, lambda: second.find("/a") is not None and second.get("/a").data == b"new")


async def test_an_own_node_that_somebody_deletes_at_once_is_gone(two, monkeypatch):
    """Before its creator has read it back, so that there is no watch yet."""
    first, second = two
    look = first._client.get_async

    def deleted(path, watch):
        monkeypatch.undo()
        second._client.delete("/a")
        return look(path, watch)

    told = []
    first.watch("/a", told.extend)
    monkeypatch.setattr(first._client, "get_async", deleted)
    await first.create_ephemeral("/a")
    assert first.find("/a") is None
    assert [(change.path, change.node is None) for change in told] == [("/a", False), ("/a", True)]


async def test_ephemeral_nodes_go_with_their_session(two):
    first, second = two
    await first.create_ephemeral("/a")
    await until(second, lambda: second.find("/a") is not None)
    assert second.get("/a").czxid == first.get("/a").czxid > 0
    await first.close()
    await until(second, lambda: second.find("/a") is None)


async def test_a_transaction_that_is_too_large_is_an_error_that_says_so(registry):
    with pytest.raises(RegistryUnavailable, match=r"jute\.maxbuffer is probably less than the 2,\d+,\d+ bytes"):
        await registry.multi([Create("/large", bytes(1_000_000)), Create("/larger", bytes(1_000_000))])
    await write_when_it_can(registry, "/", b"it goes on")


async def test_an_unreachable_server_is_an_error():
    with pytest.raises(RegistryUnavailable, match="cannot be reached within 300 ms"):
        await ZooKeeperRegistry.open("127.0.0.1:1", 6000, 300)


async def write_when_it_can(registry, path, data):
    while True:
        try:
            return await registry.set(path, data)
        except RegistryUnavailable:
            await asyncio.sleep(0.05)


async def test_zookeeper_may_go_and_come_back():
    with ZooKeeper(tick_time_ms=2000) as zookeeper:
        registry = await open_registry(zookeeper, "gone", session_timeout_ms=40_000)
        await registry.create_ephemeral("/a", b"one")
        await asyncio.to_thread(zookeeper.kill)
        with pytest.raises(RegistryUnavailable):
            await registry.set("/a", b"two")
        assert registry.get("/a").data == b"one"
        await asyncio.to_thread(zookeeper.start)
        async with asyncio.timeout(60):
            await write_when_it_can(registry, "/a", b"three")
        assert registry.get("/a").data == b"three"
        await registry.close()


async def test_a_server_that_accepts_and_says_nothing_does_not_cost_the_session():
    """As ZooKeeper does while it starts."""
    with ZooKeeper(tick_time_ms=1500) as zookeeper:
        registry = await open_registry(zookeeper, "silent", session_timeout_ms=20_000)
        await registry.create_ephemeral("/a", b"one")
        await asyncio.to_thread(zookeeper.kill)
        with socket.create_server(("127.0.0.1", zookeeper.port)) as silent:
            connection, _ = await asyncio.to_thread(silent.accept)
        with connection:
            await asyncio.to_thread(zookeeper.start)
            async with asyncio.timeout(15):
                await write_when_it_can(registry, "/a", b"two")
        await registry.close()


async def test_what_others_change_is_seen_although_a_read_fails_after_the_connection_is_back(two, monkeypatch):
    """A read from before the connection was lost may fail after the next connection has caused everything to be
    read."""
    first, second = two
    read, failures = second._read_below, [ConnectionLoss()]

    async def failing(*arguments, **named):
        if failures:
            second._note_state(KazooState.CONNECTED)
            raise failures.pop()
        return await read(*arguments, **named)

    monkeypatch.setattr(second, "_read_below", failing)
    await first.create("/a", b"one")
    await until(second, lambda: second.find("/a") is not None)
    assert not failures


async def test_a_change_that_cannot_be_read_back_may_have_happened(registry, monkeypatch):
    """ZooKeeper made the node, and the connection was lost before it could say under which number."""

    def lost(path, watch=None):
        result = registry._client.handler.async_result()
        result.set_exception(ConnectionLoss())
        return result

    with monkeypatch.context() as patched:
        patched.setattr(registry._client, "get_async", lost)
        with pytest.raises(RegistryUnavailable, match="may have happened"):
            await registry.create_ephemeral("/a", b"one")
    await registry.refresh("/a")
    assert registry.get("/a").data == b"one"


async def test_an_expired_session_is_reported_and_refuses_further_operations(zookeeper, registry):
    await registry.create_ephemeral("/a")
    expired = asyncio.Event()
    registry.on_expired(expired.set)
    # When the same session is closed elsewhere, ZooKeeper drops it.
    thief = KazooClient(zookeeper.connect, client_id=registry._client.client_id)
    await asyncio.to_thread(thief.start)
    await asyncio.to_thread(thief.stop)
    async with asyncio.timeout(60):
        await expired.wait()
    with pytest.raises(SessionExpired):
        await registry.create("/b")
