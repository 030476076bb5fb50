"""Requests about users and their SCRAM credentials."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName


def describe_users(names: Sequence[str] | None = None) -> DescribeUserScramCredentialsRequest:
    """Without names, all users."""
    users = None if names is None else [UserName(name=name) for name in names]
    return DescribeUserScramCredentialsRequest(users=users)


def set_credential(
    name: str, mechanism: int, iterations: int, salt: bytes, salted_password: bytes
) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[],
        upsertions=[
            ScramCredentialUpsertion(
                name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted_password
            )
        ],
    )


def delete_credential(name: str, mechanism: int) -> AlterUserScramCredentialsRequest:
    deletion = ScramCredentialDeletion(name=name, mechanism=mechanism)
    return AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[])
