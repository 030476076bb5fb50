import asyncio
import json

import pytest

from broker.registry.errors import RegistryUnavailable
from broker.transaction.producer_ids import BLOCK, PATH, ProducerIds
from tests.broker.registry.memory import MemoryRegistry


class SlowRegistry(MemoryRegistry):
    """One that takes a while to write, so that others get in between."""

    def __init__(self):
        super().__init__()
        self.writes = 0

    async def multi(self, operations):
        self.writes += 1
        await asyncio.sleep(0)
        await super().multi(operations)


@pytest.fixture
async def registry():
    return SlowRegistry()


async def take(ids, count):
    return [await ids.next() for _ in range(count)]


async def test_they_come_in_order_and_the_registry_is_asked_once_a_block(registry):
    ids = ProducerIds(registry, broker_id=1)
    assert await take(ids, 2 * BLOCK) == list(range(2 * BLOCK))
    assert registry.writes == 2


async def test_a_block_is_reserved_before_its_first_id_is_given(registry):
    await ProducerIds(registry, broker_id=1).next()
    assert json.loads(registry.get(PATH).data) == {
        "version": 1,
        "broker": 1,
        "block_start": "0",
        "block_end": str(BLOCK - 1),
    }


async def test_after_a_restart_none_comes_again(registry):
    before = await take(ProducerIds(registry, broker_id=1), 3)
    after = await take(ProducerIds(registry, broker_id=1), 3)
    assert before == [0, 1, 2]
    assert after == [BLOCK, BLOCK + 1, BLOCK + 2]


async def test_many_who_ask_at_once_get_one_each(registry):
    ids = ProducerIds(registry, broker_id=1)
    taken = await asyncio.gather(*(ids.next() for _ in range(BLOCK + 500)))
    assert sorted(taken) == list(range(BLOCK + 500))
    assert registry.writes == 2


async def test_two_brokers_never_give_the_same(registry):
    brokers = [ProducerIds(registry, broker_id) for broker_id in (1, 2)]
    taken = await asyncio.gather(*(take(ids, BLOCK + 1) for ids in brokers))
    assert len(set(taken[0]) | set(taken[1])) == 2 * (BLOCK + 1)


async def test_without_the_registry_there_are_none_but_those_reserved(registry):
    ids = ProducerIds(registry, broker_id=1)
    await take(ids, BLOCK - 1)
    await registry.close()
    assert await ids.next() == BLOCK - 1
    with pytest.raises(RegistryUnavailable):
        await ids.next()
