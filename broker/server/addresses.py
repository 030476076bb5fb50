"""Addresses of sockets, as clients and people are told them."""

from __future__ import annotations

import socket
from functools import cache


def unmapped(host: str) -> str:
    """A socket of both families shows an IPv4 address inside an IPv6 one; nobody else knows it under that name."""
    return host.removeprefix("::ffff:") if "." in host else host


def host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@cache
def addresses_of(host: str) -> frozenset[str]:
    """All addresses of a host, asked for once, since asking may take its time; none if nobody knows it."""
    try:
        return frozenset(str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except socket.gaierror:
        return frozenset()
