"""AlterUserScramCredentials (key 51): set or remove users' SCRAM credentials.

A client sends a password salted and hashed, never in clear.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.security.sasl.scram import write_credential
from barnabas.broker.server.freeing import LongList
from barnabas.broker.server.pieces import spread
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.scram import FEWEST_ITERATIONS, MOST_ITERATIONS, ScramCredential

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

Wish = ScramCredentialDeletion | ScramCredentialUpsertion


class _Refused(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


async def handle(
    broker: Broker, request: Request, message: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """As in Kafka, a request names each user once, whatever the mechanisms; the first problem of a user is reported."""
    both: list[Wish] = [*message.deletions, *message.upsertions]
    wishes: dict[str, Wish] = {}
    refused: dict[str, _Refused] = {}
    async for wish in spread(both):
        if wish.name in refused:
            continue
        problem = _twice() if wish.name in wishes else _problem_with(broker, wish)
        wishes[wish.name] = wish
        if problem is not None:
            refused[wish.name] = problem
    results: list[AlterUserScramCredentialsResult] = LongList()
    async for user, wish in spread(wishes.items()):
        problem = refused.pop(user, None)
        results.append(await _altered(broker, user, wish) if problem is None else _told(user, problem))
    return AlterUserScramCredentialsResponse(results=results)


async def _altered(broker: Broker, user: str, wish: Wish) -> AlterUserScramCredentialsResult:
    try:
        await broker.config_follower.alter_user(user, partial(_carried_out, wish))
    except _Refused as refused:
        return _told(user, refused)
    except RegistryError as error:
        return _told(user, _Refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))
    return AlterUserScramCredentialsResult(user=user)


def _told(user: str, refused: _Refused) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(user=user, error_code=refused.code, error_message=str(refused))


def _problem_with(broker: Broker, wish: Wish) -> _Refused | None:
    if not wish.name:
        return _Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if wish.mechanism not in MECHANISMS:
        return _Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(wish, ScramCredentialDeletion):
        known = broker.config_follower.scram_credential(wish.name, MECHANISMS[wish.mechanism])
        return _not_there() if known is None else None
    if wish.iterations < FEWEST_ITERATIONS:
        return _Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if wish.iterations > MOST_ITERATIONS:
        return _Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None


def _twice() -> _Refused:
    return _Refused(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


def _not_there() -> _Refused:
    return _Refused(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


def _carried_out(wish: Wish, present: Mapping[str, str]) -> Mapping[str, str]:
    mechanism = MECHANISMS[wish.mechanism]
    if isinstance(wish, ScramCredentialUpsertion):
        credential = ScramCredential.of_salted_password(
            mechanism, bytes(wish.salted_password), bytes(wish.salt), wish.iterations
        )
        return {**present, mechanism: write_credential(credential)}
    if mechanism not in present:  # somebody else was faster
        raise _not_there()
    return {name: value for name, value in present.items() if name != mechanism}
