"""Addresses of sockets, as clients and people see them."""

from __future__ import annotations

import socket
from functools import cache


def unmapped(host: str) -> str:
    """A dual-stack socket shows an IPv4 address inside an IPv6 one; nobody else uses that form."""
    return host.removeprefix("::ffff:") if "." in host else host


def host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@cache
def addresses_of(host: str) -> frozenset[str]:
    """All addresses of a host, resolved once because that may take time; none if it is unknown."""
    try:
        return frozenset(str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except socket.gaierror:
        return frozenset()
