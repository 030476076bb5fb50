"""SASL/OAUTHBEARER (RFC 7628): a client presents a token that another party has signed.

Tokens are JWTs, checked as Kafka's OAuthBearerValidatorCallbackHandler does: signature, expiry, issuer, audience, scope
and subject. For development there are unsigned tokens, as Kafka's unsecured handler accepts them; they must be enabled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple, Protocol

from barnabas.broker.security.principal import USER, Principal
from barnabas.broker.security.sasl.mechanism import AuthenticationFailed, Step

# Only those with a public key: a broker must not know anything that could sign a token.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_SEPARATOR: Final = "\x01"
_BEARER: Final = "bearer "
_REFUSAL: Final = json.dumps({"status": "invalid_token"}, separators=(",", ":"))


class KeySource(Protocol):
    def find(self, key_id: str | None) -> Any | None:
        """The public key of this id."""
        ...


class Claims(NamedTuple):
    """The claims of a token that matter."""

    subject: str
    scope: frozenset[str]
    expires_at_ms: int


class InvalidToken(Exception):
    """Why a token is not accepted. It never holds the token."""


class Validator:
    """Checks tokens. Without `keys` it accepts unsigned ones."""

    def __init__(
        self,
        keys: KeySource | None,
        now_ms: Callable[[], int],
        *,
        audience: Sequence[str] = (),
        issuer: str | None = None,
        skew_seconds: int = 30,
        subject_claim: str = "sub",
        scope_claim: str = "scope",
    ) -> None:
        self._keys = keys
        self._now_ms = now_ms
        self._audience = frozenset(audience)
        self._issuer = issuer
        self._skew_ms = skew_seconds * 1000
        self._subject_claim = subject_claim
        self._scope_claim = scope_claim

    def validate(self, token: str) -> Claims:
        """Raises InvalidToken."""
        payload = self._signed_payload(token)
        now_ms = self._now_ms()
        expires_at_ms = _milliseconds(payload, "exp")
        if self._keys is not None or "iat" in payload:
            _milliseconds(payload, "iat")
        if expires_at_ms + self._skew_ms <= now_ms:
            raise InvalidToken("it has expired")
        if "nbf" in payload and _milliseconds(payload, "nbf") - self._skew_ms > now_ms:
            raise InvalidToken("it is not valid yet")
        if self._issuer is not None and payload.get("iss") != self._issuer:
            raise InvalidToken("it comes from another issuer")
        if self._audience and not self._audience & _texts(payload.get("aud"), "aud"):
            raise InvalidToken("it is meant for another audience")
        subject = payload.get(self._subject_claim)
        if not isinstance(subject, str) or not subject.strip():
            raise InvalidToken(f"it has no {self._subject_claim}")
        return Claims(subject, self._scope(payload), expires_at_ms)

    def _scope(self, payload: dict[str, Any]) -> frozenset[str]:
        scope = payload.get(self._scope_claim, "")
        return frozenset(scope.split()) if isinstance(scope, str) else _texts(scope, self._scope_claim)

    def _signed_payload(self, token: str) -> dict[str, Any]:
        """The claims of a token, once its signature has been verified."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            if self._keys is None:
                if header.get("alg") != "none" or not token.endswith("."):
                    raise InvalidToken("it is signed, and this listener accepts only unsigned tokens")
                unsigned: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
                return unsigned
            if header.get("alg") not in ALGORITHMS:
                raise InvalidToken("it is not signed by an algorithm with a public key")
            key = self._keys.find(header.get("kid"))
            if key is None:
                raise InvalidToken("its key is not known")
            # Only the signature is checked here: times are compared with the broker's own clock.
            unchecked: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False}
            payload: dict[str, Any] = jwt.decode(token, key, algorithms=[header["alg"]], options=unchecked)
            return payload
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise InvalidToken(f"it cannot be verified ({type(error).__name__})") from None


def _milliseconds(payload: dict[str, Any], claim: str) -> int:
    value = payload.get(claim)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidToken(f"it has no {claim}")
    if isinstance(value, float) and not isfinite(value):  # JSON has no such numbers, but Python reads them
        raise InvalidToken(f"it has no {claim}")
    return int(value * 1000)


def _texts(value: Any, claim: str) -> frozenset[str]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise InvalidToken(f"it has no {claim}")
    return frozenset(values)


class OAuthBearer:
    """One exchange. A token that is not accepted is answered by an error message, which the client acknowledges."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator
        self._is_refused = False

    def step(self, message: bytes) -> Step:
        if self._is_refused:
            raise AuthenticationFailed(_REFUSAL)
        authorization_id, token = _read(message)
        try:
            claims = self._validator.validate(token)
        except InvalidToken:
            self._is_refused = True
            return Step(_REFUSAL.encode())
        if authorization_id not in ("", claims.subject):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from the token's "
                "principal name"
            )
        return Step(b"", Principal(USER, claims.subject), claims.expires_at_ms)


def _read(message: bytes) -> tuple[str, str]:
    """The authorization id and the token of a client's first message."""
    malformed = AuthenticationFailed("Invalid OAUTHBEARER client first message")
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise malformed from None
    header, separator, rest = text.partition(_SEPARATOR)
    parts = header.split(",")
    if not separator or len(parts) != 3 or parts[0] not in ("n", "y") or parts[2]:
        raise malformed
    if parts[1] and not parts[1].startswith("a="):
        raise malformed
    if not rest.endswith(_SEPARATOR * 2):
        raise malformed
    pairs = dict(pair.partition("=")[::2] for pair in rest[:-2].split(_SEPARATOR))
    value = pairs.get("auth", "")
    if not value.lower().startswith(_BEARER):
        raise malformed
    return parts[1].removeprefix("a="), value[len(_BEARER) :].strip()
