"""The server: its listeners, its connections, and what they share."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import structlog

from barnabas.broker.clock import Clock, Timer
from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.values import INT_MAX
from barnabas.broker.network import Network
from barnabas.broker.quotas.quotas import Quotas
from barnabas.broker.security.errors import SecurityError
from barnabas.broker.security.principal import Principal
from barnabas.broker.server.addresses import addresses_of
from barnabas.broker.server.buffers import BufferPool
from barnabas.broker.server.connection import Connection
from barnabas.broker.server.dispatch import Api, Dispatcher
from barnabas.broker.server.listener import Listener
from barnabas.broker.server.metering import Meters
from barnabas.broker.server.request import Pause

if TYPE_CHECKING:
    from barnabas.broker.security.authorizer import CheckedAccess
    from barnabas.broker.security.sasl.scram import CredentialOf, TokenOf

log = structlog.get_logger()

# How long accepting pauses when the system has no descriptors left, unless one of ours is freed before.
_PAUSE_WITHOUT_DESCRIPTORS: Final = 1.0
# How many times connections are checked within connections.max.idle.ms.
_IDLE_CHECKS: Final = 10

# A broker of this process has registered its own connection by then.
_SECONDS_TO_TELL_BROKERS: Final = 0.02


def _nothing() -> bool:
    return True


def _from_nobody(connection: Connection) -> bool:
    return False


def _everything(principal: Principal, host: str) -> None:
    return None


def _unknown(user: str, mechanism: str) -> None:
    return None


class Server:
    """Sockets of one event loop. All of it belongs to the loop's thread."""

    def __init__(
        self,
        config: BrokerConfig,
        apis: Sequence[Api],
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        network: Network | None = None,
    ) -> None:
        self.config = config
        self.network = network or Network(loop)
        self.clock = clock
        self.loop = loop
        self.request_max_bytes = config.socket_request_max_bytes
        self.buffers = BufferPool()
        self.dispatcher = Dispatcher(apis)
        self.listeners: list[Listener] = []
        self.connections: dict[Connection, None] = {}
        self._from_address: Counter[str] = Counter()
        self._on_listener: Counter[str] = Counter()
        self.quotas = Quotas(config, self._quotas_changed)
        self._meters = Meters(self.quotas.of_clients, clock, self._is_brokers)
        # Writes the appends of a turn, before its answers are sent; False if some are left for the next turn.
        self.append: Callable[[], bool] = _nothing
        self.tick = 0  # counts the checks for idle connections
        self._to_send: list[Connection] = []
        self._turn_ends = False  # whether the end of this turn is scheduled
        self._idle_timer: Timer | None = None
        self._stopping = False
        self._pauses: list[Pause] | None = None  # one per connection, while the server is paused
        # Tells connections of other brokers from those of clients.
        self.is_from_broker: Callable[[Connection], bool] = _from_nobody
        # What a principal may do from an address; None: everything.
        self.access_of: Callable[[Principal, str], CheckedAccess | None] = _everything
        # Looks up a user's credential.
        self.scram_credential: CredentialOf = _unknown
        # Looks up delegation tokens.
        self.token_login: TokenOf = _unknown
        # How often clients failed to authenticate, by listener and mechanism.
        self.failed_authentications: Counter[tuple[str, str]] = Counter()
        self._refuses_clients = False
        # May refuse new connections, with a reason (broker.testing).
        self.connection_filter: Callable[[tuple[str, int]], str | None] | None = None
        # Is told of each connection that is gone (share sessions end with theirs).
        self.connection_closed: Callable[[Connection], None] | None = None

    def bind(self) -> None:
        """Bind all listeners, or none: a caller may still give up before anyone connects."""
        try:
            for listener in self.config.broker_listeners:
                self.listeners.append(Listener(self, listener, self.config.socket_listen_backlog_size))
        except (OSError, SecurityError):
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
        """Close every connection, and accept none until `start`: clients wait in the backlog."""
        self._stopping = True
        for listener in self.listeners:
            listener.stop()
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
        """After this turn's callbacks, write what they have to append, then send their answers."""
        if not self._turn_ends:
            self._turn_ends = True
            self.loop.call_soon(self._end_turn)

    def send_soon(self, connection: Connection) -> None:
        """Send a connection's queued answers together at the end of this turn."""
        self._to_send.append(connection)
        self.at_end_of_turn()

    def _end_turn(self) -> None:
        is_done = True
        try:
            is_done = self.append()
        except Exception:
            log.exception("the appends of a turn failed")  # other answers are sent nevertheless
        self._turn_ends = False
        if not is_done:
            self.at_end_of_turn()
        connections, self._to_send = self._to_send, []
        for connection in connections:
            if not connection.closed:
                connection.send()
                connection.carry_on()

    # --- who is connected ---

    def has_room(self, listener: Listener) -> bool:
        """Whether one more connection fits. If not, the listener stops until one closes; clients wait in the backlog.

        Limits of the whole broker do not apply to a listener that is only for brokers.
        """
        most, _ = self.config.connection_limits_of(listener.name)
        if self._on_listener[listener.name] < most and (
            len(self.connections) < self.config.max_connections or self.config.is_protected(listener.name)
        ):
            return True
        log.warning("max.connections is reached", connections=len(self.connections), listener=listener.name)
        listener.accept(False)
        return False

    def waits_ms(self, listener: Listener) -> int:
        """For how long a listener accepts nobody after one more connection."""
        _, rate = self.config.connection_limits_of(listener.name)
        of_all = INT_MAX if self.config.is_protected(listener.name) else self.config.max_connection_creation_rate
        return self.quotas.of_connections.record(listener.name, of_all, rate, self._monotonic_ms())

    def waits_ms_of(self, address: str) -> int:
        """For how long an address is throttled whose new connection is one too many."""
        return self.quotas.of_connections.record_from(address, self._monotonic_ms())

    def _monotonic_ms(self) -> int:
        return int(self.clock.monotonic() * 1000)

    def _is_brokers(self, connection: Connection) -> bool:
        """Whether only a broker can have opened it. In a ZooKeeper cluster, a listener may be for both brokers and
        clients."""
        is_shared = self.config.zookeeper_connect is not None and not self.config.is_protected(connection.listener.name)
        return not is_shared and self.is_from_broker(connection)

    def _quotas_changed(self) -> None:
        self.dispatcher.meters = self._meters if self.quotas.of_clients.are_there else None

    def reconfigure(self) -> None:
        """The settings changed: there may be room again for clients in the backlog."""
        self.reconfigure_listeners()
        self._close_those_too_many()
        self._accept(True)

    def reconfigure_listeners(self) -> None:
        for listener in self.listeners:
            listener.reconfigure()

    def objection(self, peer: tuple[str, int]) -> str | None:
        """Why a new connection is closed at once; None if it is welcome."""
        if not self.has_room_for(peer[0]):
            return "max.connections.per.ip is reached"
        return self.connection_filter(peer) if self.connection_filter is not None else None

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
        self.connections[connection] = None
        self._from_address[connection.peer[0]] += 1
        self._on_listener[connection.listener.name] += 1
        self._close_those_too_many()
        if self._refuses_clients or self._pauses is not None:
            self._look_at(connection)

    def forget(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self._from_address[connection.peer[0]] -= 1
        if not self._from_address[connection.peer[0]]:
            del self._from_address[connection.peer[0]]
        self._on_listener[connection.listener.name] -= 1
        if self.connection_closed is not None:
            self.connection_closed(connection)
        self._accept(True)

    def _close_those_too_many(self) -> None:
        """Brokers may exceed max.connections, and it may be lowered: then the connection idle for longest is closed."""
        too_many = len(self.connections) - self.config.max_connections
        if too_many > 0:
            clients = [each for each in self.connections if not self.config.is_protected(each.listener.name)]
            for connection in sorted(clients, key=lambda each: each.active_at)[:too_many]:
                connection.close("max.connections is exceeded")

    # --- only brokers ---

    def refuse_clients(self, refuse: bool) -> None:
        """Be out of reach for clients, but not for other brokers, until this is undone."""
        self._refuses_clients = refuse
        if refuse:
            for connection in [each for each in self.connections if not each.is_from_broker]:
                connection.close()

    def _look_at(self, connection: Connection) -> None:
        """Serve a new connection only once it has turned out to be a broker's, or clients are served again."""
        pause = Pause(connection)
        connection.requests.appendleft(pause)

        def decide() -> None:
            if connection.closed:
                return
            if connection.is_from_broker or not (self._refuses_clients or self.is_paused):
                pause.end()
            elif self._refuses_clients:
                connection.close()
            else:
                self.clock.call_later(_SECONDS_TO_TELL_BROKERS, decide)

        self.clock.call_later(_SECONDS_TO_TELL_BROKERS, decide)

    # --- pausing ---

    def pause(self) -> None:
        """Start and answer nothing of clients until `resume`; the system keeps what arrives meanwhile."""
        if self._pauses is None:
            self._pauses = [Pause(connection) for connection in self.connections if not connection.is_from_broker]
            for pause in self._pauses:
                pause.connection.requests.appendleft(pause)

    @property
    def is_paused(self) -> bool:
        return self._pauses is not None

    def resume(self) -> None:
        pauses, self._pauses = self._pauses, None
        for pause in pauses or ():
            pause.end()

    def accept_again(self) -> None:
        self._accept(True)

    def _accept(self, wanted: bool) -> None:
        if not self._stopping:
            for listener in self.listeners:
                listener.accept(wanted)

    # --- idle connections ---

    def _watch_idle(self) -> None:
        """Close connections that have been silent for connections.max.idle.ms.

        Time is counted in checks, so that a connection that shows signs of life need not read the clock.
        """
        idle = self.config.connections_max_idle_ms / 1000
        if idle < 0:
            return
        self.tick += 1
        oldest = self.tick - _IDLE_CHECKS
        for connection in [c for c in self.connections if c.active_at < oldest and not c.requests]:
            log.info("connection closed", peer=connection.name, reason="idle")
            connection.close()
        self.buffers.trim()
        self._idle_timer = self.clock.call_later(max(idle / _IDLE_CHECKS, 0.001), self._watch_idle)
