"""DescribeDelegationToken (key 41): tokens with their HMACs, for the owners that the sender may ask about.

Everybody may see the tokens that they own, requested or may renew.

- Version 2 is flexible.
- Version 3 adds who requested a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.token_requests import check_sender, tokens_of
from barnabas.broker.security.authorizer import Access
from barnabas.broker.security.principal import Principal
from barnabas.broker.security.tokens import Token, TokenRefused
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.broker.token_follower import Known
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: DescribeDelegationTokenRequest
) -> Steps[DescribeDelegationTokenResponse]:
    try:
        check_sender(request)
        known = list(tokens_of(broker).known)
    except TokenRefused as refused:
        return DescribeDelegationTokenResponse(error_code=refused.code, tokens=[])
    owners = None
    if message.owners is not None:
        owners = {Principal(each.principal_type, each.principal_name) for each in message.owners}
    asking = request.connection.principal
    tokens = []
    for each in known:
        yield
        is_asked_for = owners is None or not owners.isdisjoint(each.token.concerned)
        if is_asked_for and (asking in each.token.concerned or _may_see(request.access, each.token)):
            tokens.append(_described(each))
    return DescribeDelegationTokenResponse(tokens=tokens)


def _may_see(access: Access, token: Token) -> bool:
    return access.may(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id) or access.may(
        AclOperation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner)
    )


def _described(known: Known) -> DescribedDelegationToken:
    token = known.token
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_at_ms,
        expiry_timestamp=token.expires_at_ms,
        max_timestamp=token.max_at_ms,
        token_id=token.token_id,
        hmac=known.hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in token.renewers
        ],
    )
