"""Producer ids: handed out in order from blocks that are reserved in the registry first, so that none is given twice.

A block that is not used up when the broker ends is lost, which costs nothing: there are 2**63 ids.
"""

from __future__ import annotations

import asyncio
import json
from typing import Final

from broker.registry.errors import Conflict
from broker.registry.operations import Create, Operation, Set
from broker.registry.registry import Registry

PATH: Final = "/latest_producer_id_block"
BLOCK: Final = 1000


class ProducerIds:
    def __init__(self, registry: Registry, broker_id: int) -> None:
        self._registry = registry
        self._broker_id = broker_id
        self._next = self._end = 0  # what is left of the block
        self._reserving = asyncio.Lock()

    async def next(self) -> int:
        while self._next == self._end:
            async with self._reserving:
                if self._next == self._end:  # nobody reserved one while we waited
                    await self._reserve()
        self._next += 1
        return self._next - 1

    async def _reserve(self) -> None:
        node = self._registry.find(PATH)
        start = int(json.loads(node.data)["block_end"]) + 1 if node is not None else 0
        end = start + BLOCK
        block = {"version": 1, "broker": self._broker_id, "block_start": str(start), "block_end": str(end - 1)}
        data = json.dumps(block).encode()
        operation: Operation = Create(PATH, data) if node is None else Set(PATH, data, node.version)
        try:
            await self._registry.multi([operation])
        except Conflict:  # another broker was faster, and its block is taken; try the next
            return
        self._next, self._end = start, end
