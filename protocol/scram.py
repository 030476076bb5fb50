"""SCRAM (RFC 5802, RFC 7677): its arithmetic, its messages, and the client's side of an exchange.

Pure: random bytes are passed in. Nothing here prints or raises anything that would reveal a password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

MECHANISMS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
FEWEST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384
_NO_CHANNEL_BINDING: Final = "n,,"
# The extension with which a client says that its name is the id of a delegation token, and its password the HMAC.
TOKEN_AUTH: Final = "tokenauth"


class ScramError(Exception):
    """A message that is not SCRAM, or a proof that is wrong."""


class ScramCredential(NamedTuple):
    """What a server stores instead of a password: enough to check one, but not the password itself."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential(…)"

    @classmethod
    def of_password(cls, mechanism: str, password: str, salt: bytes, iterations: int) -> ScramCredential:
        salted = salted_password(mechanism, password, salt, iterations)
        return cls.of_salted_password(mechanism, salted, salt, iterations)

    @classmethod
    def of_salted_password(cls, mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
        stored_key = _hash(mechanism, _hmac(mechanism, salted, b"Client Key"))
        return cls(salt, stored_key, _hmac(mechanism, salted, b"Server Key"), iterations)


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(MECHANISMS[mechanism], password.encode(), salt, iterations)


def is_proof(mechanism: str, credential: ScramCredential, auth_message: bytes, proof: bytes) -> bool:
    """Whether a client's proof shows that it knows the password."""
    signature = _hmac(mechanism, credential.stored_key, auth_message)
    if len(proof) != len(signature):
        return False
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    return hmac.compare_digest(_hash(mechanism, client_key), credential.stored_key)


def server_signature(mechanism: str, credential: ScramCredential, auth_message: bytes) -> bytes:
    return _hmac(mechanism, credential.server_key, auth_message)


def _hmac(mechanism: str, key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, MECHANISMS[mechanism])


def _hash(mechanism: str, data: bytes) -> bytes:
    return hashlib.new(MECHANISMS[mechanism], data).digest()


# --- messages ---


def attributes(message: str) -> dict[str, str]:
    """`r=…,s=…,i=…` as a mapping. ScramError if it is something else."""
    found: dict[str, str] = {}
    for part in message.split(","):
        name, equals, value = part.partition("=")
        if not equals or not name or name in found:
            raise ScramError("a SCRAM message is malformed")
        found[name] = value
    return found


def decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError("a SCRAM message is malformed") from None


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


class FirstMessage(NamedTuple):
    """A client's first message."""

    header: str  # about channel binding
    authorization_id: str
    user: str
    nonce: str
    bare: str  # without the header
    extensions: dict[str, str]


def read_first_message(data: bytes) -> FirstMessage:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ScramError("a SCRAM message is not UTF-8") from None
    binding, _, rest = text.partition(",")
    authorization, _, bare = rest.partition(",")
    if binding not in ("n", "y") or (authorization and not authorization.startswith("a=")):
        raise ScramError("a SCRAM message has a header that is not served")
    found = attributes(bare)
    if list(found)[:2] != ["n", "r"] or not found["r"]:
        raise ScramError("a SCRAM message is malformed")
    user = _unescaped(found.pop("n"))
    nonce = found.pop("r")
    header = f"{binding},{authorization},"
    return FirstMessage(header, _unescaped(authorization.removeprefix("a=")), user, nonce, bare, found)


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(name: str) -> str:
    plain = name.replace("=2C", ",").replace("=3D", "\0")
    if "=" in plain:
        raise ScramError("a name in a SCRAM message is malformed")
    return plain.replace("\0", "=")


class ScramClient:
    """The client's side of one exchange: `first`, then `final` with the server's first message, then `finish`."""

    def __init__(
        self, mechanism: str, user: str, password: str, nonce: bytes, extensions: Mapping[str, str] | None = None
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = encoded(nonce)
        self._bare = f"n={_escaped(user)},r={self._nonce}"
        self._bare += "".join(f",{name}={value}" for name, value in (extensions or {}).items())
        self._signature = b""

    def first(self) -> bytes:
        return f"{_NO_CHANNEL_BINDING}{self._bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        text = challenge.decode()
        found = attributes(text)
        nonce, iterations = found.get("r", ""), found.get("i", "")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce) or not iterations.isdigit():
            raise ScramError("the server's SCRAM message is malformed")
        if int(iterations) < FEWEST_ITERATIONS:
            raise ScramError("the server asks for too few iterations")
        salt = decoded(found.get("s", ""))
        credential_base = salted_password(self._mechanism, self._password, salt, int(iterations))
        without_proof = f"c={encoded(_NO_CHANNEL_BINDING.encode())},r={nonce}"
        auth_message = f"{self._bare},{text},{without_proof}".encode()
        client_key = _hmac(self._mechanism, credential_base, b"Client Key")
        signature = _hmac(self._mechanism, _hash(self._mechanism, client_key), auth_message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = _hmac(self._mechanism, _hmac(self._mechanism, credential_base, b"Server Key"), auth_message)
        return f"{without_proof},p={encoded(proof)}".encode()

    def finish(self, data: bytes) -> None:
        """ScramError unless the server also knows the password."""
        found = attributes(data.decode())
        if not hmac.compare_digest(decoded(found.get("v", "")), self._signature):
            raise ScramError("the server does not know the password")
