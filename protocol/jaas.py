"""`sasl.jaas.config`: a login module with its options, in the format of a JAAS file.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="x" user_alice="y";

Error messages do not quote the setting, because it contains passwords.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_USER: Final = "user_"
_TOKENS: Final = re.compile(r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s=;"']+)|([=;]))""", re.DOTALL)


class JaasError(ValueError):
    """A text that is not such a setting."""


class JaasConfig(NamedTuple):
    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"JaasConfig({self.module})"

    @property
    def users(self) -> dict[str, str]:
        """The passwords of the users in options `user_<name>`."""
        return {name.removeprefix(_USER): value for name, value in self.options.items() if name.startswith(_USER)}

    @property
    def own(self) -> tuple[str, str] | None:
        """The name and password that the broker itself uses with other brokers."""
        user, password = self.options.get("username"), self.options.get("password")
        return None if user is None or password is None else (user, password)


def parse_jaas(text: str, name: str) -> JaasConfig:
    """JaasError, which calls the setting `name`, if it cannot be read."""
    tokens = _tokens(text, name)
    if len(tokens) < 3 or tokens[-1] != (";", False) or tokens[1][0].lower() not in _FLAGS:
        raise JaasError(
            f"{name} cannot be read: it must be a login module, the word required, options of the form "
            'key="value", and a semicolon'
        )
    rest = tokens[2:-1]
    options: dict[str, str] = {}
    while rest:
        if len(rest) < 3 or rest[1] != ("=", False) or rest[0] == (";", False):
            raise JaasError(f'{name} cannot be read: its options must have the form key="value"')
        options[rest[0][0]] = rest[2][0]
        rest = rest[3:]
    return JaasConfig(tokens[0][0], options)


def _tokens(text: str, name: str) -> list[tuple[str, bool]]:
    """The words of a text, and whether each was in quotes."""
    found = []
    position = 0
    text = text.strip()
    while position < len(text):
        token = _TOKENS.match(text, position)
        if token is None:
            raise JaasError(f"{name} cannot be read: a quotation mark is missing")
        position = token.end()
        quoted = token[1] if token[1] is not None else token[2]
        if quoted is not None:
            found.append((re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL), True))
        else:
            found.append((token[3] or token[4], False))
    return found
