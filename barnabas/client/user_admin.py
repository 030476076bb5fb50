"""Users of SCRAM, as an administrator sees them. A password is salted and hashed here, and never sent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.client.client import Client
from barnabas.client.errors import check
from barnabas.client.requests.users import delete_credential, describe_users, set_credential
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from barnabas.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsResponse
from barnabas.protocol.scram import salted_password

_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_NAMES: Final = {number: name for name, number in _NUMBERS.items()}
_SALT_SIZE: Final = 24


class User(NamedTuple):
    name: str
    credentials: dict[str, int]  # mechanisms, and how many iterations each has


def users(client: Client, names: Sequence[str] | None = None) -> list[User]:
    """These users, or all of them, sorted by name. BrokerError if one does not exist."""

    def attempt() -> list[User]:
        answer = client.controller().ask(describe_users(names), DescribeUserScramCredentialsResponse)
        check(answer.error_code, "users", answer.error_message)
        found = []
        for each in answer.results:
            check(each.error_code, f"user '{each.user}'", each.error_message)
            infos = {_NAMES.get(info.mechanism, str(info.mechanism)): info.iterations for info in each.credential_infos}
            found.append(User(each.user, infos))
        return sorted(found)

    return client.settled(attempt)


def set_password(client: Client, user: str, password: str, mechanism: str, iterations: int) -> None:
    salt = os.urandom(_SALT_SIZE)
    salted = salted_password(mechanism, password, salt, iterations)
    _alter(client, user, set_credential(user, _NUMBERS[mechanism], iterations, salt, salted))


def delete_user(client: Client, user: str) -> None:
    """Delete all credentials of a user, one at a time: a request may name a user once."""
    (known,) = users(client, [user])
    for mechanism in known.credentials:
        _alter(client, user, delete_credential(user, _NUMBERS[mechanism]))


def _alter(client: Client, user: str, request: AlterUserScramCredentialsRequest) -> None:
    def attempt() -> None:
        answer = client.controller().ask(request, AlterUserScramCredentialsResponse)
        for each in answer.results:
            check(each.error_code, f"user '{user}'", each.error_message)

    client.settled(attempt)
