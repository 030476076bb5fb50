"""SASL/PLAIN (RFC 4616): a name and a password in one message. It belongs behind TLS."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from barnabas.broker.security.principal import USER, Principal
from barnabas.broker.security.sasl.mechanism import AuthenticationFailed, Step

_NOBODY_S: Final = "\0"  # no client can send it as a password


def _hash(password: str) -> bytes:
    """So that comparing takes as long for any length."""
    return hashlib.sha256(password.encode()).digest()


class Plain:
    """Users and passwords are those of the listener's JAAS configuration."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def step(self, message: bytes) -> Step:
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            raise AuthenticationFailed("Authentication failed: the message is not UTF-8") from None
        if len(parts) != 3:
            raise AuthenticationFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        if not user:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        # A user that does not exist takes as long as a wrong password.
        expected = self._passwords.get(user, _NOBODY_S)
        if not hmac.compare_digest(_hash(expected), _hash(password)):
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return Step(b"", Principal(USER, user))
