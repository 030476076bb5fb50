"""A simulated network: streams between hosts, over links that delay, throttle, stall and break.

It behaves as TCP does to a program. Bytes arrive in order or not at all. Where a link is cut, nothing is heard: what
was sent waits and arrives when the link is whole again. A process that dies ends its connections; a machine that loses
power ends nothing, and its peers find out when they hear from it again. A receiver that does not read makes its sender
wait.

A cut has a direction: A may reach B while B cannot reach A.
"""

from __future__ import annotations

import errno
import os
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.network import Network
from barnabas.simulation.loop import Handle, ProcessLoop, Scheduler

if TYPE_CHECKING:
    import socket

# How many bytes may be on their way or unread before the sender has to wait.
_WINDOW: Final = 256 * 1024
_CONNECT_TIMEOUT: Final = 10.0
_RETRANSMISSION: Final = (0.05, 0.4)
_MSG_PEEK: Final = 2
_NO_ARGUMENTS: Final = ()

Observer = Callable[["Socket", "bytes | bytearray"], None]


class Link:
    """One direction between two hosts."""

    __slots__ = ("_busy_until", "bytes_per_second", "cuts", "delay", "jitter", "stalled")

    def __init__(self, delay: float, jitter: float, bytes_per_second: float) -> None:
        self.delay = delay
        self.jitter = jitter
        self.bytes_per_second = bytes_per_second
        self.cuts = 0  # how many faults cut it at this time
        self.stalled: dict[Socket, None] = {}  # senders with something that could not be delivered
        self._busy_until = 0.0

    def arrival(self, now: float, size: int, chance: random.Random) -> float:
        busy_until = self._busy_until
        if busy_until < now:
            busy_until = now
        self._busy_until = busy_until = busy_until + size / self.bytes_per_second
        return busy_until + self.delay + self.jitter * chance.random()


class Fabric:
    """All hosts and the links between them."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.chance = scheduler.random("network")
        self.delay = (0.0002, 0.001)  # of a new link: at least, and at most so much more
        self.delay_among: dict[str, tuple[float, float]] = {}  # the same, among hosts with this prefix
        self.bytes_per_second = 50e6
        self.listeners: dict[tuple[str, int], ListeningSocket] = {}
        self.powered_off: dict[str, None] = {}
        self.sockets: dict[Socket, None] = {}  # open ones
        self.observe: Observer | None = None  # called with everything that arrives
        self._links: dict[tuple[str, str], Link] = {}
        self._ports = 40000
        self._events = scheduler.process("network")

    def link(self, source: str, target: str) -> Link:
        found = self._links.get((source, target))
        if found is None:
            delay, jitter = self.delay
            for prefix, slower in self.delay_among.items():
                if source.startswith(prefix) and target.startswith(prefix):
                    delay, jitter = slower
            if source == target:
                delay, jitter = delay / 10, jitter / 10
            found = self._links[source, target] = Link(delay, jitter, self.bytes_per_second)
        return found

    def cut(self, source: str, target: str) -> None:
        self.link(source, target).cuts += 1

    def mend(self, source: str, target: str) -> None:
        link = self.link(source, target)
        link.cuts -= 1
        if not link.cuts:
            stalled, link.stalled = link.stalled, {}
            for sock in stalled:
                self.later(self.chance.uniform(*_RETRANSMISSION), sock.deliver_next)

    def later(self, delay: float, callback: Callable[..., object], *args: Any) -> None:
        self._events.call_later(delay, callback, *args)

    def at(self, when: float, callback: Callable[..., object]) -> None:
        self.scheduler.at(when, Handle(self._events, when, callback, _NO_ARGUMENTS, None))

    def next_port(self) -> int:
        self._ports += 1
        return self._ports

    # --- what happens to hosts and connections ---

    def of_host(self, host: str) -> list[Socket]:
        return [sock for sock in self.sockets if sock.host == host]

    def process_died(self, loop: ProcessLoop) -> None:
        """The system closes what a process had open: its peers are told."""
        for sock in [sock for sock in self.sockets if sock.loop is loop]:
            sock.abort()
        for listener in [each for each in self.listeners.values() if each.loop is loop]:
            listener.close()

    def power_failed(self, loop: ProcessLoop, host: str) -> None:
        """Nobody is told anything."""
        self.powered_off[host] = None
        for sock in [sock for sock in self.sockets if sock.loop is loop]:
            sock.vanish()
        for listener in [each for each in self.listeners.values() if each.loop is loop]:
            listener.close()

    def power_returned(self, host: str) -> None:
        """The machine runs again, and resets connections that it knows nothing of when it hears from them."""
        self.powered_off.pop(host, None)
        for sock in [sock for sock in self.sockets if sock.remote_host == host and sock.peer.is_gone]:
            if sock.queue:
                self.later(self.chance.uniform(*_RETRANSMISSION), sock.deliver_next)


class Socket:
    """One end of a connection. The methods are those of a non-blocking socket."""

    def __init__(self, fabric: Fabric, loop: ProcessLoop, local: tuple[str, int], remote: tuple[str, int]) -> None:
        self.fabric = fabric
        self.loop = loop
        self.local = local
        self.remote = remote
        self.host, self.remote_host = local[0], remote[0]
        self.label = f"{local[0]}:{local[1]}"
        self.link = fabric.link(self.host, self.remote_host)  # the way out
        self.peer: Socket = self  # until it is connected
        self.is_gone = False  # nobody is at this end any more
        self.queue: deque[bytearray | None] = deque()  # on their way to the peer; None is the end
        self.stuck_until = 0.0  # nothing is delivered before
        self._sent_at = -1.0
        self._arrival = 0.0
        self._on_their_way = 0
        self._received = bytearray()
        self._ended = False  # the peer sends nothing more
        self._error = 0
        self._reader: Callable[[], object] | None = None
        self._writer: Callable[[], object] | None = None
        self._reader_due = self._writer_due = False
        fabric.sockets[self] = None

    def __repr__(self) -> str:
        return f"<Socket {self.local[0]}:{self.local[1]} -> {self.remote[0]}:{self.remote[1]}>"

    # --- as programs use it ---

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        if self.is_gone or self._error:
            self._raise_error()
        room = _WINDOW - self._on_their_way - len(self.peer._received)
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        size = len(data)
        if size > room:
            data, size = data[:room], room
        now = self.fabric.scheduler.now
        last = self.queue[-1] if self._sent_at == now and self.queue else None
        if last is not None:
            last += data  # what is sent at the same moment travels together
        else:
            self._sent_at = now
            self._dispatch(bytearray(data), size)
        self._on_their_way += size
        return size

    def sendall(self, data: bytes) -> None:
        if self.send(data) != len(data):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def recv_into(self, buffer: memoryview, nbytes: int = 0, flags: int = 0) -> int:
        received = self._received
        if not received and not self._may_receive():
            return 0
        count, room = len(received), nbytes or len(buffer)
        if count <= room:
            buffer[:count] = received
            received.clear()
        else:
            count = room
            buffer[:count] = received[:count]
            del received[:count]
        if self.peer._writer is not None:
            self.peer._wake_writer()
        return count

    def recv(self, size: int, flags: int = 0) -> bytes:
        if not self._may_receive():
            return b""
        data = bytes(self._received[:size])
        if not flags & _MSG_PEEK:
            del self._received[:size]
            self.peer._wake_writer()
        return data

    def getsockname(self) -> tuple[str, int]:
        return self.local

    def getpeername(self) -> tuple[str, int]:
        return self.remote

    def setsockopt(self, *args: object) -> None:
        pass

    def setblocking(self, flag: bool) -> None:
        pass

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        """Tell the peer that nothing more will come, after everything that was sent."""
        if self.is_gone:
            return
        self._leave()
        if not self._error:
            self._dispatch(None, 0)

    # --- as the network uses it ---

    def abort(self) -> None:
        """The process is gone. What is on its way still arrives, and then a reset."""
        if not self.is_gone:
            self._leave()
            self._dispatch(None, 0)

    def vanish(self) -> None:
        """The machine is gone, with all that it had not sent."""
        if not self.is_gone:
            self._leave()
            self.queue.clear()

    def reset(self) -> None:
        """The connection breaks. Both ends find out, and nothing that was on its way arrives."""
        for end in (self, self.peer):
            end.queue.clear()
            end.link.stalled.pop(end, None)
            self.fabric.later(self.fabric.chance.uniform(0, 0.05), end._break)

    def _break(self, error: int = errno.ECONNRESET) -> None:
        if self.is_gone or self._error:
            return
        self._error = error
        self.queue.clear()
        self._wake_reader()
        self._wake_writer()

    def _leave(self) -> None:
        self.is_gone = True
        self._reader = self._writer = None
        self.fabric.sockets.pop(self, None)

    def _dispatch(self, part: bytearray | None, size: int) -> None:
        """Have something arrive at the peer, after what was sent before it."""
        fabric = self.fabric
        arrival = self.link.arrival(fabric.scheduler.now, size, fabric.chance)
        if arrival > self._arrival:
            self._arrival = arrival
        self.queue.append(part)
        fabric.at(self._arrival, self.deliver_next)

    def deliver_next(self) -> None:
        """Something arrives at the peer, unless the way there is cut."""
        if not self.queue or self.peer is self:
            return
        fabric, peer = self.fabric, self.peer
        if fabric.scheduler.now < self.stuck_until:
            fabric.at(self.stuck_until, self.deliver_next)
            return
        if self.link.cuts:
            self.link.stalled[self] = None
            return
        if self.remote_host in fabric.powered_off:
            return  # it is sent again when the power returns
        if self.link.stalled and self in self.link.stalled:
            return  # it arrives after what is stalled
        part = self.queue.popleft()
        if part is None:
            peer._end()
        elif peer.is_gone:  # its system knows nothing of this connection any more
            self.queue.clear()
            fabric.later(fabric.link(self.remote_host, self.host).delay, self._break)
        else:
            self._on_their_way -= len(part)
            if fabric.observe is not None:
                fabric.observe(peer, part)
            peer._received += part
            peer._wake_reader()
        if self.queue and self._arrival <= fabric.scheduler.now:
            fabric.at(fabric.scheduler.now, self.deliver_next)  # these had been stalled

    def _end(self) -> None:
        if not self.is_gone:
            self._ended = True
            self._wake_reader()

    def _raise_error(self) -> None:
        if self.is_gone:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if self._error:
            raise OSError(self._error, os.strerror(self._error))

    def _may_receive(self) -> bool:
        """True if there is something, False at the end."""
        if self._received:
            return True
        self._raise_error()
        if self._ended:
            return False
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    # --- readiness ---

    def set_reader(self, callback: Callable[[], object] | None) -> bool:
        had, self._reader = self._reader is not None, callback
        self._wake_reader()
        return had

    def set_writer(self, callback: Callable[[], object] | None) -> bool:
        had, self._writer = self._writer is not None, callback
        self._wake_writer()
        return had

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader_due and (self._received or self._ended or self._error):
            self._reader_due = True
            self.loop.call_soon(self._read)

    def _read(self) -> None:
        self._reader_due = False
        if self._reader is not None:
            self._reader()
            self._wake_reader()

    def _wake_writer(self) -> None:
        if self._writer is None or self._writer_due:
            return
        if self._error or self._on_their_way + len(self.peer._received) < _WINDOW:
            self._writer_due = True
            self.loop.call_soon(self._write)

    def _write(self) -> None:
        self._writer_due = False
        if self._writer is not None:
            self._writer()
            self._wake_writer()


class ListeningSocket:
    def __init__(self, fabric: Fabric, loop: ProcessLoop, address: tuple[str, int]) -> None:
        self.loop = loop
        self._fabric = fabric
        self._address = address
        self._waiting: deque[Socket] = deque()
        self._reader: Callable[[], object] | None = None
        self._due = False

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def accept(self) -> tuple[Socket, tuple[str, int]]:
        if not self._waiting:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        sock = self._waiting.popleft()
        return sock, sock.remote

    def setblocking(self, flag: bool) -> None:
        pass

    def close(self) -> None:
        self._reader = None
        self._fabric.listeners.pop(self._address, None)
        for sock in self._waiting:
            sock.close()
        self._waiting.clear()

    def set_reader(self, callback: Callable[[], object] | None) -> bool:
        had, self._reader = self._reader is not None, callback
        self._wake()
        return had

    def arrived(self, sock: Socket) -> None:
        self._waiting.append(sock)
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and self._waiting and not self._due:
            self._due = True
            self.loop.call_soon(self._read)

    def _read(self) -> None:
        self._due = False
        if self._reader is not None:
            self._reader()
            self._wake()


class SimulatedNetwork(Network):
    """The network as one process sees it."""

    def __init__(self, fabric: Fabric, loop: ProcessLoop, host: str) -> None:
        self._fabric = fabric
        self._process = loop
        self._host = host

    def listen(self, host: str, port: int, backlog: int) -> socket.socket:
        address = (self._host, port or self._fabric.next_port())
        if address in self._fabric.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listener = self._fabric.listeners[address] = ListeningSocket(self._fabric, self._process, address)
        return listener  # type: ignore[return-value]

    async def connect(self, host: str, port: int) -> socket.socket:
        fabric, loop = self._fabric, self._process
        connected = loop.create_future()
        give_up = fabric.scheduler.now + _CONNECT_TIMEOUT
        sock = Socket(fabric, loop, (self._host, fabric.next_port()), (host, port))
        there, back = fabric.link(self._host, host), fabric.link(host, self._host)

        def fail(error: int) -> None:
            if not connected.done():
                connected.set_exception(OSError(error, os.strerror(error)))

        def ask(wait: float) -> None:
            if connected.done() or loop.is_dead:
                return
            if fabric.scheduler.now >= give_up:
                loop.call_soon(fail, errno.ETIMEDOUT)
            elif there.cuts or host in fabric.powered_off:
                fabric.later(wait, ask, wait * 2)
            else:
                answer(fabric.listeners.get((host, port)), wait)

        def answer(listener: ListeningSocket | None, wait: float) -> None:
            if back.cuts:  # the other side may believe in a connection that this one never hears of
                fabric.later(wait, ask, wait * 2)
                return
            delay = back.arrival(fabric.scheduler.now, 0, fabric.chance) - fabric.scheduler.now
            if listener is None:
                fabric.later(delay, lambda: loop.call_soon(fail, errno.ECONNREFUSED))
                return
            sock.peer = Socket(fabric, listener.loop, (host, port), sock.local)
            sock.peer.peer = sock
            listener.arrived(sock.peer)
            fabric.later(delay, lambda: loop.call_soon(succeed))

        def succeed() -> None:
            if not connected.done():
                connected.set_result(None)

        fabric.at(there.arrival(fabric.scheduler.now, 0, fabric.chance), lambda: ask(0.2))
        try:
            await connected
        except BaseException:
            sock.close()
            raise
        return sock  # type: ignore[return-value]
