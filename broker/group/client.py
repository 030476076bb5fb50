"""Who asks something of a group."""

from __future__ import annotations

from typing import NamedTuple


class ClientInfo(NamedTuple):
    """A client, and the version of its request."""

    client_id: str
    host: str
    version: int
