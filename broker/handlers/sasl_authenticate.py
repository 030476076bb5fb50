"""SaslAuthenticate (key 36): one message of a SASL mechanism, and the answer to it.

- Version 1: the answer says how long the client stays authenticated.
- Version 2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: SaslAuthenticateRequest) -> SaslAuthenticateResponse | None:
    authenticator = request.connection.authenticator
    if authenticator is None:  # its listener has no SASL
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
            auth_bytes=b"",
        )
    return authenticator.authenticate(request, bytes(message.auth_bytes))
