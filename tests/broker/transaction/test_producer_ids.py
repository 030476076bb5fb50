import asyncio

import pytest

from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.transaction.producer_ids import (
    ControllerBlocks,
    ProducerIdBlock,
    ProducerIds,
    ProducerIdsUnavailable,
)
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse

BLOCK = 1000


class Blocks:
    """Allocates one block after another, each after a while, so that others get in between."""

    def __init__(self):
        self.given = 0

    async def allocate(self):
        await asyncio.sleep(0)
        self.given += 1
        return ProducerIdBlock((self.given - 1) * BLOCK, BLOCK)


async def take(ids, count):
    return [await ids.next() for _ in range(count)]


async def test_they_come_in_order_and_one_block_is_asked_for_at_a_time():
    blocks = Blocks()
    assert await take(ProducerIds(blocks.allocate), 2 * BLOCK) == list(range(2 * BLOCK))
    assert blocks.given == 2


async def test_after_a_restart_none_is_reused():
    blocks = Blocks()
    before = await take(ProducerIds(blocks.allocate), 3)
    after = await take(ProducerIds(blocks.allocate), 3)
    assert (before, after) == ([0, 1, 2], [BLOCK, BLOCK + 1, BLOCK + 2])


async def test_many_callers_at_once_get_one_each():
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    taken = await asyncio.gather(*(ids.next() for _ in range(BLOCK + 500)))
    assert sorted(taken) == list(range(BLOCK + 500))
    assert blocks.given == 2


class Controller:
    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def ask(self, key, message, version, response_type, timeout_ms):
        self.asked.append((key, message.broker_id, message.broker_epoch, version))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return AllocateProducerIdsResponse(**answer)

    @property
    def blocks(self):
        return ControllerBlocks(self.ask, 2, lambda: 17, lambda: 1000)


async def test_in_a_cluster_the_controller_allocates_the_blocks():
    controller = Controller(
        {"producer_id_start": 5000, "producer_id_len": 2}, {"producer_id_start": 9000, "producer_id_len": 2}
    )
    assert await take(ProducerIds(controller.blocks.allocate), 3) == [5000, 5001, 9000]
    assert controller.asked == [(ApiKey.ALLOCATE_PRODUCER_IDS, 2, 17, 0)] * 2


@pytest.mark.parametrize(
    "answer", [ChannelError("nobody answers"), {"error_code": ErrorCode.STALE_BROKER_EPOCH}, {"producer_id_len": 0}]
)
async def test_while_it_does_not_there_are_none_and_then_it_is_asked_again(answer):
    controller = Controller(answer, {"producer_id_start": 0, "producer_id_len": 1000})
    ids = ProducerIds(controller.blocks.allocate)
    with pytest.raises(ProducerIdsUnavailable):
        await ids.next()
    assert await ids.next() == 0
