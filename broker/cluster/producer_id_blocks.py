"""Blocks of producer ids, which the controller allocates to brokers; no id is in two of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.broker.cluster.writes import Deposed, Writes
from barnabas.broker.controller import znodes
from barnabas.broker.controller.results import Decision
from barnabas.broker.registry.errors import RegistryUnavailable
from barnabas.broker.registry.registry import Registry
from barnabas.broker.registry.tree_operations import Create, Set
from barnabas.protocol.errors import ErrorCode

PRODUCER_IDS_PER_BLOCK: Final = 1000


class ProducerIdBlock(NamedTuple):
    error_code: ErrorCode
    start: int = -1
    length: int = 0


async def allocate(registry: Registry, writes: Writes, broker_id: int) -> ProducerIdBlock:
    """The next block, for this broker."""

    def decide() -> Decision[int]:
        node = registry.find(znodes.PRODUCER_ID_BLOCK)
        start = znodes.read_producer_id_block_end(node) + 1
        data = znodes.write_producer_id_block(broker_id, start, PRODUCER_IDS_PER_BLOCK)
        path = znodes.PRODUCER_ID_BLOCK
        return Decision([start], [Create(path, data) if node is None else Set(path, data, node.version)])

    try:
        (start,) = await writes.carry_out(decide)
    except Deposed:
        return ProducerIdBlock(ErrorCode.NOT_CONTROLLER)
    except RegistryUnavailable:
        return ProducerIdBlock(ErrorCode.UNKNOWN_SERVER_ERROR)  # the block may be lost, and is not allocated again
    return ProducerIdBlock(ErrorCode.NONE, start, PRODUCER_IDS_PER_BLOCK)
