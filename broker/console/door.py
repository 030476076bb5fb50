"""Who may come in to the console: decided from a request's headers alone, before anything looks at what it wants.

A page of somebody else's, open in the same browser, must get nothing here: not by a request to this address (the
browser names its `Origin`, and says `Sec-Fetch-Site: cross-site`), and not by a name of its own that suddenly means
this machine (DNS rebinding: then `Host` has that name). An address that others can reach asks for a token, too.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

COOKIE: Final = "barnabas_console"
_EVERYWHERE: Final = ("", "0.0.0.0", "::")

# No script, style or picture but our own, nowhere in a frame, and no text that becomes HTML.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refusal(NamedTuple):
    status: HTTPStatus
    reason: str


class Door:
    def __init__(self, host: str, token: str | None) -> None:
        """`host` is where the console listens; with a token, every request must carry it."""
        self._host = host.strip("[]").lower()
        self._token = token
        self._own_names = {"localhost", self._host}
        if self._host in _EVERYWHERE:
            self._own_names.add(socket.gethostname().lower())

    def objection(self, method: str, is_page: bool, headers: Mapping[str, str], given: str | None) -> Refusal | None:
        """Why a request is refused; None if it may pass. `given` is the token that its cookie or its header has."""
        host = headers.get("Host", "")
        if not self._is_own(host):
            return Refusal(
                HTTPStatus.FORBIDDEN, f"this console is not called {_shown(host)}: use the address it printed"
            )
        if not self._comes_from_here(method, is_page, headers, host):
            return Refusal(HTTPStatus.FORBIDDEN, "a page of another site cannot use this console")
        if self._token is not None and not is_same(given, self._token):
            return Refusal(HTTPStatus.UNAUTHORIZED, "this console wants a token: open the address that it printed")
        return None

    def knows(self, token: str) -> bool:
        return self._token is not None and is_same(token, self._token)

    def _is_own(self, host: str) -> bool:
        """Names that only point here by somebody's DNS are not ours. Addresses cannot be bent."""
        name = _without_port(host)
        if name in self._own_names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or self._host in _EVERYWHERE or name == self._host

    def _comes_from_here(self, method: str, is_page: bool, headers: Mapping[str, str], host: str) -> bool:
        origin = headers.get("Origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return False
        site = headers.get("Sec-Fetch-Site")
        if site in ("cross-site", "same-site"):  # another port of this machine is somebody else, too
            is_link = method == "GET" and is_page and headers.get("Sec-Fetch-Mode") == "navigate"
            return is_link  # whoever follows a link sees the page itself
        return True


def is_same(given: str | None, token: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(), token.encode())


def bearer(headers: Mapping[str, str]) -> str | None:
    """The token of an `Authorization` header, which is what Prometheus sends."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _without_port(host: str) -> str:
    host = host.lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _shown(host: str) -> str:
    return repr(host[:100])
