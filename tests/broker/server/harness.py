"""A server with handlers of a test's own, and a bare client to talk to it byte by byte."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import asynccontextmanager

from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.server.server import Server
from protocol.api import ApiKey, response_header_version, response_type
from protocol.decoder import decoder
from protocol.encoder import encode
from protocol.headers import RequestHeader, ResponseHeader


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
    flexible = version in type(message).flexible
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    body = encode(header, 2 if flexible else 1) + encode(message, version)
    return struct.pack(">i", len(body)) + body


class Client:
    """Reads and writes whole frames, or whatever a test wants instead."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, key: ApiKey, version=0):
        """The next answer: its correlation id and its message."""
        size = struct.unpack(">i", await self.reader.readexactly(4))[0]
        body = await self.reader.readexactly(size)
        header, pos = decoder(ResponseHeader, response_header_version(key, version))(body, 0)
        message, pos = decoder(response_type(key), version)(body, pos)
        assert pos == len(body)
        return header.correlation_id, message

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
