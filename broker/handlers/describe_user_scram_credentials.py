"""DescribeUserScramCredentials (key 50): for which mechanisms users have a password, and with how many iterations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.handlers.alter_user_scram_credentials import MECHANISMS
from barnabas.broker.server.pieces import Steps, each
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: DescribeUserScramCredentialsRequest
) -> Steps[DescribeUserScramCredentialsResponse]:
    if not message.users:
        results = yield from each(partial(_described, broker), broker.config_follower.users())
        return DescribeUserScramCredentialsResponse(results=[found for found in results if not found.error_code])
    is_repeated: dict[str, bool] = {}
    for user in message.users:
        is_repeated[user.name] = user.name in is_repeated
        yield
    describe = partial(_described, broker)
    return DescribeUserScramCredentialsResponse(
        results=(yield from each(lambda name: _twice(name) if is_repeated[name] else describe(name), is_repeated))
    )


def _described(broker: Broker, user: str) -> DescribeUserScramCredentialsResult:
    infos = []
    for number, mechanism in MECHANISMS.items():
        credential = broker.config_follower.scram_credential(user, mechanism)
        if credential is not None:
            infos.append(CredentialInfo(mechanism=number, iterations=credential.iterations))
    if infos:
        return DescribeUserScramCredentialsResult(user=user, credential_infos=infos)
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=ErrorCode.RESOURCE_NOT_FOUND,
        error_message=f"Attempt to describe a user credential that does not exist: {user}",
        credential_infos=[],
    )


def _twice(user: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=ErrorCode.DUPLICATE_RESOURCE,
        error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
        credential_infos=[],
    )
