"""Starting the console: where it listens, who needs a token, and the address that is printed."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from barnabas.broker.console.console import Console
from barnabas.broker.console.door import Door
from barnabas.broker.console.people import People
from barnabas.broker.server.addresses import host_and_port
from barnabas.broker.testing.serving import is_loopback

if TYPE_CHECKING:
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.metrics.metrics import Metrics
    from barnabas.broker.testing.control import Control
    from barnabas.broker.testing.lab import Lab

TOKEN_VARIABLE: Final = "BARNABAS_CONSOLE_TOKEN"


async def start(
    cluster: LocalCluster,
    metrics: Metrics,
    lab: Lab,
    host: str,
    port: int,
    *,
    writes: bool,
    control: Control | None = None,
) -> tuple[Console, str]:
    """Returns the console and its address. OSError if nobody can listen there."""
    token = os.environ.get(TOKEN_VARIABLE) or None
    if token is None and _needs_token(cluster, host):
        token = secrets.token_urlsafe(24)
    console = Console(cluster, metrics, lab, Door(host, token), writes=writes, control=control)
    found = host_and_port(*await console.start(host, port))
    metrics.start()
    return console, f"http://{found}/" + ("" if token is None else f"?token={quote(token, safe='')}")


def _needs_token(cluster: LocalCluster, host: str) -> bool:
    """Others can reach it; or the broker asks who somebody is, and the console cannot, since there are no passwords."""
    if not is_loopback(host):
        return True
    if People(cluster).sign_in:
        return False
    return any(
        broker.authorizer is not None or any(listener.uses_sasl for listener in broker.config.broker_listeners)
        for broker in cluster.brokers
    )
