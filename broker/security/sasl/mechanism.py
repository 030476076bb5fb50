"""What every SASL mechanism has in common: an exchange of messages that ends with a principal."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from barnabas.broker.security.principal import Principal


class AuthenticationFailed(Exception):
    """A sentence for the client. It is the same for a wrong password and for a user that does not exist."""


class Step(NamedTuple):
    """The server's part of one exchange of messages."""

    answer: bytes
    principal: Principal | None = None  # set with the last one
    expires_at_ms: int | None = None  # when the client's credential expires
    by_token: bool = False  # whether that was a delegation token


class Exchange(Protocol):
    def step(self, message: bytes) -> Step:
        """Answer a client's message. Raises AuthenticationFailed."""
        ...
