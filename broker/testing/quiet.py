"""Waiting until a broker has carried out what something caused."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.broker import Broker

# One thing may lead to the next over this many turns of the loop without anybody being visibly at work.
_CALM_TURNS: Final = 5
# Nothing that a timer causes takes longer; a disk that hangs does not hang whoever waits here.
_SECONDS: Final = 10.0
_PAUSE: Final = 0.0005


async def settle(broker: Broker) -> None:
    """Wait until nothing is being written, made, deleted or compacted, and the loop had time for what follows."""
    end = time.monotonic() + _SECONDS
    calm = 0
    while calm < _CALM_TURNS and time.monotonic() < end:
        if broker.replicas.is_working or broker.registry.is_writing or broker.transactions.has_asked:
            calm = 0
            await asyncio.sleep(0)
        elif broker.worker.under_way:
            calm = 0
            await asyncio.sleep(_PAUSE)  # that is a thread, for which the loop need not spin
        else:
            calm += 1
            await asyncio.sleep(0)
