"""A client's connection: frames in, answers out.

It owns a raw non-blocking socket, because uvloop's transports know no sendfile. Bytes are received into a buffer from
the pool, and a request's frame is a view into it. Answers leave in the order of their requests; records in them go from
file to socket by sendfile.

Requests of one connection are under way one at a time, as in Kafka. Only Produce requests that arrived together are
also begun together, because their appends go out in one write. Nothing more is begun, and in the end nothing more is
received, while an answer waits for the client to read it: such a client costs one buffer and one answer.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final

import structlog

from broker.server.addresses import host_and_port, unmapped
from broker.server.buffers import SMALLEST
from protocol.api import ApiKey
from protocol.errors import ProtocolError
from storage.segment import FileSlice

if TYPE_CHECKING:
    from broker.server.listener import Listener
    from broker.server.request import Request
    from broker.server.server import Server

log = structlog.get_logger()

_unpack_size: Final = Struct(">i").unpack_from
_unpack_size_and_key: Final = Struct(">ih").unpack_from
_PRODUCE: Final = int(ApiKey.PRODUCE)
_NOTHING: Final = memoryview(b"")
# How much one connection may send before the others have their turn.
_FAIR_SLICE: Final = 1024 * 1024
_MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)


Output = Sequence[bytearray | memoryview | FileSlice]


class Connection:
    __slots__ = (
        "_appending",
        "_buffer",
        "_client_id",
        "_client_id_bytes",
        "_end",
        "_file_sent",
        "_out",
        "_reading",
        "_send_due",
        "_server",
        "_socket",
        "_start",
        "_wanted",
        "_writing",
        "active_at",
        "closed",
        "listener",
        "local_address",
        "peer",
        "requests",
    )

    def __init__(self, server: Server, listener: Listener, sock: socket.socket, peer: tuple[str, int]) -> None:
        self._server = server
        self._socket = sock
        self.listener = listener
        self.peer = peer
        host, port = sock.getsockname()[:2]
        self.local_address: tuple[str, int] = (unmapped(host), port)
        self.active_at = server.tick
        self.closed = False
        self.requests: deque[Request] = deque()
        self._appending = 0  # how many of the requests under way are Produces whose append is due this turn
        self._buffer = _NOTHING  # from the pool, while there is something in it
        self._start = self._end = 0  # what was received and not yet taken: _buffer[_start:_end]
        self._wanted = SMALLEST  # the size of buffer that recent frames needed
        self._out: deque[bytearray | memoryview | FileSlice] = deque()
        self._file_sent = 0  # how much of the file part at the head of _out is gone
        self._reading = self._writing = False
        self._send_due = False  # whether something will call send() by itself
        self._client_id_bytes = b""
        self._client_id = ""
        self._read(True)

    @property
    def name(self) -> str:
        return host_and_port(*self.peer)

    @property
    def client_id(self) -> str:
        """As its last request had it."""
        return self._client_id

    @property
    def has_more(self) -> bool:
        """Whether the client has sent more than the request that is being answered, and so before it is answered."""
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
            self.close("half a frame" if self._end > self._start and not self.requests else None)
            return
        self._end = end + received
        self.active_at = self._server.tick
        self.begin_requests()

    def begin_requests(self) -> None:
        """Begin what has arrived whole, as far as the requests and answers under way allow."""
        self._send_due = True
        server = self._server
        dispatch = server.dispatcher.dispatch
        while self._end - self._start >= 4 and not self._out:
            (size,) = _unpack_size(self._buffer, self._start)
            stop = self._start + 4 + size
            if not 0 <= size <= server.request_max_bytes:
                self.close(f"a frame of {size} bytes{_guess(self._buffer[self._start : self._start + 4])}")
                return
            if stop > self._end or (self.requests and not self._may_join(stop)):
                break
            frame = self._buffer[self._start + 4 : stop]
            self._start = stop
            try:
                dispatch(self, frame)
            except ProtocolError as error:
                server.dispatcher.refuse(self, error)
            if self._out:
                self.send()
                self._send_due = True
            if self.closed:
                return
        self._send_due = False
        self._settle_buffer()

    def _may_join(self, stop: int) -> bool:
        """Whether the next frame is a Produce too, like all that is under way."""
        start = self._start
        return (
            self._appending == len(self.requests)
            and stop - start > 6
            and _unpack_size_and_key(self._buffer, start)[1] == _PRODUCE
        )

    def append_is_due(self) -> None:
        """A Produce's append goes out at the end of this turn, and needs its frame till then."""
        self._appending += 1

    def appended(self) -> None:
        """The append of one Produce has been written, or given up, and its frame is no longer needed."""
        self._appending -= 1

    def _settle_buffer(self) -> None:
        """Give back the buffer if it is empty; make room in it if it is full; receive only if there is room."""
        buffer = self._buffer
        if buffer is _NOTHING:
            return
        waiting = self._end - self._start
        if self._appending:  # frames in this buffer are still to be written to a log, so nothing in it may move
            self._read(self._end < len(buffer))
            return
        if waiting == 0:
            self._release_buffer()
        elif self._end == len(buffer):
            if self._start:
                self._buffer[:waiting] = self._buffer[self._start : self._end]
                self._start, self._end = 0, waiting
            elif waiting >= self._frame_size():  # whole frames wait here already; what comes after them waits outside
                self._read(False)
                return
            else:
                self._grow()
        self._read(True)

    def _frame_size(self) -> int:
        size: int = _unpack_size(self._buffer, self._start)[0]
        return size + 4

    def _grow(self) -> None:
        """Move to a buffer of twice the size. A large frame gets its room as it arrives, and not on its word."""
        old, waiting = self._buffer, self._buffer[self._start : self._end]
        self._buffer = self._server.buffers.take(2 * len(old))
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
        """A client id, which is the same in every request of a connection, so it is decoded once."""
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
        """Put in line the answers that are ready, in the order of their requests."""
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
        """Send what is in line, as far as the client takes it and fairness allows."""
        self._send_due = False
        out = self._out
        budget = _FAIR_SLICE
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
        sent = send_file(self._socket, part.handle.fileno(), part.position + self._file_sent, count)
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
        """Begin what arrived meanwhile, if all that was in line has been sent."""
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
        """Close at once. With a reason, which is the one line that the log has on it."""
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
        self._out.clear()
        if not self._appending:
            self._release_buffer()
        self._server.forget(self)


def _guess(start: memoryview) -> str:
    """What the first bytes of a nonsensical frame look like, to save somebody an evening."""
    if bytes(start[:2]) == b"\x16\x03":
        return " (it looks like TLS, and this listener speaks plaintext)"
    if bytes(start) in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI"):
        return " (it looks like HTTP)"
    return ""


def _send_file_copying(sock: socket.socket, fd: int, position: int, count: int) -> int:
    """For platforms without sendfile to a socket."""
    return sock.send(os.pread(fd, min(count, 128 * 1024), position))


def _send_file_zero_copy(sock: socket.socket, fd: int, position: int, count: int) -> int:
    return os.sendfile(sock.fileno(), fd, position, count)


send_file = _send_file_zero_copy if hasattr(os, "sendfile") else _send_file_copying
