"""The network between brokers whose listener for each other speaks TLS."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final

from barnabas.broker.network import Network
from barnabas.broker.security.tls import Tls
from barnabas.broker.server.tls_socket import TlsSocket

_RECEIVED_AT_ONCE: Final = 64 * 1024


class TlsNetwork:
    """Connects as another network does, and then performs the TLS handshake."""

    def __init__(self, network: Network, tls: Tls, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._network = network
        self._tls = tls

    async def connect(self, host: str, port: int) -> TlsSocket:
        sock = await self._network.connect(host, port)
        try:
            return await self._shake_hands(sock, host)
        except BaseException:
            sock.close()
            raise

    async def _shake_hands(self, sock: socket.socket, host: str) -> TlsSocket:
        tls = TlsSocket(sock, self._tls.client_context, server_side=False, server_hostname=host)
        received = b""
        while not self._is_done(tls, sock, received):
            await self._loop.sock_sendall(sock, tls.take_unsent())
            received = await self._loop.sock_recv(sock, _RECEIVED_AT_ONCE)
            if not received:
                raise OSError(0, "the other broker closed the connection during the TLS handshake")
        await self._loop.sock_sendall(sock, tls.take_unsent())
        return tls

    def _is_done(self, tls: TlsSocket, sock: socket.socket, received: bytes) -> bool:
        try:
            return tls.shake_hands(received)
        except OSError:
            with contextlib.suppress(OSError):
                sock.send(tls.take_unsent())  # the alert, so that the other broker can log the reason
            raise
