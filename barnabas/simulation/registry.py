"""A simulated registry: one tree, and sessions that reach it over a network that may be slow or cut.

It is to a broker what ZooKeeper is. A session has a copy of the tree that lags behind. What happens to the tree
reaches each session in order, and the answer to a mutation comes after everything that happened before it. A session
that is not heard of for its timeout is expired by the registry; the broker learns of that when it reaches the registry
again. A mutation that was under way when the connection was lost may have happened: its caller gets
RegistryUnavailable and cannot know.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from barnabas.broker.registry.errors import Conflict, RegistryUnavailable, SessionExpired
from barnabas.broker.registry.registry import Change
from barnabas.broker.registry.tree import Staging, Tree
from barnabas.broker.registry.tree_operations import Delete, Operation
from barnabas.broker.registry.tree_registry import TreeRegistry
from barnabas.simulation.network import Fabric

HOST: Final = "registry"
SESSION_TIMEOUT: Final = 6.0

_PINGS: Final = 3  # in a session's timeout


class _Request(NamedTuple):
    number: int
    operations: Sequence[Operation] | None  # None is a sign of life


class _News(NamedTuple):
    """What a session hears: changes, and perhaps the outcome of its own request."""

    changes: Sequence[Change] = ()
    number: int = 0
    outcome: Exception | None = None
    expired: bool = False


class RegistryServer:
    """The tree itself. It never fails, but it can be out of reach."""

    def __init__(self, fabric: Fabric | None, loop: asyncio.AbstractEventLoop) -> None:
        """Without a network everybody reaches it at once."""
        self.fabric = fabric
        self.loop = loop
        self.tree = Tree()
        self.zxid = 0
        self.sessions: dict[int, SimulatedSession] = {}  # those that have not ended, by number
        self.ephemeral: dict[str, int] = {}  # and the session that each belongs to
        # Called with every transaction: its number, the session that asked for it, and its changes.
        self.observe: Callable[[int, SimulatedSession | None, Sequence[Change]], None] | None = None
        self.session_timeout = SESSION_TIMEOUT
        self._deadlines: dict[int, asyncio.TimerHandle] = {}
        self._numbers = 0

    def connect(self, name: str, host: str, loop: asyncio.AbstractEventLoop) -> SimulatedSession:
        """A new session, which has the tree as it is now."""
        self._numbers += 1
        session = SimulatedSession(self, self._numbers, name, host, loop)
        self.sessions[session.number] = session
        for path, node in self.tree.nodes():
            session.tree.put(path, node)
        self.heard_of(session)
        return session

    def heard_of(self, session: SimulatedSession) -> None:
        deadline = self._deadlines.pop(session.number, None)
        if deadline is not None:
            deadline.cancel()
        if self.fabric is not None:
            self._deadlines[session.number] = self.loop.call_later(session.timeout, self.end, session)

    def take(self, session: SimulatedSession, request: _Request) -> None:
        """A request has arrived."""
        if session.number not in self.sessions:
            session.send(_News(expired=True))
            return
        self.heard_of(session)
        if request.operations is None:
            session.send(_News(number=request.number))
            return
        outcome, _ = self.apply(request.operations, session)
        session.send(_News(number=request.number, outcome=outcome))

    def apply(
        self, operations: Sequence[Operation], session: SimulatedSession | None
    ) -> tuple[Exception | None, Sequence[Change]]:
        """Carry out a transaction, and have everybody hear of it."""
        self.zxid += 1
        staged = Staging(self.tree, self.zxid)
        try:
            for operation in operations:
                staged.stage(operation)
        except (Conflict, ValueError) as error:
            return error, ()
        changes = staged.changes
        self.tree.apply(changes)
        for change in changes:
            if change.node is None:
                self.ephemeral.pop(change.path, None)
            elif change.node.ephemeral and session is not None:
                self.ephemeral.setdefault(change.path, session.number)
        if changes:
            if self.observe is not None:
                self.observe(self.zxid, session, changes)
            for each in list(self.sessions.values()):
                each.send(_News(changes))
        return None, changes

    def end(self, session: SimulatedSession) -> None:
        """A session is over: closed, or not heard of for too long."""
        if self.sessions.pop(session.number, None) is None:
            return
        deadline = self._deadlines.pop(session.number, None)
        if deadline is not None:
            deadline.cancel()
        for path in sorted(path for path, owner in self.ephemeral.items() if owner == session.number):
            self.apply([Delete(path)], None)


class SimulatedSession(TreeRegistry):
    """One broker's session. The broker's process may die: then nobody pings any more."""

    def __init__(
        self, server: RegistryServer, number: int, name: str, host: str, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(Tree())
        self.server = server
        self.number = number
        self.name = name
        self.timeout = server.session_timeout
        self.is_expired = False
        self.is_suspended = False  # nothing has been heard for so long that the connection counts as lost
        self._host = host
        self._loop = loop
        self._on_expired: list[Callable[[], None]] = []
        self._closed = False
        self._requests = 0
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._up: deque[_Request] = deque()
        self._down: deque[_News] = deque()
        self._arrivals = [0.0, 0.0]  # of what was sent last, up and down
        self._heard_at = loop.time()
        if server.fabric is not None:
            self._ping()

    # --- the interface ---

    async def multi(self, operations: Sequence[Operation]) -> None:
        if self._closed:
            raise RegistryUnavailable("the registry is closed")
        if self.is_expired:
            raise SessionExpired("the session with the registry has expired")
        if self.is_suspended:
            raise RegistryUnavailable("the registry is out of reach")
        done = self._loop.create_future()
        self._requests += 1
        self._waiting[self._requests] = done
        self._ask(_Request(self._requests, list(operations)))
        await done

    async def mirror(self, path: str) -> None:
        """The whole tree is in memory."""

    async def refresh(self, path: str) -> None:
        """Have what the registry has now."""
        await self.multi([])

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._on_expired.append(callback)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            for done in list(self._waiting.values()):
                await asyncio.wait([done])
            self.server.end(self)

    def expire(self) -> None:
        """Let the registry give up this session, as if it had not been heard of."""
        self.server.end(self)

    # --- to the registry ---

    def _ping(self) -> None:
        if self._closed or self.is_expired:
            return
        if not self.is_suspended and self._loop.time() - self._heard_at > self.timeout * 2 / 3:
            self._suspend()
        self._ask(_Request(0, None))
        self._loop.call_later(self.timeout / _PINGS, self._ping)

    def _suspend(self) -> None:
        """The connection counts as lost. What was under way may have happened, or may not."""
        self.is_suspended = True
        self._up.clear()
        waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            if not done.done():
                done.set_exception(RegistryUnavailable("the connection to the registry was lost"))

    def _ask(self, request: _Request) -> None:
        fabric = self.server.fabric
        if fabric is None:
            self.server.take(self, request)
            return
        self._up.append(request)
        self._travel(fabric, 0, self._host, HOST, self._arrive_up)

    def _arrive_up(self) -> None:
        fabric = self.server.fabric
        if fabric is not None and fabric.link(self._host, HOST).cuts:
            fabric.later(0.1, self._arrive_up)  # sent again and again
            return
        if self._up:
            self.server.take(self, self._up.popleft())

    # --- from the registry ---

    def send(self, news: _News) -> None:
        fabric = self.server.fabric
        if fabric is None:
            self._hear(news)
            return
        self._down.append(news)
        self._travel(fabric, 1, HOST, self._host, self._arrive_down)

    def _arrive_down(self) -> None:
        fabric = self.server.fabric
        if fabric is not None and fabric.link(HOST, self._host).cuts:
            fabric.later(0.1, self._arrive_down)
            return
        if self._down:
            self._loop.call_soon(self._hear, self._down.popleft())

    def _travel(self, fabric: Fabric, way: int, source: str, target: str, arrive: Callable[[], None]) -> None:
        arrival = fabric.link(source, target).arrival(fabric.scheduler.now, 0, fabric.chance)
        self._arrivals[way] = max(arrival, self._arrivals[way])
        fabric.at(self._arrivals[way], arrive)

    def _hear(self, news: _News) -> None:
        if self._closed and not self._waiting:
            return
        self._heard_at = self._loop.time()
        self.is_suspended = False
        if news.expired:
            self._expired()
            return
        if self.is_expired:
            return
        if news.changes:
            self.tree.apply(news.changes)
            self.notify(news.changes)
        done = self._waiting.pop(news.number, None)
        if done is not None and not done.done():
            if news.outcome is None:
                done.set_result(None)
            else:
                done.set_exception(news.outcome)

    def _expired(self) -> None:
        if self.is_expired:
            return
        self.is_expired = True
        waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            if not done.done():
                done.set_exception(SessionExpired("the session with the registry has expired"))
        for callback in self._on_expired:
            callback()
