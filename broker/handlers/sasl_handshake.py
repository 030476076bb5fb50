"""SaslHandshake (key 17): a client chooses a SASL mechanism.

- Version 0: what follows are the mechanism's messages, without requests around them.
- Version 1: they come in SaslAuthenticate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: SaslHandshakeRequest) -> SaslHandshakeResponse | None:
    authenticator = request.connection.authenticator
    if authenticator is None:  # its listener has no SASL
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    return authenticator.handshake(request, message.mechanism)
