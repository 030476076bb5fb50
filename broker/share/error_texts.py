"""What answers of share groups say about an error beside its code."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode


def text_of(error: ErrorCode) -> str:
    return error.name.replace("_", " ").capitalize() + "."
