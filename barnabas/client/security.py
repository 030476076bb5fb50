"""How a client reaches a broker that requires TLS or a password."""

from __future__ import annotations

import os
import ssl
from typing import Final, NamedTuple

from barnabas.client.errors import NotAuthenticated
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.protocol.scram import MECHANISMS as SCRAM
from barnabas.protocol.scram import TOKEN_AUTH, ScramClient, ScramError

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *SCRAM)
_NONCE_SIZE: Final = 18


class Security(NamedTuple):
    tls: ssl.SSLContext | None = None
    mechanism: str | None = None  # None: the broker does not authenticate clients
    user: str = ""
    password: str = ""
    is_token: bool = False  # whether these are the id and the HMAC of a delegation token

    def __repr__(self) -> str:
        return f"Security(mechanism={self.mechanism}, user={self.user})"


PLAINTEXT: Final = Security()


def authenticate(wire: Wire, security: Security) -> None:
    """Authenticate, before anything else. NotAuthenticated if the broker refuses."""
    mechanism = security.mechanism
    if mechanism is None:
        return
    asked = SaslHandshakeRequest(mechanism=mechanism)
    answer: SaslHandshakeResponse = wire.ask(ApiKey.SASL_HANDSHAKE, asked, 1)
    if answer.error_code:
        offered = ", ".join(answer.mechanisms) or "nothing"
        raise NotAuthenticated(f"the broker does not support {mechanism}; it offers {offered}")
    if mechanism == PLAIN:
        _step(wire, f"\0{security.user}\0{security.password}".encode())
        return
    extensions = {TOKEN_AUTH: "true"} if security.is_token else {}
    scram = ScramClient(mechanism, security.user, security.password, os.urandom(_NONCE_SIZE), extensions)
    try:
        scram.finish(_step(wire, scram.final(_step(wire, scram.first()))))
    except ScramError as error:
        raise NotAuthenticated(str(error)) from None


def _step(wire: Wire, message: bytes) -> bytes:
    # Version 0: its sessions never expire, and no connection of ours lives long enough to authenticate again.
    answer: SaslAuthenticateResponse = wire.ask(
        ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message), 0
    )
    if answer.error_code:
        raise NotAuthenticated(answer.error_message or "the broker does not let us in")
    return bytes(answer.auth_bytes)
