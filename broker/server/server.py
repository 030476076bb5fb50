"""The server: its listeners, its connections, and what they share."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from broker.clock import Clock, Timer
from broker.config import BrokerConfig
from broker.server.addresses import addresses_of
from broker.server.buffers import BufferPool
from broker.server.connection import Connection
from broker.server.dispatch import Api, Dispatcher
from broker.server.listener import Listener
from broker.server.request import Pause

log = structlog.get_logger()

# How long accepting pauses when the system has no descriptor left, unless one of ours comes free before.
_PAUSE_WITHOUT_DESCRIPTORS: Final = 1.0
# How often idle connections are looked for in the time after which one counts as idle.
_LOOKS_A_TIME: Final = 10


def _nothing() -> None:
    pass


class Server:
    """Sockets of one event loop. All of it belongs to the loop's thread."""

    def __init__(
        self, config: BrokerConfig, apis: Sequence[Api], clock: Clock, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.config = config
        self.clock = clock
        self.loop = loop
        self.request_max_bytes = config.socket_request_max_bytes
        self.buffers = BufferPool()
        self.dispatcher = Dispatcher(apis)
        self.listeners: list[Listener] = []
        self.connections: set[Connection] = set()
        self._from_address: Counter[str] = Counter()
        self.append: Callable[[], None] = _nothing  # what writes the appends of a turn, before its answers are sent
        self.tick = 0  # the time of a connection's last sign of life, as far as idleness is concerned
        self._to_send: list[Connection] = []
        self._turn_ends = False  # whether the end of this turn is in line
        self._idle_timer: Timer | None = None
        self._stopping = False
        self._pauses: list[Pause] | None = None  # one a connection, while the server stands still
        # Somebody else's objection to new connections, if there is anybody (broker.testing).
        self.doorkeeper: Callable[[tuple[str, int]], str | None] | None = None

    def bind(self) -> None:
        """Take the addresses of all listeners, or none: a caller may still give up before anyone connects."""
        try:
            for listener in self.config.broker_listeners:
                self.listeners.append(Listener(self, listener, self.config.socket_listen_backlog_size))
        except OSError:
            self._close_listeners()
            raise

    def start(self) -> None:
        self._stopping = False
        for listener in self.listeners:
            listener.accept(True)
        self._watch_idle()

    async def stop(self) -> None:
        await self.disconnect()
        self._close_listeners()

    async def disconnect(self) -> None:
        """Close every connection, and take none until `start`: who connects meanwhile waits in the backlog."""
        self._stopping = True
        for listener in self.listeners:
            listener.accept(False)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for connection in list(self.connections):
            connection.close()
        await self.dispatcher.stop()

    def _close_listeners(self) -> None:
        for listener in self.listeners:
            listener.close()

    # --- the end of a turn ---

    def at_end_of_turn(self) -> None:
        """Once this turn's callbacks are done, write what they have to append, then send what they have to answer."""
        if not self._turn_ends:
            self._turn_ends = True
            self.loop.call_soon(self._end_turn)

    def send_soon(self, connection: Connection) -> None:
        """Send what a connection has in line at the end of this turn, all its answers together."""
        self._to_send.append(connection)
        self.at_end_of_turn()

    def _end_turn(self) -> None:
        try:
            self.append()
        finally:
            self._turn_ends = False
        connections, self._to_send = self._to_send, []
        for connection in connections:
            if not connection.closed:
                connection.send()
                connection.carry_on()

    # --- who is connected ---

    def has_room(self) -> bool:
        """Whether one more connection fits. If not, accepting stops until one has gone: clients wait in the backlog."""
        if len(self.connections) < self.config.max_connections:
            return True
        log.warning("max.connections is reached", connections=len(self.connections))
        self._accept(False)
        return False

    def objection(self, peer: tuple[str, int]) -> str | None:
        """Why somebody who connects is turned away at once."""
        if not self.has_room_for(peer[0]):
            return "max.connections.per.ip is reached"
        return self.doorkeeper(peer) if self.doorkeeper is not None else None

    def has_room_for(self, address: str) -> bool:
        limit = self.config.max_connections_per_ip
        for host, exception in self.config.max_connections_per_ip_overrides.items():
            if address in addresses_of(host):
                limit = exception
        return self._from_address[address] < limit

    def out_of_descriptors(self, error: OSError) -> None:
        log.error("accepting failed", reason=error.strerror, connections=len(self.connections))
        self._accept(False)
        self.clock.call_later(_PAUSE_WITHOUT_DESCRIPTORS, lambda: self._accept(True))

    def remember(self, connection: Connection) -> None:
        self.connections.add(connection)
        self._from_address[connection.peer[0]] += 1

    def forget(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._from_address[connection.peer[0]] -= 1
        if not self._from_address[connection.peer[0]]:
            del self._from_address[connection.peer[0]]
        self._accept(True)

    # --- standing still ---

    def pause(self) -> None:
        """Begin nothing, answer nobody and accept nobody until `resume`; the system keeps what arrives meanwhile."""
        if self._pauses is None:
            self._accept(False)
            self._pauses = [Pause(connection) for connection in self.connections]
            for pause in self._pauses:
                pause.connection.requests.appendleft(pause)

    @property
    def is_paused(self) -> bool:
        return self._pauses is not None

    def resume(self) -> None:
        pauses, self._pauses = self._pauses, None
        for pause in pauses or ():
            pause.end()
        self._accept(True)

    def _accept(self, wanted: bool) -> None:
        if not self._stopping and self._pauses is None:
            for listener in self.listeners:
                listener.accept(wanted)

    # --- idle connections ---

    def _watch_idle(self) -> None:
        """Close connections that have been silent for connections.max.idle.ms, looking ten times in that time.

        Time is counted in looks, so that a sign of life costs no look at the clock.
        """
        idle = self.config.connections_max_idle_ms / 1000
        if idle < 0:
            return
        self.tick += 1
        oldest = self.tick - _LOOKS_A_TIME
        for connection in [c for c in self.connections if c.active_at < oldest and not c.requests]:
            log.info("connection closed", peer=connection.name, reason="idle")
            connection.close()
        self.buffers.trim()
        self._idle_timer = self.clock.call_later(max(idle / _LOOKS_A_TIME, 0.001), self._watch_idle)
