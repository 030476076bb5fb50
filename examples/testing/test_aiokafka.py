"""aiokafka: a prepared state that is restored for every test, and a transaction that nobody finishes."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from barnabas import Barnabas


@pytest.fixture(scope="module")
def prepared():
    """A broker with a catalogue in it. Filling it is slow, so it is done once."""
    with Barnabas() as broker:
        broker.create_topic("catalogue", partitions=1)
        asyncio.run(fill(broker.bootstrap_servers))
        yield broker, broker.snapshot()


@pytest.fixture
def broker(prepared):
    broker, snapshot = prepared
    broker.restore(snapshot)
    return broker


async def fill(bootstrap_servers):
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
        for number in range(100):
            await producer.send_and_wait("catalogue", b"item %d" % number)


async def count(bootstrap_servers):
    """The code under test: how many committed items the catalogue has."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, isolation_level="read_committed")
    async with consumer:
        partition = TopicPartition("catalogue", 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning()
        (end,) = (await consumer.end_offsets([partition])).values()
        items = 0
        while await consumer.position(partition) < end:
            items += len((await consumer.getmany(timeout_ms=1000)).get(partition, []))
        return items


@pytest.mark.asyncio
async def test_an_item_more(broker):
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        await producer.send_and_wait("catalogue", b"item 100")
    assert await count(broker.bootstrap_servers) == 101


@pytest.mark.asyncio
async def test_a_transaction_that_nobody_finishes_hides_nothing_for_long(broker):
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, transactional_id="importer", transaction_timeout_ms=60_000
    )
    await producer.start()
    try:
        await producer.begin_transaction()
        await producer.send_and_wait("catalogue", b"half an import")
        # The importer hangs. A minute later the broker aborts its transaction, and later records can be read.
        await asyncio.to_thread(broker.clock.advance, 75)
        assert broker.state["transactions"]["importer"]["state"] == "CompleteAbort"
        assert await count(broker.bootstrap_servers) == 100
        with pytest.raises(KafkaError):
            await producer.commit_transaction()
    finally:
        await producer.stop()
