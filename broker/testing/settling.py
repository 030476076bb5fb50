"""Waiting until brokers have carried out what something caused."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.local_cluster import LocalCluster, Node

# Work may pass from one part to the next for this many turns of the loop without any part showing it.
_IDLE_TURNS: Final = 5
# Whatever a timer causes takes less; a disk that hangs must not hang the caller.
_SECONDS: Final = 10.0
_PAUSE: Final = 0.0005


async def settle(cluster: LocalCluster) -> None:
    """Wait until nothing is being written, created, deleted or compacted, and the loop has had time for what
    follows."""
    end = time.monotonic() + _SECONDS
    calm = 0
    while calm < _IDLE_TURNS and time.monotonic() < end:
        if cluster.is_writing or any(broker.worker.under_way for broker in cluster.brokers):
            calm = 0
            await asyncio.sleep(_PAUSE)  # a thread is working; a spinning loop would only slow it down
        elif any(_is_busy(node) for node in cluster.nodes.values()):
            calm = 0
            await asyncio.sleep(0)
        else:
            calm += 1
            await asyncio.sleep(0)


def _is_busy(node: Node) -> bool:
    """Whether a broker has something to do now, not counting what it will retry later."""
    broker = node.broker
    if broker is None:
        return False
    return (
        broker.replicas.is_working
        or (broker.replicas.is_changing_isrs and not broker.peers.is_looking_for_controller)
        or (broker.is_controlling and not node.is_isolated)  # it retries what it cannot write there
        or broker.transactions.has_asked
        or broker.server.dispatcher.pieces.are_under_way
    )
