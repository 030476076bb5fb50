"""`ssl.cipher.suites`: Java's names of cipher suites, and what OpenSSL calls them."""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from typing import Final

from barnabas.broker.security.errors import SecurityError

TLS13: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_JAVA_NAME: Final = re.compile(r"TLS_(?:(?P<exchange>\w+)_)?WITH_(?P<cipher>\w+)_(?P<hash>SHA\d*)")


def openssl_name(suite: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256. Other names are OpenSSL's own."""
    found = _JAVA_NAME.fullmatch(suite)
    if found is None:
        return suite
    cipher = re.sub(r"_CBC$", "", found["cipher"])
    cipher = re.sub(r"^(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", cipher).replace("_", "-")
    exchange = "" if found["exchange"] == "RSA" else f"{found['exchange']}-".replace("_", "-")
    with_hash = "" if cipher.startswith("CHACHA20") else f"-{found['hash']}"
    return f"{exchange}{cipher}{with_hash}"


def allow_only(context: ssl.SSLContext, suites: Sequence[str], name: str) -> None:
    """Let a context use these suites only. SecurityError if that is not possible; `name` is the setting."""
    new = [suite for suite in suites if suite in TLS13]
    old = [suite for suite in suites if suite not in TLS13]
    if new and len(new) < len(TLS13):
        # Python cannot tell OpenSSL which of these to use. Suites that were left out on purpose would be used
        # nevertheless.
        raise SecurityError(
            f"{name} has some of the suites of TLS 1.3 ({', '.join(new)}), but Barnabas can only use all of them or "
            f"none: name {', '.join(TLS13)}, or none of them"
        )
    try:
        if old:
            context.set_ciphers(":".join(map(openssl_name, old)))
    except ssl.SSLError:
        raise SecurityError(f"{name} has no cipher suite that OpenSSL knows: {', '.join(old)}") from None
    if not new:
        _without(context, ssl.TLSVersion.TLSv1_3, name)
    elif not old:
        _without(context, ssl.TLSVersion.TLSv1_2, name)


def _without(context: ssl.SSLContext, version: ssl.TLSVersion, name: str) -> None:
    """Switch off a version none of whose suites is allowed."""
    if context.minimum_version == context.maximum_version == version:
        raise SecurityError(f"{name} has no cipher suite for the only version in ssl.enabled.protocols")
    if context.maximum_version == version:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    elif context.minimum_version == version:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
