"""`sasl.jaas.config` of a broker."""

from __future__ import annotations

from barnabas.broker.security.errors import SecurityError
from barnabas.protocol import jaas


def parse_jaas(text: str, name: str) -> jaas.JaasConfig:
    """SecurityError, which calls the setting `name`, if it cannot be read."""
    try:
        return jaas.parse_jaas(text, name)
    except jaas.JaasError as error:
        raise SecurityError(str(error)) from None
