"""SASL/SCRAM: client and broker prove to each other that they know the password, without sending it."""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.broker.security.principal import USER, Principal
from barnabas.broker.security.sasl.mechanism import AuthenticationFailed, Step
from barnabas.protocol.scram import (
    FEWEST_ITERATIONS,
    MECHANISMS,
    TOKEN_AUTH,
    FirstMessage,
    ScramCredential,
    ScramError,
    attributes,
    decoded,
    encoded,
    is_proof,
    read_first_message,
    server_signature,
)

CredentialOf = Callable[[str, str], ScramCredential | None]
"""The credential of a user for a mechanism."""


class TokenLogin(NamedTuple):
    """The credential of a delegation token, for a mechanism."""

    credential: ScramCredential
    owner: str
    expires_at_ms: int


TokenOf = Callable[[str, str], TokenLogin | None]
"""The credential of the token with an id, for a mechanism."""

# Unknown users also get a salt of their own, which is always the same, so that nobody can find out who exists.
_SECRET: Final = os.urandom(32)
_SALT_SIZE: Final = 24


class Scram:
    """One exchange of a client."""

    def __init__(self, mechanism: str, credential_of: CredentialOf, token_of: TokenOf) -> None:
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._token_of = token_of
        self._token: TokenLogin | None = None
        self._first: FirstMessage | None = None
        self._challenge = ""
        self._nonce = ""
        self._credential: ScramCredential | None = None
        self._is_known = False

    def step(self, message: bytes) -> Step:
        try:
            return self._challenged(message) if self._first is None else self._proved(self._first, message)
        except ScramError:
            raise self._failure() from None

    def _challenged(self, message: bytes) -> Step:
        first = self._first = read_first_message(message)
        if first.authorization_id not in ("", first.user):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        found = self._looked_up(first)
        self._is_known = found is not None
        self._credential = credential = found or _made_up(first.user, self._mechanism)
        self._nonce = first.nonce + encoded(os.urandom(18))
        self._challenge = f"r={self._nonce},s={encoded(credential.salt)},i={credential.iterations}"
        return Step(self._challenge.encode())

    def _looked_up(self, first: FirstMessage) -> ScramCredential | None:
        if first.extensions.get(TOKEN_AUTH, "").lower() != "true":
            return self._credential_of(first.user, self._mechanism)
        self._token = self._token_of(first.user, self._mechanism)
        return None if self._token is None else self._token.credential

    def _proved(self, first: FirstMessage, message: bytes) -> Step:
        assert self._credential is not None
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise ScramError("a SCRAM message is not UTF-8") from None
        without_proof, _, proof = text.rpartition(",p=")
        found = attributes(without_proof) if without_proof else {}
        if found.get("r") != self._nonce or decoded(found.get("c", "")) != first.header.encode():
            raise ScramError("a SCRAM message belongs to another exchange")
        auth_message = f"{first.bare},{self._challenge},{without_proof}".encode()
        is_right = is_proof(self._mechanism, self._credential, auth_message, decoded(proof))
        if not (is_right and self._is_known):
            raise self._failure()
        signature = server_signature(self._mechanism, self._credential, auth_message)
        answer = f"v={encoded(signature)}".encode()
        token = self._token
        if token is not None:
            return Step(answer, Principal(USER, token.owner), token.expires_at_ms, by_token=True)
        return Step(answer, Principal(USER, first.user))

    def _failure(self) -> AuthenticationFailed:
        return AuthenticationFailed(
            f"Authentication failed during authentication due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )


def _made_up(user: str, mechanism: str) -> ScramCredential:
    size = 32 if MECHANISMS[mechanism] == "sha256" else 64
    salt = hmac.digest(_SECRET, f"{mechanism} {user}".encode(), "sha256")[:_SALT_SIZE]
    return ScramCredential(salt, os.urandom(size), os.urandom(size), FEWEST_ITERATIONS)


# --- credentials as Kafka stores them ---


def write_credential(credential: ScramCredential) -> str:
    return (
        f"salt={encoded(credential.salt)},stored_key={encoded(credential.stored_key)},"
        f"server_key={encoded(credential.server_key)},iterations={credential.iterations}"
    )


def read_credential(text: str) -> ScramCredential | None:
    """None if it is not one."""
    try:
        found = attributes(text)
        salt, stored_key, server_key = (decoded(found[name]) for name in ("salt", "stored_key", "server_key"))
        return ScramCredential(salt, stored_key, server_key, int(found["iterations"]))
    except (ScramError, KeyError, ValueError):
        return None
