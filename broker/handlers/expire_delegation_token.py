"""ExpireDelegationToken (key 40): say when a token ends; with a negative time, now. Version 2 is flexible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.token_requests import check_sender, code_of, no_time, tokens_of
from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.security.tokens import TokenRefused
from barnabas.broker.server.request import Request
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(
    broker: Broker, request: Request, message: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    try:
        check_sender(request)
        principal = request.connection.principal
        token = await tokens_of(broker).end(bytes(message.hmac), principal, message.expiry_time_period_ms)
    except (TokenRefused, RegistryError) as error:
        code = code_of(error)
        return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=no_time(code))
    ends_at_ms = broker.clock.now_ms() if token is None else token.expires_at_ms
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ends_at_ms)
