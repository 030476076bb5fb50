"""A registry in memory alone, for tests of what stands on a registry."""

import asyncio
from collections.abc import Callable, Sequence

from broker.registry.errors import RegistryUnavailable
from broker.registry.operations import Operation
from broker.registry.registry import Node, Registry, WatchCallback
from broker.registry.tree import ROOT, Staging, Tree


class MemoryRegistry(Registry):
    def __init__(self) -> None:
        self._tree = Tree()
        self._watches: list[tuple[str, WatchCallback]] = []
        self._closed = False

    def find(self, path: str) -> Node | None:
        return self._tree.find(path)

    def get(self, path: str) -> Node:
        return self._tree.get(path)

    def children(self, path: str) -> list[str]:
        return self._tree.children(path)

    def watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        watch = (path, callback)
        self._watches.append(watch)
        return lambda: self._watches.remove(watch) if watch in self._watches else None

    async def multi(self, operations: Sequence[Operation]) -> None:
        self.apply(operations)

    def apply(self, operations: Sequence[Operation]) -> None:
        """`multi` for those who do not want to wait."""
        if self._closed:
            raise RegistryUnavailable("the registry is closed")
        staged = Staging(self._tree)
        for operation in operations:
            staged.stage(operation)
        self._tree.apply(staged.changes)
        for path, callback in tuple(self._watches):
            below = path if path == ROOT else path + "/"
            seen = [change for change in staged.changes if change.path == path or change.path.startswith(below)]
            try:
                if seen:
                    callback(seen)
            except Exception as error:
                asyncio.get_running_loop().call_exception_handler({"message": "a watch failed", "exception": error})

    async def close(self) -> None:
        self._closed = True
