"""A server with handlers that a test defines, and a bare client that talks to it byte by byte."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager

from barnabas.broker.clock import SystemClock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.server.server import Server
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import FRAME_SIZE, read_answer, request_frame


@asynccontextmanager
async def serving(*apis, clock=None, **settings):
    """A running server; settings are given with underscores for Kafka's dots."""
    loop = asyncio.get_running_loop()
    names = {name.replace("_", "."): str(value) for name, value in settings.items()}
    config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0", **names})
    server = Server(config, apis, clock or SystemClock(loop), loop)
    server.bind()
    server.start()
    try:
        yield server
    finally:
        await server.stop()


def frame(key: ApiKey, message, version=0, correlation_id=1, client_id="test") -> bytes:
    return request_frame(key, message, version, correlation_id, client_id)


class Client:
    """Reads and writes whole frames, or whatever a test wants instead."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, key: ApiKey, version=0):
        """The next answer: its correlation id and its message."""
        (size,) = FRAME_SIZE.unpack(await self.reader.readexactly(FRAME_SIZE.size))
        answer = read_answer(await self.reader.readexactly(size), key, version)
        assert not answer.left_over
        return answer.correlation_id, answer.message

    async def ask(self, key: ApiKey, message, version=0, correlation_id=1):
        self.send(frame(key, message, version, correlation_id))
        answered, response = await self.answer(key, version)
        assert answered == correlation_id
        return response

    async def closed(self) -> bool:
        """Wait until the server has closed the connection."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def connected(server: Server, receive_buffer: int | None = None):
    listener = server.listeners[0]
    sock = socket.socket()
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (listener.host, listener.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=2**26)
    client = Client(reader, writer)
    try:
        yield client
    finally:
        client.close()
