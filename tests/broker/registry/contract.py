"""What every registry must do, whatever keeps its tree.

A test module makes a subclass of `RegistryContract` whose name starts with "Test", with a fixture `registry`.
"""

import asyncio
from collections.abc import Sequence

import pytest

from barnabas.broker.registry.errors import (
    BadVersion,
    Conflict,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    RegistryUnavailable,
)
from barnabas.broker.registry.registry import Change, Registry
from barnabas.broker.registry.tree_operations import Check, Create, Delete, Operation, Set


class RegistryContract:
    async def test_a_created_node_can_be_read(self, registry: Registry) -> None:
        await registry.create("/a", b"one")
        node = registry.get("/a")
        assert (node.data, node.version) == (b"one", 0)
        assert registry.find("/a") == node

    async def test_nodes_that_do_not_exist(self, registry: Registry) -> None:
        assert registry.find("/a") is None
        with pytest.raises(NoNode) as caught:
            registry.get("/a")
        assert caught.value.path == "/a"
        with pytest.raises(NoNode):
            registry.children("/a")
        with pytest.raises(NoNode):
            await registry.set("/a", b"")
        with pytest.raises(NoNode):
            await registry.delete("/a")

    async def test_the_root_is_always_there(self, registry: Registry) -> None:
        assert registry.find("/") is not None
        assert registry.children("/") == []

    async def test_a_node_is_created_once(self, registry: Registry) -> None:
        await registry.create("/a", b"one")
        with pytest.raises(NodeExists):
            await registry.create("/a", b"two")
        assert registry.get("/a").data == b"one"

    async def test_a_parent_comes_first(self, registry: Registry) -> None:
        with pytest.raises(NoNode):
            await registry.create("/a/b")
        await registry.create("/a")
        await registry.create("/a/b")

    async def test_children_are_sorted_names(self, registry: Registry) -> None:
        await registry.create("/a")
        for name in ("c", "b", "bb"):
            await registry.create(f"/a/{name}")
        await registry.create("/a/b/below")
        await registry.create("/ab")
        assert registry.children("/a") == ["b", "bb", "c"]
        assert registry.children("/a/c") == []

    async def test_set_replaces_the_data_and_raises_the_version(self, registry: Registry) -> None:
        await registry.create("/a", b"one")
        await registry.set("/a", b"two")
        await registry.set("/a", b"three", version=1)
        node = registry.get("/a")
        assert (node.data, node.version) == (b"three", 2)

    async def test_set_refuses_another_version(self, registry: Registry) -> None:
        await registry.create("/a", b"one")
        with pytest.raises(BadVersion):
            await registry.set("/a", b"two", version=1)
        assert registry.get("/a").data == b"one"

    async def test_delete(self, registry: Registry) -> None:
        await registry.create("/a")
        await registry.create("/a/b")
        with pytest.raises(NotEmpty):
            await registry.delete("/a")
        with pytest.raises(BadVersion):
            await registry.delete("/a/b", version=1)
        await registry.delete("/a/b", version=0)
        await registry.delete("/a")
        assert registry.find("/a") is None
        assert registry.children("/") == []

    async def test_a_node_that_comes_back_starts_at_version_0(self, registry: Registry) -> None:
        await registry.create("/a")
        await registry.set("/a", b"changed")
        await registry.delete("/a")
        await registry.create("/a")
        assert registry.get("/a").version == 0

    async def test_an_ephemeral_node_is_a_leaf(self, registry: Registry) -> None:
        await registry.create_ephemeral("/a", b"here")
        assert registry.get("/a").data == b"here"
        assert registry.get("/a").ephemeral
        with pytest.raises(NoChildrenForEphemerals):
            await registry.create("/a/b")
        await registry.set("/a", b"still here")
        assert registry.get("/a").ephemeral
        await registry.delete("/a")
        await registry.create("/a")
        assert not registry.get("/a").ephemeral

    @pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/.", "/a/..", "/a/../b", "/\0"])
    async def test_invalid_paths(self, registry: Registry, path: str) -> None:
        await registry.create("/a")
        with pytest.raises(ValueError, match="not a path"):
            await registry.create(path)

    @pytest.mark.parametrize("path", ["/...", "/.a", "/a..", "/<default>", "/a b", "/ä"])
    async def test_unusual_paths(self, registry: Registry, path: str) -> None:
        await registry.create(path)
        assert registry.children("/") == [path[1:]]

    async def test_multi_sees_its_own_operations(self, registry: Registry) -> None:
        await registry.multi(
            [
                Create("/a", b"one"),
                Create("/a/b"),
                Set("/a", b"two", version=0),
                Check("/a", version=1),
                Delete("/a/b"),
                Create("/c"),
                Delete("/c"),
            ]
        )
        assert registry.get("/a").data == b"two"
        assert registry.children("/") == ["a"]
        assert registry.children("/a") == []

    @pytest.mark.parametrize(
        ("last", "error"),
        [
            (Create("/a"), NodeExists),
            (Create("/x/y"), NoNode),
            (Set("/a", b"", version=7), BadVersion),
            (Delete("/a"), NotEmpty),
            (Check("/a", version=7), BadVersion),
            (Check("/x"), NoNode),
        ],
    )
    async def test_multi_is_whole_or_nothing(self, registry: Registry, last: Operation, error: type[Conflict]) -> None:
        await registry.create("/a", b"one")
        await registry.create("/a/kept")
        with pytest.raises(error):
            await registry.multi([Set("/a", b"two"), Create("/a/new"), Delete("/a/kept"), Create("/a/kept"), last])
        assert registry.get("/a")[:3] == (b"one", 0, False)
        assert registry.children("/a") == ["kept"]

    async def test_an_empty_multi(self, registry: Registry) -> None:
        await registry.multi([])

    async def test_mutations_happen_in_the_order_of_their_calls(self, registry: Registry) -> None:
        await registry.create("/a")
        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(registry.set("/a", b"%d" % number, version=number))
        assert registry.get("/a")[:3] == (b"99", 100, False)

    async def test_one_that_fails_among_many_at_once(self, registry: Registry) -> None:
        outcomes = await asyncio.gather(
            registry.create("/a", b"first"),
            registry.multi([Create("/b"), Create("/a", b"second")]),
            registry.create("/b", b"third"),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), NodeExists, type(None)]
        assert registry.get("/a").data == b"first"
        assert registry.get("/b").data == b"third"

    async def test_a_cancelled_caller_leaves_a_whole_mutation(self, registry: Registry) -> None:
        task = asyncio.create_task(registry.multi([Create("/a"), Create("/a/b")]))
        await asyncio.sleep(0)
        task.cancel()
        await registry.create("/c")
        assert registry.children("/") == ["a", "c"]
        assert registry.children("/a") == ["b"]

    async def test_a_watch_reports_the_path_and_everything_below(self, registry: Registry) -> None:
        await registry.create("/a")
        seen: list[tuple[str, bytes | None]] = []
        registry.watch("/a/b", lambda changes: seen.extend((path, node and node.data) for path, node in changes))
        await registry.create("/a/b", b"1")
        await registry.create("/a/bc", b"not below")
        await registry.create("/a/b/c", b"2")
        await registry.set("/a", b"above")
        await registry.set("/a/b", b"3")
        await registry.delete("/a/b/c")
        await registry.delete("/a/b")
        await registry.create_ephemeral("/a/b", b"4")
        assert seen == [
            ("/a/b", b"1"),
            ("/a/b/c", b"2"),
            ("/a/b", b"3"),
            ("/a/b/c", None),
            ("/a/b", None),
            ("/a/b", b"4"),
        ]

    async def test_a_watch_of_the_root_sees_everything(self, registry: Registry) -> None:
        seen: list[str] = []
        registry.watch("/", lambda changes: seen.extend(change.path for change in changes))
        await registry.multi([Create("/a"), Create("/a/b")])
        assert seen == ["/a", "/a/b"]

    async def test_a_watch_can_read_the_node_that_changed(self, registry: Registry) -> None:
        read: list[bytes] = []
        registry.watch("/a", lambda changes: read.extend(registry.get(change.path).data for change in changes))
        await registry.create("/a", b"one")
        assert read == [b"one"]

    async def test_nothing_is_reported_that_did_not_happen(self, registry: Registry) -> None:
        seen: list[Sequence[Change]] = []
        registry.watch("/", seen.append)
        with pytest.raises(NoNode):
            await registry.multi([Create("/a"), Delete("/b")])
        assert seen == []

    async def test_a_watch_ends(self, registry: Registry) -> None:
        seen: list[Sequence[Change]] = []
        cancel = registry.watch("/a", seen.append)
        cancel()
        cancel()
        await registry.create("/a")
        assert seen == []

    async def test_a_watch_that_raises_is_reported_and_does_no_harm(self, registry: Registry) -> None:
        reported: list[BaseException] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        seen: list[Sequence[Change]] = []

        def fail(changes: Sequence[Change]) -> None:
            raise LookupError("a bug")

        registry.watch("/a", fail)
        registry.watch("/a", seen.append)
        await registry.create("/a")
        assert [type(error) for error in reported] == [LookupError]
        assert len(seen) == 1

    async def test_a_closed_registry_accepts_no_mutations(self, registry: Registry) -> None:
        await registry.close()
        with pytest.raises(RegistryUnavailable):
            await registry.create("/a")

    async def test_later_ephemeral_nodes_have_higher_transaction_numbers(self, registry: Registry) -> None:
        await registry.create_ephemeral("/a")
        first = registry.get("/a").czxid
        await registry.set("/a", b"more")
        assert registry.get("/a").czxid == first
        await registry.delete("/a")
        await registry.create_ephemeral("/a")
        assert registry.get("/a").czxid > first

    async def test_sequential_nodes_are_numbered_in_order(self, registry: Registry) -> None:
        await registry.create("/a")
        for _ in range(3):
            await registry.multi([Create("/a/n_", b"", sequential=True)])
        first, second, third = registry.children("/a")
        assert first < second < third
        assert all(name.startswith("n_") and len(name) == 12 for name in (first, second, third))
        await registry.delete(f"/a/{third}")
        await registry.multi([Create("/a/n_", b"", sequential=True)])
        assert registry.children("/a")[2] > third
