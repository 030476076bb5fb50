"""Delegation tokens: what they are, and who may do what with them. Pure; the registry stores them (token_nodes.py).

A token stands for its owner. Its HMAC, computed from its id and `delegation.token.secret.key`, is its password, so a
broker that knows the key knows every token's password, and the registry stores none.
"""

from __future__ import annotations

import hmac
from typing import NamedTuple

from barnabas.broker.security.principal import Principal
from barnabas.protocol.errors import ErrorCode


class TokenRefused(Exception):
    """Why a request about a token is refused."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class Token(NamedTuple):
    token_id: str
    owner: Principal
    requester: Principal  # who requested it
    renewers: tuple[Principal, ...]
    issued_at_ms: int
    expires_at_ms: int
    max_at_ms: int  # it cannot be renewed beyond this

    @property
    def concerned(self) -> tuple[Principal, ...]:
        """Those who may see it without any other right."""
        return self.owner, self.requester, *self.renewers

    def may_change(self, principal: Principal) -> bool:
        """Whether a principal may renew and expire it. As in Kafka, having requested it is not enough."""
        return principal == self.owner or principal in self.renewers

    def is_expired(self, now_ms: int) -> bool:
        return self.max_at_ms < now_ms or self.expires_at_ms < now_ms


class Lifetimes(NamedTuple):
    """For how long tokens may live."""

    renewal_ms: int  # delegation.token.expiry.time.ms
    max_ms: int  # delegation.token.max.lifetime.ms


def hmac_of(token_id: str, secret: str) -> bytes:
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def issued(
    token_id: str,
    owner: Principal,
    requester: Principal,
    renewers: tuple[Principal, ...],
    wanted_ms: int,
    lifetimes: Lifetimes,
    now_ms: int,
) -> Token:
    """A new token. `wanted_ms` can make its life shorter, not longer."""
    max_at_ms = now_ms + _at_most(lifetimes.max_ms, wanted_ms)
    expires_at_ms = min(max_at_ms, now_ms + lifetimes.renewal_ms)
    return Token(token_id, owner, requester, renewers, now_ms, expires_at_ms, max_at_ms)


def renewed(token: Token, by: Principal, wanted_ms: int, lifetimes: Lifetimes, now_ms: int) -> Token:
    _check_life(token, now_ms)
    _check_owner(token, by)
    return token._replace(expires_at_ms=min(token.max_at_ms, now_ms + _at_most(lifetimes.renewal_ms, wanted_ms)))


def ended(token: Token, by: Principal, in_ms: int, now_ms: int) -> Token | None:
    """The token with its new expiry; None if it should be removed now, which is also allowed for an expired one."""
    _check_owner(token, by)
    if in_ms < 0:
        return None
    _check_life(token, now_ms)
    return token._replace(expires_at_ms=min(token.max_at_ms, now_ms + in_ms))


def _at_most(limit_ms: int, wanted_ms: int) -> int:
    return min(limit_ms, wanted_ms) if wanted_ms > 0 else limit_ms


def _check_life(token: Token, now_ms: int) -> None:
    if token.is_expired(now_ms):
        raise TokenRefused(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_owner(token: Token, by: Principal) -> None:
    if not token.may_change(by):
        raise TokenRefused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
