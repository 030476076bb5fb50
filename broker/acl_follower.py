"""Access rules in the registry: any broker may change them, and every broker follows them.

A change writes the nodes of its patterns and, in the same transaction, announces them to brokers that do not watch the
nodes themselves, such as Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

import structlog

from barnabas.broker.announcements import Announcements
from barnabas.broker.clock import Clock
from barnabas.broker.controller.znodes import MalformedNode
from barnabas.broker.registry.errors import Conflict, RegistryError
from barnabas.broker.registry.registry import Change, Registry
from barnabas.broker.registry.skeleton import make_parents
from barnabas.broker.registry.tree import is_path, parent_of
from barnabas.broker.registry.tree_operations import Create, Delete, Operation, Set
from barnabas.broker.security import acl_nodes
from barnabas.broker.security.acls import Acl, Entry, Pattern
from barnabas.broker.security.authorizer import Authorizer
from barnabas.broker.server.pieces import parts

log = structlog.get_logger()

# Makes the new rules of a pattern from the current ones and those of a request.
_Change = Callable[[frozenset[Entry], frozenset[Entry]], frozenset[Entry]]

# How many patterns are written in one transaction.
_AT_A_TIME: Final = 100


class AclFollower:
    def __init__(
        self, authorizer: Authorizer, clock: Clock, spawn: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        """`spawn` runs work in the background."""
        self._authorizer = authorizer
        self._registry: Registry | None = None
        self._unwatch: list[Callable[[], None]] = []
        self._announcements = [
            Announcements(path, clock, spawn) for path in (acl_nodes.LITERAL_CHANGES, acl_nodes.EXTENDED_CHANGES)
        ]

    async def follow(self, registry: Registry) -> None:
        """Read the rules, and follow them in a new session. MalformedNode if one cannot be read."""
        self.stop()
        self._registry = registry
        for path in acl_nodes.MIRRORED:
            await registry.mirror(path)
        await make_parents(registry, acl_nodes.SKELETON)
        self._authorizer.acls.replace(dict(_all(registry)))
        self._authorizer.changed()
        self._unwatch = [registry.watch(path, self._on_changes) for path in (acl_nodes.LITERAL, acl_nodes.EXTENDED)]
        for announcements in self._announcements:
            announcements.follow(registry)

    def stop(self) -> None:
        for cancel in self._unwatch:
            cancel()
        self._unwatch = []
        for announcements in self._announcements:
            announcements.stop()

    def _on_changes(self, changes: Sequence[Change]) -> None:
        for path, node in changes:
            pattern = acl_nodes.pattern_at(path)
            if pattern is None:
                continue
            try:
                entries: Iterable[Entry] = () if node is None else acl_nodes.read_entries(path, node)
            except MalformedNode as error:
                log.error("access rules cannot be read; the previous ones stay in force", reason=str(error))
                continue
            self._authorizer.acls.put(pattern, entries)
        self._authorizer.changed()

    # --- changing ---

    async def add(self, acls: Iterable[Acl]) -> None:
        await self._change(acls, lambda present, entries: present | entries)

    async def remove(self, acls: Iterable[Acl]) -> None:
        await self._change(acls, lambda present, entries: present - entries)

    async def _change(self, acls: Iterable[Acl], change: _Change) -> None:
        registry = self._registry
        if registry is None:
            raise RegistryError("there is no session with the registry yet")
        wanted: dict[Pattern, set[Entry]] = {}
        for acl in acls:
            wanted.setdefault(acl.pattern, set()).add(acl.entry)
        for some in parts(list(wanted.items()), _AT_A_TIME):
            while not await self._changed(registry, some, change):
                pass

    async def _changed(self, registry: Registry, wanted: Sequence[tuple[Pattern, set[Entry]]], change: _Change) -> bool:
        """Change some patterns. False if they have changed meanwhile."""
        paths = [acl_nodes.path_of(pattern) for pattern, _ in wanted]
        before = [registry.find(path) for path in paths]
        operations: list[Operation] = []
        for pattern, entries in wanted:
            operations += _operations(registry, pattern, entries, change)
        try:
            if operations:
                await registry.multi(_once(operations))
        except Conflict:
            for path in paths:
                await registry.refresh(path)
            if before == [registry.find(path) for path in paths]:  # it does not fit the tree that it was decided from
                raise
            return False
        return True


def can_be_kept(pattern: Pattern) -> bool:
    """Whether a pattern's name may be part of a path."""
    return is_path(acl_nodes.path_of(pattern))


def _operations(registry: Registry, pattern: Pattern, wanted: set[Entry], change: _Change) -> list[Operation]:
    """The operations that change the rules of a pattern."""
    path = acl_nodes.path_of(pattern)
    node = registry.find(path)
    present = frozenset() if node is None else acl_nodes.read_entries(path, node)
    entries = change(present, frozenset(wanted))
    if entries == present:
        return []
    data = acl_nodes.write_entries(entries)
    written: list[Operation]
    if node is None:
        written = [*_parents(registry, path), Create(path, data)]
    elif entries or registry.children(path):  # a name with a slash may have others below it
        written = [Set(path, data, node.version)]
    else:
        written = [Delete(path, node.version)]
    return [*written, acl_nodes.announcement(pattern)]


def _parents(registry: Registry, path: str) -> list[Operation]:
    parent = parent_of(path)
    return [] if registry.find(parent) is not None else [*_parents(registry, parent), Create(parent)]


def _once(operations: Iterable[Operation]) -> list[Operation]:
    """Two patterns may have the same missing parent."""
    made: set[str] = set()
    result = []
    for operation in operations:
        if isinstance(operation, Create) and not operation.sequential:
            if operation.path in made:
                if not operation.data:
                    continue
                operation = Set(operation.path, operation.data)
            made.add(operation.path)
        result.append(operation)
    return result


def _all(registry: Registry) -> Iterable[tuple[Pattern, frozenset[Entry]]]:
    waiting = [acl_nodes.LITERAL, acl_nodes.PREFIXED]
    while waiting:
        path = waiting.pop()
        waiting += (f"{path}/{name}" for name in registry.children(path))
        pattern = acl_nodes.pattern_at(path)
        if pattern is not None:
            entries = acl_nodes.read_entries(path, registry.get(path))
            if entries:
                yield pattern, entries
