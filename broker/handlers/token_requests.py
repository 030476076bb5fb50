"""What all requests about delegation tokens have in common: who may send them, and whether there are tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.security.principal import ANONYMOUS
from barnabas.broker.security.tokens import TokenRefused
from barnabas.broker.server.request import Request
from barnabas.broker.token_follower import TokenFollower
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

log = structlog.get_logger()

# In Kafka, the broker itself refuses for these reasons, and the controller for others.
_AT_THE_BROKER: Final = (
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_PRINCIPAL_TYPE,
)


def check_sender(request: Request) -> None:
    """TokenRefused unless the client is authenticated, and not by a token: tokens must not be used to create or prolong
    tokens."""
    connection = request.connection
    protocol = connection.listener.config.security_protocol
    is_unknown = protocol == "PLAINTEXT" or (protocol == "SSL" and connection.principal == ANONYMOUS)
    if is_unknown or (connection.authenticator is not None and connection.authenticator.is_by_token):
        raise TokenRefused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def tokens_of(broker: Broker) -> TokenFollower:
    """TokenRefused if the broker has no key for them."""
    if broker.token_follower is None:
        raise TokenRefused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return broker.token_follower


def code_of(error: TokenRefused | RegistryError) -> ErrorCode:
    if isinstance(error, TokenRefused):
        return error.code
    log.error("a delegation token could not be changed", reason=str(error))
    return ErrorCode.UNKNOWN_SERVER_ERROR


def no_time(code: ErrorCode) -> int:
    """The value of a time in an answer with an error."""
    return -1 if code in _AT_THE_BROKER else 0
