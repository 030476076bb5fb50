"""The registry in ZooKeeper, through kazoo.

What `mirror` was asked for is kept in memory, because reads are plain functions. Our own changes show when ZooKeeper
has confirmed them; those of others when ZooKeeper has reported them and they have been read. Both are compared by
ZooKeeper's transaction numbers, so that nothing goes back.

Not everything is watched: the states of partitions are written by the controller alone, and settings are announced
below /config/changes, after which `refresh` reads them again.

kazoo has threads of its own. Whatever it reports is passed to the loop before it takes effect. One object is one
session: when the session expires, the object is of no more use. A lost connection does not end the session: ephemeral
nodes still exist, and changes fail with RegistryUnavailable until ZooKeeper is back. Such a change may have happened.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import structlog
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    KazooException,
    NoNodeError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import EventType, WatchedEvent, ZnodeStat

from barnabas.broker.registry.errors import (
    RegistryUnavailable,
    SessionExpired,
)
from barnabas.broker.registry.registry import Change, Node
from barnabas.broker.registry.tree import ROOT, Tree, check_path, parent_of
from barnabas.broker.registry.tree_operations import Check, Create, Delete, Operation, Set
from barnabas.broker.registry.tree_registry import TreeRegistry
from barnabas.broker.registry.zookeeper_client import add, conflict_of, make_client, named_failures

if TYPE_CHECKING:
    from kazoo.interfaces import IAsyncResult

log = structlog.get_logger()

# Written by the controller, which knows what it wrote, or announced otherwise.
_UNWATCHED: Final = re.compile(r"/brokers/topics/[^/]+/.+|/config/(?:topics|brokers|users|clients|ips)/.+")
_PARTITION: Final = re.compile(r"/brokers/topics/[^/]+/partitions/[0-9]+")
_STATE: Final = re.compile(r"/brokers/topics/[^/]+/partitions/[0-9]+/state")
# How soon to read the tree again after a read has failed.
_LOOK_AGAIN_SECONDS: Final = 0.2
# How many reads are in flight while a large tree is loaded.
_READS_AT_ONCE: Final = 500


class ZooKeeperRegistry(TreeRegistry):
    """Opened by `open`, on the loop that uses it."""

    def __init__(self, client: KazooClient, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(Tree())
        self._client = client
        self._loop = loop
        self._mzxids: dict[str, int] = {}
        self._mirrored: list[str] = []
        self._on_expired: list[Callable[[], None]] = []
        self._events: deque[str] = deque()
        self._following: asyncio.Task[None] | None = None
        self._changes = asyncio.Lock()
        self._connected = asyncio.Event()
        self._read_all_again = False
        self._was_lost = False
        self._expired = False
        self._closed = False

    @classmethod
    async def open(cls, hosts: str, session_timeout_ms: int, connection_timeout_ms: int) -> ZooKeeperRegistry:
        """Connect. `hosts` may end in a chroot, which is created. RegistryUnavailable if nobody answers in time."""
        loop = asyncio.get_running_loop()
        servers = hosts.partition("/")[0]
        client = make_client(hosts, session_timeout_ms / 1000)
        registry = cls(client, loop)
        registry.name = f"ZooKeeper at {hosts}"
        client.add_listener(registry._on_state)
        client.start_async()
        try:
            async with asyncio.timeout(connection_timeout_ms / 1000):
                await registry._connected.wait()
            await registry._wait_for(client.ensure_path_async("/"))
        except (TimeoutError, KazooException) as error:
            await registry.close()
            raise RegistryUnavailable(
                f"ZooKeeper at {servers} cannot be reached within {connection_timeout_ms} ms"
            ) from error
        return registry

    # --- reading ---

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._on_expired.append(callback)

    async def mirror(self, path: str) -> None:
        """Reads everything, even what is already known: partitions' states are not watched."""
        if path not in self._mirrored:
            self._mirrored.append(path)
        async with self._changes:
            self._check_reachable()
            with named_failures():
                self._show(await self._read_below([path], everything=True))

    async def refresh(self, path: str) -> None:
        async with self._changes:
            self._check_reachable()
            with named_failures():
                self._show(await self._read([path]))

    # --- changing ---

    async def multi(self, operations: Sequence[Operation]) -> None:
        if not operations:
            return
        for operation in operations:
            if isinstance(operation, Create):
                check_path(operation.path)
        # Cancelling the caller must not keep the mirror from showing what ZooKeeper has.
        await asyncio.shield(self._loop.create_task(self._change(operations)))

    async def _change(self, operations: Sequence[Operation]) -> None:
        async with self._changes:
            self._check_reachable()
            transaction = self._client.transaction()
            for operation in operations:
                add(transaction, operation)
            # Reading afterwards can fail as well. Then the change has happened, and the caller checks.
            with named_failures(operations):
                results = await self._wait_for(transaction.commit_async())
                refusal = conflict_of(results, operations)
                if refusal is None:
                    await self._show_own(operations, results)
                else:
                    # The caller must see the conflicting state when it decides again.
                    await self._catch_up(operations)
            if refusal is not None:
                raise refusal

    def _check_reachable(self) -> None:
        if self._expired and not self._closed:
            raise SessionExpired("the session with ZooKeeper has expired")
        if self._closed or not self._connected.is_set():
            raise RegistryUnavailable("ZooKeeper cannot be reached")

    async def _show_own(self, operations: Sequence[Operation], results: Sequence[Any]) -> None:
        changes: list[Change] = []
        created: list[str] = []
        own = set(map(str, results))
        for operation, result in zip(operations, results, strict=True):
            match operation:
                case Create():
                    path = str(result)
                    # The reply has no stat; the creator of an ephemeral node asks for its number next.
                    changes.append(Change(path, Node(operation.data, 0, operation.ephemeral)))
                    if operation.ephemeral or (_is_watched(path) and not operation.sequential):
                        created.append(path)
                case Set():
                    stat: ZnodeStat = result
                    self._mzxids[operation.path] = stat.mzxid
                    known = self.tree.find(operation.path)
                    node = Node(operation.data, stat.version, bool(stat.ephemeralOwner), stat.czxid)
                    if known is None or known != node:
                        changes.append(Change(operation.path, node))
                case Delete():
                    changes.append(Change(operation.path, None))
                case Check():
                    pass
        numbers = {}
        gone: list[Change] = []
        for path, found in zip(created, await self._get(created), strict=True):
            if found is not None:
                numbers[path] = found
            else:  # somebody else has deleted it already, and no watch will report that
                gone.append(Change(path, None))
        below = await self._list([path for path, found in numbers.items() if found.node and not found.node.ephemeral])
        self._show([*(numbers.get(change.path, change) if change.node else change for change in changes), *gone])
        # From now on ZooKeeper reports what others do there. What they did before is read.
        news = [path for path, names in below.items() if any(f"{path}/{name}" not in own for name in names)]
        if news:
            self._follow(*news)

    async def _catch_up(self, operations: Sequence[Operation]) -> None:
        paths = {operation.path for operation in operations if not isinstance(operation, Create)}
        paths |= {operation.path for operation in operations if isinstance(operation, Create)}
        self._show(await self._read([path for path in paths if self._is_mirrored(path)]))

    async def close(self) -> None:
        self._closed = True
        self._expired = True
        if self._following is not None:
            self._following.cancel()
        await self._loop.run_in_executor(None, self._stop)

    def _stop(self) -> None:
        self._client.stop()
        self._client.close()

    # --- what ZooKeeper says about the session ---

    def _on_state(self, state: str) -> None:
        """On one of kazoo's threads."""
        self._soon(self._note_state, state)

    def _note_state(self, state: str) -> None:
        if self._closed:
            return
        if state == KazooState.CONNECTED:
            if not self._expired:
                self._connected.set()
                if self._was_lost:
                    log.info("connection to ZooKeeper is back")
                    # kazoo reports watches that fired meanwhile, but not the outcome of our own uncertain changes.
                    self._read_all_again = True
                    self._follow(*self._mirrored)
        elif state == KazooState.SUSPENDED:
            log.warning("connection to ZooKeeper lost")
            self._was_lost = True
            self._connected.clear()
        elif state == KazooState.LOST and not self._expired:
            log.error("session with ZooKeeper has expired")
            self._expired = True
            self._connected.clear()
            for callback in self._on_expired:
                callback()

    # --- what others change ---

    def _on_event(self, event: WatchedEvent) -> None:
        """On one of kazoo's threads."""
        if event.type != EventType.NONE:
            self._soon(self._follow, event.path)

    def _follow(self, *paths: str) -> None:
        self._events.extend(paths)
        if self._following is None:
            self._following = self._loop.create_task(self._follow_events())

    async def _follow_events(self) -> None:
        try:
            while self._events:
                paths = list(dict.fromkeys(self._events))
                everything, self._read_all_again = self._read_all_again, False
                self._events.clear()
                async with self._changes:
                    self._show(await self._read_below(paths, everything=everything))
        except (KazooException, KazooTimeoutError) as error:
            log.warning("changes in ZooKeeper cannot be followed", error=repr(error))
            # The connection is gone. It may be back by now: what was read before it was lost fails only afterwards.
            self._read_all_again = True
            self._events.extend(self._mirrored)
            self._loop.call_later(_LOOK_AGAIN_SECONDS, self._follow_if_connected)
        finally:
            self._following = None

    def _follow_if_connected(self) -> None:
        """Without a connection, the next one starts it."""
        if self._events and self._connected.is_set():
            self._follow()

    # --- reading from ZooKeeper ---

    async def _read_below(self, paths: Sequence[str], *, everything: bool = False) -> list[Change]:
        """What has changed at these paths and below, as far as it is new: parents first, deletions last.

        With `everything`, what is watched is read as well.
        """
        changes: list[Change] = []
        gone: list[Change] = []
        level = [path for path in paths if self._is_mirrored(path)]
        while level:
            below: list[str] = []
            for start in range(0, len(level), _READS_AT_ONCE):
                some = level[start : start + _READS_AT_ONCE]
                found = await self._get(some)
                names = await self._list(
                    [
                        path
                        for path, each in zip(some, found, strict=True)
                        if each is not None and not _STATE.fullmatch(path)
                    ]
                )
                for path, each in zip(some, found, strict=True):
                    if each is None:
                        gone += self._removal(path)
                        continue
                    changes += self._news(each)
                    there = {f"{path if path != ROOT else ''}/{name}" for name in names.get(path, ())}
                    known = self._below(path)
                    for lost in known - there:
                        gone += self._removal(lost)
                    # Watched nodes report their changes; the others are read again with their parent.
                    below += [
                        child for child in sorted(there) if everything or child not in known or not _is_watched(child)
                    ]
            level = []
            for path in filter(self._is_mirrored, below):
                if _PARTITION.fullmatch(path):
                    # Its parent has just named it, and it has no data and one child: there may be thousands of them.
                    changes += self._news(Change(path, self.tree.find(path) or Node(b"")))
                    level.append(f"{path}/state")
                else:
                    level.append(path)
        return changes + gone

    async def _read(self, paths: Sequence[str]) -> list[Change]:
        """What has changed at these paths. Below a node that was not known, everything is read as well: only then is it
        reported what others do there."""
        known: list[str] = []
        new: list[str] = []
        for path in paths:
            (new if self.tree.find(path) is None and self._is_mirrored(path) else known).append(path)
        changes: list[Change] = []
        for path, found in zip(known, await self._get(known), strict=True):
            changes += self._removal(path) if found is None else self._news(found)
        return [*changes, *await self._read_below(new)]

    async def _get(self, paths: Sequence[str]) -> list[Change | None]:
        """The nodes at these paths, each with its watch where it has one."""
        asked = [self._client.get_async(path, self._on_event if _is_watched(path) else None) for path in paths]
        found: list[Change | None] = []
        for path, result in zip(paths, asked, strict=True):
            try:
                data, stat = await self._wait_for(result)
            except NoNodeError:
                if _is_watched(path) and await self._wait_for(self._client.exists_async(path, self._on_event)):
                    # It was created between the two reads. The watch came too late to report that.
                    found += await self._get([path])
                else:
                    found.append(None)
                continue
            node = Node(data, stat.version, bool(stat.ephemeralOwner), stat.czxid)
            if stat.mzxid >= self._mzxids.get(path, -1):
                self._mzxids[path] = stat.mzxid
                found.append(Change(path, node))
            else:
                found.append(Change(path, self.tree.find(path) or node))
        return found

    async def _list(self, paths: Iterable[str]) -> dict[str, list[str]]:
        asked = {
            path: self._client.get_children_async(path, self._on_event if _is_watched(path) else None) for path in paths
        }
        names: dict[str, list[str]] = {}
        for path, result in asked.items():
            try:
                names[path] = await self._wait_for(result)
            except NoNodeError:
                names[path] = []
        return names

    def _news(self, found: Change) -> list[Change]:
        return [] if self.tree.find(found.path) == found.node else [found]

    def _removal(self, path: str) -> list[Change]:
        """The deletion of a node and of all below it, children first."""
        if self.tree.find(path) is None:
            return []
        below = [change for child in sorted(self._below(path)) for change in self._removal(child)]
        return [*below, Change(path, None)]

    def _below(self, path: str) -> set[str]:
        if self.tree.find(path) is None:
            return set()
        prefix = "" if path == ROOT else path
        return {f"{prefix}/{name}" for name in self.tree.children(path)}

    def _is_mirrored(self, path: str) -> bool:
        return any(path == root or root == ROOT or path.startswith(root + "/") for root in self._mirrored)

    # --- showing ---

    def _show(self, changes: Sequence[Change]) -> None:
        """Make the mirror show changes, and call its watchers."""
        shown: list[Change] = []
        for change in changes:
            path, node = change
            if node is None:
                if self.tree.find(path) is None:
                    continue
                self.tree.remove(path)
                self._mzxids.pop(path, None)
            else:
                if self.tree.find(path) == node:
                    continue
                self._put_parents(path)
                self.tree.put(path, node)
            shown.append(change)
        self.notify(shown)

    def _put_parents(self, path: str) -> None:
        """Parents that are not mirrored themselves."""
        above = parent_of(path)
        if self.tree.find(above) is None:
            self._put_parents(above)
            self.tree.put(above, Node(b""))

    # --- from kazoo's threads to the loop ---

    def _soon(self, call: Callable[..., None], *arguments: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)

    def _wait_for(self, result: IAsyncResult) -> Awaitable[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()

        def settle(error: BaseException | None, value: Any) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        def done(result: IAsyncResult) -> None:
            """On one of kazoo's threads."""
            error = result.exception
            self._soon(settle, error, None if error is not None else result.value)

        result.rawlink(done)
        return future


def _is_watched(path: str) -> bool:
    return _UNWATCHED.fullmatch(path) is None
