"""DescribeUserScramCredentials (key 50): for which mechanisms users have a password, and with how many iterations."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from barnabas.broker.handlers.alter_user_scram_credentials import MECHANISMS
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
) -> DescribeUserScramCredentialsResponse:
    if not message.users:
        results = [_described(broker, user) for user in broker.config_follower.users()]
        return DescribeUserScramCredentialsResponse(results=[each for each in results if not each.error_code])
    asked = Counter(user.name for user in message.users)
    return DescribeUserScramCredentialsResponse(
        results=[_described(broker, user) if count == 1 else _twice(user) for user, count in asked.items()]
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
