"""The network between brokers whose listener for each other has SASL: every connection starts with authentication."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote, urlsplit

from barnabas.broker.network import Connector
from barnabas.broker.security.errors import SecurityError
from barnabas.broker.security.sasl.jaas import parse_jaas
from barnabas.broker.security.sasl.sasl import OAUTHBEARER, PLAIN, SERVED
from barnabas.broker.server.tls_socket import Socket
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import FRAME_SIZE, read_answer, request_frame
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.protocol.schema import Message
from barnabas.protocol.scram import ScramClient, ScramError

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig

R = TypeVar("R", bound=Message)

_LONGEST_ANSWER: Final = 64 * 1024
_NONCE_SIZE: Final = 18
_LARGEST_TOKEN: Final = 64 * 1024
_TOKEN: Final = re.compile(rb"[A-Za-z0-9._~+/-]+=*")  # as RFC 6750 has it


class OwnLogin:
    """Who this broker is when it connects to others. It is looked at for each connection: tokens are renewed."""

    def __init__(self, config: BrokerConfig) -> None:
        """SecurityError if the settings do not say who it is."""
        listener = config.inter_broker_listener.name
        self.mechanism = config.sasl_mechanism_inter_broker_protocol
        self.user = self.password = self.token = ""
        if self.mechanism not in SERVED:
            raise SecurityError(
                f"sasl.mechanism.inter.broker.protocol is {self.mechanism}, but Barnabas authenticates with "
                f"{', '.join(SERVED)} only"
            )
        settings = config.for_listener(listener, self.mechanism)
        prefix = f"listener.name.{listener.lower()}.{self.mechanism.lower()}."
        if self.mechanism == OAUTHBEARER:
            self.token = _token_at(settings.sasl_oauthbearer_token_endpoint_url)
            return
        setting = f"{prefix}sasl.jaas.config"
        jaas = settings.sasl_jaas_config
        own = None if jaas is None else parse_jaas(jaas, setting).own
        if own is None:
            raise SecurityError(f"{setting} must have the username and the password of the broker itself")
        self.user, self.password = own


def _token_at(url: str | None) -> str:
    """The token in a file. Messages never quote it."""
    name = "sasl.oauthbearer.token.endpoint.url"
    parsed = urlsplit(url or "")
    if parsed.scheme != "file":
        raise SecurityError(f"{name} must be a file:// URL: the file with the token by which this broker logs in")
    try:
        with open(unquote(parsed.path), "rb") as file:
            token = file.read(_LARGEST_TOKEN + 1).strip()
    except OSError as error:
        raise SecurityError(f"{name}={url} cannot be read: {error.strerror}") from None
    if not _TOKEN.fullmatch(token):
        raise SecurityError(f"{name}={url} holds no token")
    return token.decode("ascii")


class SaslNetwork:
    """Connects as another network does, and then authenticates."""

    def __init__(self, network: Connector, login: Callable[[], OwnLogin], loop: asyncio.AbstractEventLoop) -> None:
        self._network = network
        self._login = login
        self._loop = loop

    async def connect(self, host: str, port: int) -> Socket:
        sock = await self._network.connect(host, port)
        try:
            await self._authenticate(sock, self._login())
        except SecurityError as error:
            sock.close()
            raise OSError(0, str(error)) from None
        except ScramError as error:
            sock.close()
            raise OSError(0, f"authentication failed: {error}") from None
        except BaseException:
            sock.close()
            raise
        return sock

    async def _authenticate(self, sock: Socket, login: OwnLogin) -> None:
        asked = SaslHandshakeRequest(mechanism=login.mechanism)
        answer = await self._ask(sock, ApiKey.SASL_HANDSHAKE, asked, 1, SaslHandshakeResponse)
        if answer.error_code:
            raise OSError(0, f"the other broker does not support {login.mechanism}")
        if login.mechanism == PLAIN:
            await self._step(sock, f"\0{login.user}\0{login.password}".encode())
            return
        if login.mechanism == OAUTHBEARER:
            await self._show_token(sock, login.token)
            return
        scram = ScramClient(login.mechanism, login.user, login.password, os.urandom(_NONCE_SIZE))
        challenge = await self._step(sock, scram.first())
        scram.finish(await self._step(sock, scram.final(challenge)))

    async def _show_token(self, sock: Socket, token: str) -> None:
        if await self._step(sock, f"n,,\x01auth=Bearer {token}\x01\x01".encode()):
            # What is wrong is said in the answer. Acknowledging it is answered by the failure itself.
            await self._step(sock, b"\x01")
            raise OSError(0, "authentication failed: the other broker does not accept the token")

    async def _step(self, sock: Socket, message: bytes) -> bytes:
        # Version 0: the session of a broker never expires, as with Kafka's brokers.
        request = SaslAuthenticateRequest(auth_bytes=message)
        answer = await self._ask(sock, ApiKey.SASL_AUTHENTICATE, request, 0, SaslAuthenticateResponse)
        if answer.error_code:
            raise OSError(0, f"authentication failed: {answer.error_message}")
        return bytes(answer.auth_bytes)

    async def _ask(self, sock: Socket, key: ApiKey, message: Message, version: int, answer: type[R]) -> R:
        frame = memoryview(request_frame(key, message, version, 0, "broker"))
        while frame:
            frame = frame[await self._ready(sock, self._loop.add_writer, self._loop.remove_writer, sock.send, frame) :]
        (size,) = FRAME_SIZE.unpack(await self._receive(sock, FRAME_SIZE.size))
        if not 0 <= size <= _LONGEST_ANSWER:
            raise OSError(0, "the other broker does not speak Kafka's protocol here")
        found = read_answer(await self._receive(sock, size), key, version).message
        assert isinstance(found, answer)
        return found

    async def _receive(self, sock: Socket, size: int) -> memoryview:
        buffer = memoryview(bytearray(size))
        filled = 0
        while filled < size:
            reader = self._loop.add_reader, self._loop.remove_reader
            received = await self._ready(sock, *reader, sock.recv_into, buffer[filled:])
            if not received:
                raise OSError(0, "the other broker closed the connection before it was authenticated")
            filled += received
        return buffer

    async def _ready(
        self,
        sock: Socket,
        watch: Callable[..., object],
        unwatch: Callable[[Socket], object],
        work: Callable[[memoryview], int],
        data: memoryview,
    ) -> int:
        """Do it as soon as the socket is ready."""
        while True:
            try:
                return work(data)
            except (BlockingIOError, InterruptedError):
                ready = asyncio.Event()
                watch(sock, ready.set)
                try:
                    await ready.wait()
                finally:
                    unwatch(sock)
