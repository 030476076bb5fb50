"""A broker's session with a tree that several brokers of one process share.

Each broker has a session of its own, as it would have with ZooKeeper: its ephemeral nodes go when the session ends. For
tests, a session can be cut off: then it can change nothing and is told nothing, until it is restored or expires. It
expires when its holder says so; a tree in memory cannot lose a session by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from barnabas.broker.registry.errors import NoNode, RegistryUnavailable, SessionExpired
from barnabas.broker.registry.registry import Change, Node, Registry, WatchCallback
from barnabas.broker.registry.tree_operations import Create, Delete, Operation


class Session(Registry):
    def __init__(self, tree: Registry) -> None:
        self.name = tree.name
        self._tree = tree
        self._ephemeral: dict[str, int] = {}  # own nodes, each with the number of the transaction that created it
        self._watches: list[Callable[[], None]] = []
        self._on_expired: list[Callable[[], None]] = []
        self._missed: list[tuple[WatchCallback, Sequence[Change]]] = []
        self._under_way: dict[asyncio.Task[None], None] = {}
        self._cut_off = False
        self._expired = False

    def find(self, path: str) -> Node | None:
        return self._tree.find(path)

    def get(self, path: str) -> Node:
        return self._tree.get(path)

    def children(self, path: str) -> list[str]:
        return self._tree.children(path)

    def watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        def hear(changes: Sequence[Change]) -> None:
            if self._cut_off:
                self._missed.append((callback, changes))
            else:
                callback(changes)

        cancel = self._tree.watch(path, hear)
        self._watches.append(cancel)
        return cancel

    async def multi(self, operations: Sequence[Operation]) -> None:
        if self._expired:
            raise SessionExpired("the session with the registry has expired")
        if self._cut_off:
            raise RegistryUnavailable("the registry is out of reach")
        # The tree carries it out even if the caller is cancelled, and the session has to know what is its own.
        carrying_out = asyncio.get_running_loop().create_task(self._carry_out(operations))
        self._under_way[carrying_out] = None
        carrying_out.add_done_callback(lambda task: self._under_way.pop(task, None))
        await asyncio.shield(carrying_out)

    async def _carry_out(self, operations: Sequence[Operation]) -> None:
        await self._tree.multi(operations)
        for operation in operations:
            if isinstance(operation, Create) and operation.ephemeral:
                node = self._tree.find(operation.path)
                if node is not None:
                    self._ephemeral[operation.path] = node.czxid
            elif isinstance(operation, Delete):
                self._ephemeral.pop(operation.path, None)

    async def mirror(self, path: str) -> None:
        """The tree is in memory anyway."""

    async def refresh(self, path: str) -> None:
        if self._expired:
            raise SessionExpired("the session with the registry has expired")
        if self._cut_off:
            raise RegistryUnavailable("the registry is out of reach")

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._on_expired.append(callback)

    async def close(self) -> None:
        """End the session. The tree stays open for the others."""
        if not self._expired:
            self._expired = True
            await self._end()

    # --- what a test or a failure does to it ---

    def cut_off(self) -> None:
        self._cut_off = True

    def restore(self) -> None:
        """Reach the registry again, and catch up with what happened meanwhile."""
        self._cut_off = False
        missed, self._missed = self._missed, []
        if self._expired:
            self._tell_expired()
            return
        for callback, changes in missed:
            callback(changes)

    async def expire(self) -> None:
        """Make the registry end this session. Its holder learns that when it is not cut off."""
        if self._expired:
            return
        self._expired = True
        await self._end()
        if not self._cut_off:
            self._tell_expired()

    def _tell_expired(self) -> None:
        callbacks, self._on_expired = self._on_expired, []
        for callback in callbacks:
            callback()

    async def _end(self) -> None:
        for cancel in self._watches:
            cancel()
        if self._under_way:
            await asyncio.wait(list(self._under_way))
        # Not those that another session has created in their place.
        own, self._ephemeral = self._ephemeral, {}
        for path, czxid in sorted(own.items()):
            node = self._tree.find(path)
            if node is not None and node.czxid == czxid:
                with contextlib.suppress(NoNode):
                    await self._tree.multi([Delete(path)])
