"""Addresses of sockets, as clients and people are told them."""

from __future__ import annotations


def unmapped(host: str) -> str:
    """A socket of both families shows an IPv4 address inside an IPv6 one; nobody else knows it under that name."""
    return host.removeprefix("::ffff:") if "." in host else host


def host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
