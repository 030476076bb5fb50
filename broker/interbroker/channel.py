"""A connection to another broker: requests go out in order, and their answers come back in the same order.

It is opened by the first request and again by the first one after it was lost. The sender decides what a lost answer
means: the request may have been carried out. Nothing is sent again here.

Brokers agree on versions by `inter.broker.protocol.version`, so nothing is negotiated.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.broker.clock import Clock
from barnabas.broker.network import Connector
from barnabas.broker.server.tls_socket import Socket, TlsSocket
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.frames import FRAME_SIZE, read_answer, request_frame
from barnabas.protocol.schema import Message

R = TypeVar("R", bound=Message)

_FIRST_BUFFER: Final = 8 * 1024
_LARGEST_ANSWER: Final = 1 << 30


class ChannelError(Exception):
    """The other broker cannot be reached, did not answer in time, or answered nonsense."""


class _Expected(NamedTuple):
    key: ApiKey
    version: int
    correlation_id: int
    answer: asyncio.Future[Any]


class Channel:
    """Requests to one broker at one address.

    Records in an answer are views into the receive buffer. They are valid until the next request, so a channel whose
    answers carry records has one request in flight at a time.
    """

    def __init__(
        self,
        network: Connector,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        client_id: str,
    ) -> None:
        self._network = network
        self._clock = clock
        self._loop = loop
        self.host = host
        self.port = port
        self._client_id = client_id
        self._socket: Socket | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._correlation_id = 0
        self._expected: deque[_Expected] = deque()
        self._out = bytearray()
        self._writing = False
        self._buffer = memoryview(bytearray(_FIRST_BUFFER))
        self._start = self._end = 0  # what was received and not yet consumed: _buffer[_start:_end]
        self.closed = False

    async def request(self, key: ApiKey, message: Message, version: int, answer: type[R], timeout_ms: int) -> R:
        """Send a request and wait for its answer. ChannelError if none comes."""
        timer = self._clock.call_later(timeout_ms / 1000, lambda: self._lose(f"no answer within {timeout_ms} ms"))
        try:
            if self._socket is None:
                await self._connect()
            future = self._send(key, message, version)
            found: R = await future
            return found
        except asyncio.CancelledError:
            # Its answer would come before those of later requests.
            self._lose("the request was abandoned")
            raise
        finally:
            timer.cancel()

    def close(self) -> None:
        self.closed = True
        self._lose("the channel is closed")

    # --- connecting ---

    async def _connect(self) -> None:
        if self.closed:
            raise ChannelError("the channel is closed")
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._open())
        connecting = self._connecting
        await asyncio.wait([connecting])
        if connecting.cancelled():
            raise ChannelError(f"cannot connect to {self.host}:{self.port}: no answer")
        connecting.result()

    async def _open(self) -> None:
        try:
            sock = await self._network.connect(self.host, self.port)
        except OSError as error:
            raise ChannelError(f"cannot connect to {self.host}:{self.port}: {error.strerror or error}") from error
        finally:
            if self._connecting is asyncio.current_task():  # and not one that was started after this was given up
                self._connecting = None
        if self.closed:
            sock.close()
            raise ChannelError("the channel is closed")
        self._socket = sock
        if isinstance(sock, TlsSocket):
            sock.on_more = self._has_more
        self._loop.add_reader(sock, self._on_readable)

    def _lose(self, reason: str) -> None:
        """Close the connection. Everything that is in flight may have been carried out, or not."""
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            if self._writing:
                self._loop.remove_writer(self._socket)
            self._socket.close()
            self._socket = None
        self._writing = False
        self._out.clear()
        self._start = self._end = 0
        expected, self._expected = self._expected, deque()
        for each in expected:
            if not each.answer.done():
                each.answer.set_exception(ChannelError(f"{self.host}:{self.port}: {reason}"))

    # --- sending ---

    def _send(self, key: ApiKey, message: Message, version: int) -> asyncio.Future[Any]:
        if self._socket is None:
            raise ChannelError(f"{self.host}:{self.port}: the connection was lost")
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        future: asyncio.Future[Any] = self._loop.create_future()
        self._expected.append(_Expected(key, version, self._correlation_id, future))
        self._out += request_frame(key, message, version, self._correlation_id, self._client_id)
        if not self._writing:
            self._flush()
        return future

    def _flush(self) -> None:
        sock = self._socket
        if sock is None:
            return
        try:
            sent = sock.send(self._out)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._lose(f"sending failed: {error.strerror}")
            return
        del self._out[:sent]
        wanted = bool(self._out)
        if wanted != self._writing:
            self._writing = wanted
            if wanted:
                self._loop.add_writer(sock, self._flush)
            else:
                self._loop.remove_writer(sock)

    # --- receiving ---

    def _on_readable(self) -> None:
        sock = self._socket
        if sock is None:
            return
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == len(self._buffer):
            self._make_room()
        try:
            received = sock.recv_into(self._buffer[self._end :])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(f"receiving failed: {error.strerror}")
            return
        if not received:
            self._lose("the other broker closed the connection")
            return
        self._end += received
        self._take_answers()

    def _has_more(self) -> None:
        """TLS may have buffered more than it has returned, which polling the socket does not show."""
        self._loop.call_soon(self._on_readable)

    def _make_room(self) -> None:
        """Move what is there to the front, of a larger buffer if it fills this one."""
        waiting = self._buffer[self._start : self._end]
        if self._start == 0:
            self._buffer = memoryview(bytearray(2 * len(self._buffer)))
        self._buffer[: len(waiting)] = waiting
        self._start, self._end = 0, len(waiting)

    def _take_answers(self) -> None:
        while self._end - self._start >= FRAME_SIZE.size:
            (size,) = FRAME_SIZE.unpack_from(self._buffer, self._start)
            if not 0 <= size <= _LARGEST_ANSWER:
                self._lose(f"an answer of {size} bytes")
                return
            stop = self._start + FRAME_SIZE.size + size
            if stop > self._end:
                return
            frame = self._buffer[self._start + FRAME_SIZE.size : stop]
            self._start = stop
            if not self._take_answer(frame):
                return

    def _take_answer(self, frame: memoryview) -> bool:
        if not self._expected:
            self._lose("an answer that nobody asked for")
            return False
        expected = self._expected[0]
        try:
            answer = read_answer(frame, expected.key, expected.version)
        except ProtocolError as error:
            self._lose(f"an answer that cannot be read: {error}")
            return False
        if answer.correlation_id != expected.correlation_id:
            self._lose("answers in another order than the requests")
            return False
        self._expected.popleft()
        if not expected.answer.done():
            expected.answer.set_result(answer.message)
        return True
