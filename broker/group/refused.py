"""A request to a group that is answered with an error."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode


class Refused(Exception):
    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
