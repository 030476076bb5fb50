"""A client's connection: frames in, answers out.

It owns a raw non-blocking socket, because uvloop's transports have no sendfile. Bytes are received into a buffer from
the pool, and a request's frame is a view into it. Answers leave in the order of their requests; records in them go from
file to socket by sendfile.

A connection processes one request at a time, as in Kafka. Only Produce requests that arrived together are also started
together, because their appends go out in one write. While an answer waits for the client to read it, nothing more is
started and eventually nothing more is received: such a client costs one buffer and one answer.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct
from time import perf_counter
from typing import TYPE_CHECKING, Final

import structlog

from barnabas.broker.clock import Clock
from barnabas.broker.security.principal import ANONYMOUS, Principal
from barnabas.broker.server.addresses import host_and_port, unmapped
from barnabas.broker.server.buffers import SMALLEST
from barnabas.broker.server.freeing import let_go_of
from barnabas.broker.server.request import Pause
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ProtocolError
from barnabas.storage.segment import FileSlice

if TYPE_CHECKING:
    from barnabas.broker.security.authorizer import CheckedAccess
    from barnabas.broker.security.sasl.authenticator import Authenticator
    from barnabas.broker.server.listener import Listener
    from barnabas.broker.server.request import Request
    from barnabas.broker.server.server import Server
    from barnabas.broker.server.tls_socket import Socket

log = structlog.get_logger()

_unpack_size: Final = Struct(">i").unpack_from
_unpack_size_and_key: Final = Struct(">ih").unpack_from
_PRODUCE: Final = int(ApiKey.PRODUCE)
_NOTHING: Final = memoryview(b"")
# Once a frame has filled a buffer of this size, its declared size is trusted.
_LARGE: Final = 4 * 1024 * 1024
# How many bytes one connection may send per turn of the loop, so that the others get theirs.
_MOST_PER_TURN: Final = 1024 * 1024
# How many requests one connection may start before the others get their turn. A request that is not a Produce counts as
# several.
_FAIR_REQUESTS: Final = 128
_OTHER_REQUEST: Final = 8
# How long it may start requests, whatever they cost.
_FAIR_SECONDS: Final = 0.005
_MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)


Output = Sequence[bytearray | memoryview | FileSlice]
Dispatch = Callable[["Connection", memoryview], None]


class Connection:
    __slots__ = (
        "_appending",
        "_buffer",
        "_client_id",
        "_client_id_bytes",
        "_dispatch",
        "_end",
        "_file_sent",
        "_holds",
        "_is_muted",
        "_largest_frame",
        "_out",
        "_reading",
        "_send_due",
        "_send_file_slice",
        "_server",
        "_socket",
        "_start",
        "_wanted",
        "_writing",
        "access",
        "active_at",
        "authenticator",
        "closed",
        "listener",
        "local_address",
        "peer",
        "principal",
        "requests",
        "software",
    )

    def __init__(self, server: Server, listener: Listener, sock: Socket, peer: tuple[str, int]) -> None:
        self._server = server
        self._socket = sock
        self._send_file_slice = send_file
        self.peer = peer
        self.belongs_to(ANONYMOUS)
        self.authenticator: Authenticator | None = None  # where its listener has SASL
        self._dispatch: Dispatch = server.dispatcher.dispatch
        self._largest_frame = server.request_max_bytes
        self.listener = listener
        host, port = sock.getsockname()[:2]
        self.local_address: tuple[str, int] = (unmapped(host), port)
        self.active_at = server.tick
        self.closed = False
        self.requests: deque[Request] = deque()
        self.software = ""  # what the client says it is, with its version
        self._appending = 0  # how many of the current requests are Produces whose append is due this turn
        self._holds = 0  # how many frames are not decoded yet
        self._buffer = _NOTHING  # from the pool, while it holds something
        self._start = self._end = 0  # what was received and not yet consumed: _buffer[_start:_end]
        self._wanted = SMALLEST  # the size of buffer that recent frames needed
        self._out: deque[bytearray | memoryview | FileSlice] = deque()
        self._file_sent = 0  # how much of the file slice at the head of _out has been sent
        self._reading = self._writing = False
        self._is_muted = False
        self._send_due = False  # whether send() will be called anyway
        self._client_id_bytes = b""
        self._client_id = ""
        self._read(True)

    @property
    def name(self) -> str:
        return host_and_port(*self.peer)

    def belongs_to(self, principal: Principal) -> None:
        """Its principal is known now."""
        self.principal: Principal = principal
        # What its requests may do; None without an authorizer: everything.
        self.access: CheckedAccess | None = self._server.access_of(principal, self.peer[0])

    @property
    def is_from_broker(self) -> bool:
        """Whether another broker of this cluster opened it. This is certain from its first request on."""
        return self._server.is_from_broker(self)

    @property
    def client_id(self) -> str:
        """The client id of its last request."""
        return self._client_id

    @property
    def has_more(self) -> bool:
        """Whether the client has sent another request before this one is answered."""
        if len(self.requests) > 1 or self._end > self._start:
            return True
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    # --- receiving ---

    def _on_readable(self) -> None:
        buffer, end = self._buffer, self._end
        if buffer is _NOTHING:
            buffer = self._buffer = self._server.buffers.take(self._wanted)
        try:
            received = self._socket.recv_into(buffer[end:] if end else buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(f"receiving failed: {error.strerror}")
            return
        if not received:
            self._on_end()
            return
        self._end = end + received
        self.active_at = self._server.tick
        self.begin_requests()

    def _on_end(self) -> None:
        """The client sends nothing more. What has arrived whole is carried out first, because some of it may need no
        answer; then the end is read again. But nothing waits any longer for a client that is gone."""
        if self._holds or (self._has_frame and self._appending == len(self.requests)):
            self._read(False)
        else:
            self.close("half a frame" if self._end > self._start and not self.requests else None)

    def begin_requests(self) -> None:
        """Start the requests that have arrived completely, as far as current requests and answers allow."""
        self._send_due = True
        server = self._server
        dispatch = self._dispatch  # an authenticator's also takes what comes in the same turn as the last step
        allowance = _FAIR_REQUESTS
        end = perf_counter() + _FAIR_SECONDS
        while self._end - self._start >= 4 and not self._out:
            (size,) = _unpack_size(self._buffer, self._start)
            stop = self._start + 4 + size
            if not 0 <= size <= self._largest_frame:
                self.close(f"a frame of {size} bytes{guess(self._buffer[self._start : self._start + 4])}")
                return
            if stop > self._end or (self.requests and not self._may_batch(stop)):
                break
            if allowance <= 0 or (allowance < _FAIR_REQUESTS and perf_counter() >= end):
                server.loop.call_soon(self.carry_on)
                break
            frame = self._buffer[self._start + 4 : stop]
            self._start = stop
            try:
                dispatch(self, frame)
            except ProtocolError as error:
                server.dispatcher.refuse(self, error)
            allowance -= 1 if self._appending else _OTHER_REQUEST
            if self._out:
                self.send()
                self._send_due = True
            if self.closed:
                return
        self._send_due = False
        self._settle_buffer()

    def take_frames(self, dispatch: Dispatch, largest: int) -> None:
        """Give frames of at most this size to this function from now on: authentication comes before everything."""
        self._dispatch = dispatch
        self._largest_frame = largest

    def _may_batch(self, stop: int) -> bool:
        """Whether the next frame is a Produce, like all current requests."""
        start = self._start
        return (
            self._appending == len(self.requests)
            and self.requests[-1].meter is None  # its client may turn out to be throttled
            and stop - start > 6
            and _unpack_size_and_key(self._buffer, start)[1] == _PRODUCE
        )

    def append_is_due(self) -> None:
        """A Produce's append goes out at the end of this turn and needs its frame until then."""
        self._appending += 1

    def appended(self) -> None:
        """The append of one Produce has been written or dropped, and its frame is no longer needed."""
        self._appending -= 1

    def hold_buffer(self) -> None:
        """A frame has yet to be decoded, and stays where it is."""
        self._holds += 1

    def let_go_of_buffer(self) -> None:
        self._holds -= 1
        if not self.closed:
            self._server.loop.call_soon(self.carry_on)

    def _settle_buffer(self) -> None:
        """Return the buffer if it is empty; make room if it is full; receive only if there is room."""
        buffer = self._buffer
        if buffer is _NOTHING:
            return
        waiting = self._end - self._start
        if self._appending or self._holds:  # frames in this buffer are still needed, so nothing in it may move
            self._read(self._end < len(buffer) and not self._is_muted)
            return
        if waiting == 0:
            self._release_buffer()
        elif self._end == len(buffer):
            if self._has_frame:
                self._read(False)  # complete frames already wait here; later bytes wait in the socket
                return
            if self._start:
                self._buffer[:waiting] = self._buffer[self._start : self._end]
                self._start, self._end = 0, waiting
            else:
                self._grow()
        self._read(not self._is_muted)

    def mute(self, seconds: float, clock: Clock) -> None:
        """Read nothing and start nothing for a while, after what is being answered. Answers are sent meanwhile."""
        if self.closed:
            return
        pause = Pause(self)
        self.requests.append(pause)
        self._is_muted = True
        self._read(False)

        def unmute() -> None:
            self._is_muted = False
            if self._buffer is _NOTHING:
                self._read(True)
            pause.end()

        pause.on_abandon = clock.call_later(seconds, unmute).cancel

    @property
    def _has_frame(self) -> bool:
        """Whether a whole frame waits."""
        waiting = self._end - self._start
        return waiting >= 4 and waiting >= self._frame_size()

    def _frame_size(self) -> int:
        size: int = _unpack_size(self._buffer, self._start)[0]
        return size + 4

    def _grow(self) -> None:
        """Move to a buffer twice as large; once a frame has proved to be large, to one of its declared size.

        So a frame gets memory as its bytes arrive, not because of its declared size, and little has to be copied.
        """
        old, waiting = self._buffer, self._buffer[self._start : self._end]
        self._buffer = self._server.buffers.take(self._frame_size() if len(old) >= _LARGE else 2 * len(old))
        self._buffer[: len(waiting)] = waiting
        self._start, self._end = 0, len(waiting)
        self._wanted = len(self._buffer)
        waiting.release()
        self._server.buffers.give(old)

    def _release_buffer(self) -> None:
        buffer = self._buffer
        if buffer is not _NOTHING:
            if self._wanted > SMALLEST and len(buffer) > self._end * 4:
                self._wanted //= 2
            self._server.buffers.give(buffer)
        self._buffer = _NOTHING
        self._start = self._end = 0

    def client_id_of(self, raw: memoryview, length: int) -> str:
        """A client id. It is the same in every request of a connection, so it is decoded once."""
        if len(raw) != length:
            raise ProtocolError("a request header is cut short")
        if raw != self._client_id_bytes:
            try:
                self._client_id = str(raw, "utf-8")
            except UnicodeDecodeError:
                raise ProtocolError("a client id is not UTF-8") from None
            self._client_id_bytes = bytes(raw)
        return self._client_id

    # --- sending ---

    def answered(self) -> None:
        """Queue the answers that are ready, in the order of their requests."""
        if self.closed:
            return
        requests = self.requests
        while requests and requests[0].output is not None:
            request = requests.popleft()
            request.on_abandon = None
            for part in request.output or ():
                last = self._out[-1] if self._out else None
                if type(last) is bytearray and type(part) is bytearray:
                    last += part
                else:
                    self._out.append(part)
        if not self._send_due:
            self._send_due = True
            self._server.send_soon(self)

    def send(self) -> None:
        """Send queued answers, as far as the client accepts them and fairness allows."""
        self._send_due = False
        out = self._out
        budget = _MOST_PER_TURN
        try:
            while out and budget > 0:
                part = out[0]
                if isinstance(part, FileSlice):
                    sent = self._send_file(part, budget)
                else:
                    sent = self._socket.send(part, _MSG_MORE if len(out) > 1 else 0)
                    if sent < len(part):
                        out[0] = memoryview(part)[sent:]
                        break
                    out.popleft()
                budget -= sent
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.close(f"sending failed: {error.strerror}")
            return
        self._write(bool(out))

    def _send_file(self, part: FileSlice, budget: int) -> int:
        count = min(part.size - self._file_sent, budget)
        sent = self._send_file_slice(self._socket, part.handle.fileno(), part.position + self._file_sent, count)
        if not sent:
            raise OSError(0, "a segment is shorter than its slice")
        self._file_sent += sent
        if self._file_sent == part.size:
            self._file_sent = 0
            self._out.popleft()
        return sent

    def _on_writable(self) -> None:
        self.active_at = self._server.tick
        self.send()
        self.carry_on()

    def carry_on(self) -> None:
        """Start what arrived meanwhile, if everything queued has been sent."""
        if self.closed or self._out:
            return
        if self._end > self._start:
            self.begin_requests()
        else:
            self._settle_buffer()

    # --- the loop's interest in the socket ---

    def _read(self, wanted: bool) -> None:
        if wanted != self._reading:
            self._reading = wanted
            if wanted:
                self._server.loop.add_reader(self._socket, self._on_readable)
            else:
                self._server.loop.remove_reader(self._socket)

    def _write(self, wanted: bool) -> None:
        if wanted != self._writing:
            self._writing = wanted
            if wanted:
                self._server.loop.add_writer(self._socket, self._on_writable)
            else:
                self._server.loop.remove_writer(self._socket)

    def close(self, reason: str | None = None) -> None:
        """Close at once. A reason becomes the one line about it in the log."""
        if self.closed:
            return
        self.closed = True
        if reason is not None:
            log.warning("connection closed", peer=self.name, listener=self.listener.name, reason=reason)
        self._read(False)
        self._write(False)
        self._socket.close()
        for request in self.requests:
            if request.on_abandon is not None:
                request.on_abandon()
        self.requests.clear()
        if len(self._out) > 1:
            let_go_of(list(self._out))  # an answer of which little was sent may be long
        self._out.clear()
        if not self._appending and not self._holds:
            self._release_buffer()
        self._server.forget(self)


def guess(start: memoryview | bytes | bytearray) -> str:
    """What the first bytes of a nonsensical frame look like, to save somebody some debugging."""
    if bytes(start[:2]) == b"\x16\x03":
        return " (it looks like TLS, and this listener speaks plaintext)"
    if bytes(start) in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI"):
        return " (it looks like HTTP)"
    return ""


def send_file_copying(sock: Socket, fd: int, position: int, count: int) -> int:
    """For platforms without sendfile to a socket, and for what has to be encrypted."""
    return sock.send(os.pread(fd, min(count, 128 * 1024), position))


def _send_file_zero_copy(sock: Socket, fd: int, position: int, count: int) -> int:
    return os.sendfile(sock.fileno(), fd, position, count)


send_file: Callable[[Socket, int, int, int], int] = (
    _send_file_zero_copy if hasattr(os, "sendfile") else send_file_copying
)
