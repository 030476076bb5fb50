"""Who a connection belongs to, as authorizers and quotas know it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from barnabas.broker.security.errors import SecurityError

USER: Final = "User"


class Principal(NamedTuple):
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")


# --- the name in a certificate ---

# The attributes that RFC 2253 has keywords for. Java writes any other as its number and its encoded value.
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANK: Final = "\\ "  # at the beginning and at the end


def distinguished_name(certificate: bytes) -> str:
    """The subject of a DER certificate in the form of RFC 2253, character for character as Java writes it."""
    from cryptography import x509

    subject = x509.load_der_x509_certificate(certificate).subject
    return ",".join("+".join(map(_attribute, rdn)) for rdn in reversed(subject.rdns))


def _attribute(attribute: Any) -> str:
    number: str = attribute.oid.dotted_string
    keyword = _KEYWORDS.get(number)
    if keyword is None:
        return f"{number}=#{_encoded_value(attribute).hex()}"
    value: str = attribute.value
    inner = value.strip(" ")
    before, after = value.split(inner, 1) if inner else (value, "")
    escaped = "".join(f"\\{character}" if character in _ESCAPED else character for character in inner)
    return f"{keyword}={before.replace(' ', _BLANK)}{escaped}{after.replace(' ', _BLANK)}"


def _encoded_value(attribute: Any) -> bytes:
    """The DER of an attribute's value: what follows its number in the encoding of a name of this one attribute."""
    from cryptography import x509

    encoded = x509.Name([attribute]).public_bytes()
    for _ in range(3):  # a sequence of sets of sequences
        encoded = encoded[_header_size(encoded) :]
    number_size = _header_size(encoded) + encoded[1]
    return encoded[number_size:]


def _header_size(encoded: bytes) -> int:
    return 2 + (encoded[1] & 0x7F if encoded[1] & 0x80 else 0)


# --- ssl.principal.mapping.rules ---

_RULES: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)",
    re.DOTALL,
)
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d)", re.DOTALL)

Rule = Callable[[str], str | None]


class PrincipalMapper:
    """`ssl.principal.mapping.rules`: the first rule that matches a distinguished name turns it into a user name."""

    def __init__(self, rules: str) -> None:
        """SecurityError if a rule cannot be read."""
        self._rules = _parsed(rules)

    def __call__(self, name: str) -> Principal | None:
        """None if no rule matches: then clients with that name are refused."""
        for rule in self._rules:
            mapped = rule(name)
            if mapped is not None:
                return Principal(USER, mapped)
        return None


def _parsed(text: str) -> list[Rule]:
    rules: list[Rule] = []
    position = 0
    while position < len(text):
        found = _RULES.match(text, position)
        if found is None:
            raise SecurityError(
                f"ssl.principal.mapping.rules has {text[position:].strip()!r}, but each rule must be DEFAULT or "
                "RULE:pattern/replacement/ with an L or U after it for lower or upper case"
            )
        position = found.end()
        rules.append(str if found["default"] else _rule(found["pattern"], found["replacement"], found["case"]))
    return rules or [str]


def _rule(pattern: str, replacement: str, case: str) -> Rule:
    try:
        compiled = re.compile(pattern.replace(r"\/", "/"))
    except re.error as error:
        raise SecurityError(f"ssl.principal.mapping.rules has the pattern {pattern!r}: {error}") from None

    def apply(name: str) -> str | None:
        found = compiled.fullmatch(name)
        if found is None:
            return None
        mapped = _REFERENCE.sub(lambda reference: _referred(found, reference), replacement)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(case, mapped)

    return apply


def _referred(found: re.Match[str], reference: re.Match[str]) -> str:
    """What `$1` or an escaped character in a replacement stands for. As in Kafka, a group that is not there is text."""
    if reference[1] is not None:
        return reference[1]
    number = int(reference[2])
    return (found[number] or "") if number <= (found.re.groups) else reference[0]
