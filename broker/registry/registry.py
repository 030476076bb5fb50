"""The interface of the registry: a tree of paths, each with data and a version.

It is ZooKeeper's, reduced to what a broker needs, so that both an embedded tree and ZooKeeper itself can implement it:

- Versions start at 0 and rise by one with each `set`. A node that is deleted and created again starts at 0.
- A parent comes before its children and goes after them. The root is always there.
- `multi` is a transaction. The other mutations are transactions of one operation.
- Mutations take effect in the order in which they were called. One that returns is durable; one that raises a
  `Conflict` changed nothing. Its caller may be cancelled: the mutation then still happens completely or
  not at all.
- Reads come from memory, so they are plain functions. When a mutation returns or raises, they show at least the state
  that decided its outcome.
- A registry object is one session. Ephemeral nodes belong to the session that created them, and go when it ends.
- Watches are persistent and recursive. A callback gets the changes of a transaction in order, after they are durable
  and readable, before the mutation returns to its caller. It must not raise; one that does is reported to the loop's
  exception handler, and the others are called nevertheless.

Everything belongs to the event loop's thread.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.broker.registry.tree_operations import ANY_VERSION, Create, Delete, Operation, Set


class Node(NamedTuple):
    """What is at a path."""

    data: bytes
    version: int = 0
    ephemeral: bool = False
    czxid: int = 0
    """The number of the transaction that created it; numbers rise. 0: not known."""


class Change(NamedTuple):
    """A changed path: its new node, or None if it was deleted."""

    path: str
    node: Node | None


WatchCallback = Callable[[Sequence[Change]], None]


class Registry(ABC):
    """A tree of cluster facts; the module's description is its contract."""

    name = "the registry"  # for sentences about it

    @abstractmethod
    def find(self, path: str) -> Node | None:
        """The node at `path`, if there is one."""

    @abstractmethod
    def get(self, path: str) -> Node:
        """The node at `path`; raises NoNode."""

    @abstractmethod
    def children(self, path: str) -> list[str]:
        """The names right below `path`, sorted; raises NoNode."""

    @abstractmethod
    def watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        """Call `callback` with every change at or below `path`, which need not exist. Returns what cancels this."""

    @abstractmethod
    async def multi(self, operations: Sequence[Operation]) -> None:
        """Do all of `operations` in order, or none; raises the Conflict of the first that does not fit."""

    @abstractmethod
    async def mirror(self, path: str) -> None:
        """Keep `path` and everything below it in memory from now on."""

    @abstractmethod
    async def refresh(self, path: str) -> None:
        """Read the node at `path` again: after an uncertain change, and where it is not watched.

        RegistryUnavailable if it cannot be read.
        """

    @abstractmethod
    def on_expired(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when this session is over without having been closed."""

    @abstractmethod
    async def close(self) -> None:
        """Finish pending mutations, refuse new ones, drop the ephemeral nodes."""

    async def create(self, path: str, data: bytes = b"") -> None:
        await self.multi([Create(path, data)])

    async def create_ephemeral(self, path: str, data: bytes = b"") -> None:
        await self.multi([Create(path, data, ephemeral=True)])

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> None:
        await self.multi([Set(path, data, version)])

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])
