"""The authentication of one connection: what the client may send at which stage.

    HANDSHAKE      ApiVersions or SaslHandshake
    AUTHENTICATE   SaslAuthenticate, as often as the mechanism needs; after a SaslHandshake of version 0, bare messages
    COMPLETE       everything else. With `connections.max.reauth.ms`, also SaslHandshake, which starts again
    FAILED         nothing: the client is told after a while, and disconnected

Until it is complete, a connection's frames come here instead of to the dispatcher. Afterwards nothing is checked any
more, unless the session expires.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.principal import Principal
from barnabas.broker.security.sasl.mechanism import AuthenticationFailed, Exchange, Step
from barnabas.broker.security.sasl.sasl import Sasl
from barnabas.broker.server.request import BareMessage, Request
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode, ProtocolError
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeResponse

if TYPE_CHECKING:
    from barnabas.broker.server.connection import Connection
    from barnabas.broker.server.server import Server

_KEY: Final = struct.Struct(">h")
_FIRST_VERSION_WITH_LIFETIME: Final = 1
_NO_MECHANISM: Final = "none"  # if client and broker did not agree on one


class State(Enum):
    HANDSHAKE = "handshake"
    AUTHENTICATE = "authenticate"
    COMPLETE = "complete"
    FAILED = "failed"


_ALLOWED: Final = {
    State.HANDSHAKE: (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE),
    State.AUTHENTICATE: (ApiKey.SASL_AUTHENTICATE,),
    State.FAILED: (),
}


class Authenticator:
    def __init__(self, sasl: Sasl, server: Server) -> None:
        self._sasl = sasl
        self._server = server
        self.state = State.HANDSHAKE
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._is_bare = False  # whether messages come without a request around them
        self._known: Principal | None = None  # who it was before it authenticates again
        self._ends_at: float | None = None  # when the session is over
        self.is_by_token = False  # whether it authenticated with a delegation token

    def begin(self, connection: Connection) -> None:
        """Accept nothing but authentication."""
        connection.take_frames(self.dispatch, self._sasl.largest_frame())

    @property
    def is_complete(self) -> bool:
        """Whether it is known whose connection it is."""
        return self.state is State.COMPLETE

    # --- frames ---

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        """A frame from a client that is not authenticated, or whose session can expire."""
        if self._is_bare and self.state is State.AUTHENTICATE:
            self._bare_message(connection, frame)
            return
        key = _KEY.unpack_from(frame)[0] if len(frame) >= _KEY.size else -1
        if self.state is State.COMPLETE:
            if self._is_over() and key not in (ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS):
                raise ProtocolError("its session is over, and it did not authenticate again")
        elif key not in _ALLOWED[self.state]:
            if self.state is not State.FAILED:  # which has already been counted
                self._count_failure(connection)
            raise ProtocolError(f"it sent {_name(key)} before it was authenticated")
        self._server.dispatcher.dispatch(connection, frame)

    def _is_over(self) -> bool:
        return self._ends_at is not None and self._server.clock.monotonic() >= self._ends_at

    # --- SaslHandshake ---

    def handshake(self, request: Request, mechanism: str) -> SaslHandshakeResponse | None:
        names = list(self._sasl.mechanisms)
        if self.state is State.COMPLETE and self._ends_at is None:
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
        if mechanism not in self._sasl.mechanisms or (self._known is not None and mechanism != self._mechanism):
            self._fail(
                request,
                SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=names),
                "it asked for a SASL mechanism that is not enabled",
            )
            return None
        self._mechanism = mechanism
        self._exchange = self._sasl.mechanisms[mechanism]()
        self._is_bare = request.version == 0
        self.state = State.AUTHENTICATE
        return SaslHandshakeResponse(mechanisms=names)

    # --- SaslAuthenticate ---

    def authenticate(self, request: Request, message: bytes) -> SaslAuthenticateResponse | None:
        if self.state is not State.AUTHENTICATE:
            return SaslAuthenticateResponse(
                error_code=ErrorCode.ILLEGAL_SASL_STATE,
                error_message="SaslAuthenticate request received after successful authentication",
                auth_bytes=b"",
            )
        try:
            step = self._step(message)
        except AuthenticationFailed as failure:
            answer = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(failure), auth_bytes=b""
            )
            self._fail(request, answer, self._reason)
            return None
        lifetime_ms = 0
        if step.principal is not None:
            if request.version >= _FIRST_VERSION_WITH_LIFETIME:
                lifetime_ms = self._lifetime_ms(step)
            self._complete(request.connection, step.principal, lifetime_ms)
        return SaslAuthenticateResponse(auth_bytes=step.answer, session_lifetime_ms=lifetime_ms)

    def _bare_message(self, connection: Connection, frame: memoryview) -> None:
        request = BareMessage(connection)
        connection.requests.append(request)
        try:
            step = self._step(bytes(frame))
        except AuthenticationFailed:
            self._fail(request, None, self._reason)
            return
        if step.principal is not None:
            self._complete(connection, step.principal, 0)
        request.send(step.answer)

    def _step(self, message: bytes) -> Step:
        assert self._exchange is not None
        step = self._exchange.step(message)
        if step.principal is not None and self._known is not None and step.principal != self._known:
            raise AuthenticationFailed("Cannot change principals during re-authentication")
        self.is_by_token = step.by_token
        return step

    def _lifetime_ms(self, step: Step) -> int:
        """How long the session lasts; 0 for as long as the connection. As in Kafka, a token alone does not limit it."""
        lifetime_ms = self._sasl.session_ms(self._mechanism)
        if lifetime_ms > 0 and step.expires_at_ms is not None:
            lifetime_ms = max(min(lifetime_ms, step.expires_at_ms - self._server.clock.now_ms()), 1)
        return lifetime_ms

    @property
    def _reason(self) -> str:
        return f"it failed to authenticate with {self._mechanism}"

    # --- the end ---

    def _complete(self, connection: Connection, principal: Principal, lifetime_ms: int) -> None:
        self.state = State.COMPLETE
        self._exchange = None
        self._known = principal
        connection.belongs_to(principal)
        self._is_bare = False
        if lifetime_ms > 0:
            self._ends_at = self._server.clock.monotonic() + lifetime_ms / 1000
            connection.take_frames(self.dispatch, self._server.request_max_bytes)
        else:
            self._ends_at = None
            connection.take_frames(self._server.dispatcher.dispatch, self._server.request_max_bytes)

    def _fail(
        self,
        request: Request,
        answer: SaslHandshakeResponse | SaslAuthenticateResponse | None,
        reason: str,
    ) -> None:
        """Tell the client after a while, so that nobody can try many passwords, and disconnect it."""
        self.state = State.FAILED
        self._exchange = None
        connection = request.connection
        self._count_failure(connection)

        def tell() -> None:
            if answer is not None and not connection.closed:
                request.answer(answer)
                connection.send()
            connection.close(reason)

        request.on_abandon = self._server.clock.call_later(self._sasl.failure_delay(), tell).cancel

    def _count_failure(self, connection: Connection) -> None:
        self._server.failed_authentications[connection.listener.name, self._mechanism or _NO_MECHANISM] += 1


def _name(key: int) -> str:
    try:
        return ApiKey(key).api_name
    except ValueError:
        return f"a request of key {key}"
