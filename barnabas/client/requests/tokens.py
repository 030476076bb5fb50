"""Requests about delegation tokens."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

USER = "User"


def create_token(
    owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int = -1
) -> CreateDelegationTokenRequest:
    """`owner` None stands for the requester."""
    return CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else USER,
        owner_principal_name=owner,
        renewers=[CreatableRenewers(principal_type=USER, principal_name=name) for name in renewers],
        max_lifetime_ms=max_lifetime_ms,
    )


def renew_token(hmac: bytes, ms: int = -1) -> RenewDelegationTokenRequest:
    return RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=ms)


def expire_token(hmac: bytes, ms: int = -1) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=ms)


def describe_tokens(owners: Iterable[str] | None = None) -> DescribeDelegationTokenRequest:
    """`owners` None stands for all tokens that the requester may see."""
    if owners is None:
        return DescribeDelegationTokenRequest(owners=None)
    return DescribeDelegationTokenRequest(
        owners=[DescribeDelegationTokenOwner(principal_type=USER, principal_name=name) for name in owners]
    )
