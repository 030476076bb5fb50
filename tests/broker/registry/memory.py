"""A registry in memory only, for tests of what uses a registry."""

from collections.abc import Callable, Sequence

from barnabas.broker.registry.errors import RegistryUnavailable
from barnabas.broker.registry.tree import Staging, Tree
from barnabas.broker.registry.tree_operations import Operation
from barnabas.broker.registry.tree_registry import TreeRegistry


class MemoryRegistry(TreeRegistry):
    def __init__(self) -> None:
        super().__init__(Tree())
        self._closed = False
        self._zxid = 0

    async def multi(self, operations: Sequence[Operation]) -> None:
        self.apply(operations)

    def apply(self, operations: Sequence[Operation]) -> None:
        """`multi` for callers that do not wait."""
        if self._closed:
            raise RegistryUnavailable("the registry is closed")
        self._zxid += 1
        staged = Staging(self.tree, self._zxid)
        for operation in operations:
            staged.stage(operation)
        self.tree.apply(staged.changes)
        self.notify(staged.changes)

    async def mirror(self, path: str) -> None:
        pass

    async def refresh(self, path: str) -> None:
        pass

    def on_expired(self, callback: Callable[[], None]) -> None:
        pass

    async def close(self) -> None:
        self._closed = True
