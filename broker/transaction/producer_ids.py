"""Producer ids: allocated in order from blocks, each of which belongs to one broker, so that no id is allocated twice.

The controller reserves the blocks in the registry; a broker asks it for the next one when its own is used up. The rest
of a block is lost when the broker ends, which does not matter: there are 2**63 ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from barnabas.broker.coordinator.cluster import AskController
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


class ProducerIdsUnavailable(Exception):
    """No block is available now. Clients are told to retry (COORDINATOR_LOAD_IN_PROGRESS), as by Kafka."""


class ProducerIdBlock(NamedTuple):
    start: int
    length: int


Allocate = Callable[[], Awaitable[ProducerIdBlock]]


class ProducerIds:
    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._next = self._end = 0  # what is left of the block
        self._allocating = asyncio.Lock()

    async def next(self) -> int:
        """A new id; ProducerIdsUnavailable if no block is available."""
        while self._next == self._end:
            async with self._allocating:
                if self._next == self._end:  # nobody got one while we waited
                    start, length = await self._allocate()
                    self._next, self._end = start, start + length
        self._next += 1
        return self._next - 1


class ControllerBlocks:
    """Gets blocks from the controller (AllocateProducerIds). One whose answer was lost is lost too."""

    def __init__(
        self,
        ask_controller: AskController,
        broker_id: int,
        broker_epoch: Callable[[], int],
        timeout_ms: Callable[[], int],
    ) -> None:
        self._ask_controller = ask_controller
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._timeout_ms = timeout_ms

    async def allocate(self) -> ProducerIdBlock:
        request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
        try:
            answer: AllocateProducerIdsResponse = await self._ask_controller(
                ApiKey.ALLOCATE_PRODUCER_IDS, request, 0, AllocateProducerIdsResponse, self._timeout_ms()
            )
        except ChannelError as error:
            raise ProducerIdsUnavailable(str(error)) from error
        if answer.error_code:
            raise ProducerIdsUnavailable(ErrorCode(answer.error_code).name)
        if answer.producer_id_start < 0 or answer.producer_id_len <= 0:
            raise ProducerIdsUnavailable("the controller gave an empty block")
        return ProducerIdBlock(answer.producer_id_start, answer.producer_id_len)
