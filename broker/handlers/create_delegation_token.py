"""CreateDelegationToken (key 38): create a token that stands for its owner.

- Version 2 is flexible.
- Version 3 can create one for an owner other than the requester.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.token_requests import check_sender, code_of, no_time, tokens_of
from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.security.principal import USER, Principal
from barnabas.broker.security.tokens import TokenRefused
from barnabas.broker.server.request import Request
from barnabas.broker.token_follower import Known
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(
    broker: Broker, request: Request, message: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    requester = request.connection.principal
    owner = requester
    if message.owner_principal_name:
        owner = Principal(message.owner_principal_type or "", message.owner_principal_name)
    try:
        token, hmac = await _created(broker, request, message, owner)
    except (TokenRefused, RegistryError) as error:
        code = code_of(error)
        return CreateDelegationTokenResponse(
            error_code=code,
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=requester.type,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=no_time(code),
            expiry_timestamp_ms=no_time(code),
            max_timestamp_ms=no_time(code),
            token_id="",
            hmac=b"",
        )
    return CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=token.issued_at_ms,
        expiry_timestamp_ms=token.expires_at_ms,
        max_timestamp_ms=token.max_at_ms,
        token_id=token.token_id,
        hmac=hmac,
    )


async def _created(broker: Broker, request: Request, message: CreateDelegationTokenRequest, owner: Principal) -> Known:
    requester = request.connection.principal
    check_sender(request)
    if owner != requester and not request.access.may(AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        raise TokenRefused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    renewers = [Principal(each.principal_type, each.principal_name) for each in message.renewers]
    if any(renewer.type != USER for renewer in renewers):
        raise TokenRefused(ErrorCode.INVALID_PRINCIPAL_TYPE)
    return await tokens_of(broker).create(owner, requester, renewers, message.max_lifetime_ms)
