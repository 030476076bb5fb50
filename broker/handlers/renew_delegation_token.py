"""RenewDelegationToken (key 39): let a token be valid for longer. Version 2 is flexible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.token_requests import check_sender, code_of, no_time, tokens_of
from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.security.tokens import TokenRefused
from barnabas.broker.server.request import Request
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(
    broker: Broker, request: Request, message: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    try:
        check_sender(request)
        principal = request.connection.principal
        token = await tokens_of(broker).renew(bytes(message.hmac), principal, message.renew_period_ms)
    except (TokenRefused, RegistryError) as error:
        code = code_of(error)
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=no_time(code))
    return RenewDelegationTokenResponse(expiry_timestamp_ms=token.expires_at_ms)
