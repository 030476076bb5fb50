"""broker.registry.session: several brokers, one tree."""

import asyncio

import pytest

from barnabas.broker.registry.embedded import EmbeddedRegistry
from barnabas.broker.registry.errors import RegistryUnavailable, SessionExpired
from barnabas.broker.registry.session import Session
from barnabas.broker.registry.tree_operations import Create
from tests.broker.registry.contract import RegistryContract
from tests.broker.registry.memory import MemoryRegistry


@pytest.fixture
def tree():
    return MemoryRegistry()


@pytest.fixture
def registry(tree):
    return Session(tree)


class TestSession(RegistryContract):
    async def test_a_closed_registry_accepts_no_mutations(self, registry):
        await registry.close()
        with pytest.raises(SessionExpired):
            await registry.create("/a")


async def test_ephemeral_nodes_go_with_their_session(tree):
    first, second = Session(tree), Session(tree)
    await first.create_ephemeral("/first")
    await second.create_ephemeral("/second")
    await first.close()
    assert tree.children("/") == ["second"]
    await second.expire()
    assert tree.children("/") == []


async def test_others_see_what_goes(tree):
    first, second = Session(tree), Session(tree)
    await first.create_ephemeral("/first")
    seen = []
    second.watch("/first", lambda changes: seen.extend(changes))
    await first.expire()
    assert [(change.path, change.node) for change in seen] == [("/first", None)]


async def test_an_expired_session_is_reported_and_refuses_operations(tree):
    session = Session(tree)
    told = []
    session.on_expired(lambda: told.append(True))
    await session.expire()
    await session.expire()
    assert told == [True]
    with pytest.raises(SessionExpired):
        await session.create("/a")


async def test_a_node_that_another_session_deleted_does_no_harm(tree):
    session = Session(tree)
    await session.create_ephemeral("/a")
    await tree.delete("/a")
    await session.expire()


async def test_a_session_that_is_cut_off_changes_nothing_and_sees_nothing(tree):
    session, other = Session(tree), Session(tree)
    seen = []
    session.watch("/", lambda changes: seen.extend(change.path for change in changes))
    session.cut_off()
    await other.create("/a")
    with pytest.raises(RegistryUnavailable):
        await session.multi([Create("/b")])
    assert seen == []
    session.restore()
    assert seen == ["/a"]
    await session.create("/b")
    assert seen == ["/a", "/b"]


async def test_a_session_that_is_cut_off_keeps_its_nodes_until_it_expires(tree):
    session = Session(tree)
    await session.create_ephemeral("/a")
    session.cut_off()
    assert tree.find("/a") is not None
    await session.expire()
    assert tree.find("/a") is None


async def test_a_node_goes_with_its_session_though_its_creator_was_cancelled_while_it_was_written(tmp_path):
    tree = EmbeddedRegistry.open(str(tmp_path / "registry.db"), durable=False)
    session = Session(tree)
    creating = asyncio.create_task(session.multi([Create("/durable"), Create("/own", ephemeral=True)]))
    await asyncio.sleep(0)
    creating.cancel()
    await session.expire()
    assert tree.find("/durable") is not None
    assert tree.find("/own") is None
    await tree.close()
