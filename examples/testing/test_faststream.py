"""FastStream: the application itself, unchanged, against a real broker."""

import asyncio

import pytest
from faststream import FastStream
from faststream.confluent import KafkaBroker


def application(bootstrap_servers, greeted):
    """The code under test: it greets every user."""
    broker = KafkaBroker(bootstrap_servers)

    @broker.subscriber("arrivals", group_id="porters", auto_offset_reset="earliest")
    @broker.publisher("greetings")
    async def greet(name: str) -> str:
        return f"Good evening, {name}"

    @broker.subscriber("greetings", group_id="guests", auto_offset_reset="earliest")
    async def hear(greeting: str) -> None:
        await greeted.put(greeting)

    return broker, FastStream(broker)


@pytest.mark.asyncio
async def test_whoever_comes_is_greeted(kafka_broker):
    kafka_broker.create_topic("arrivals", partitions=1)
    kafka_broker.create_topic("greetings", partitions=1)
    greeted = asyncio.Queue()
    broker, _ = application(kafka_broker.bootstrap_servers, greeted)
    async with broker:
        await broker.start()
        await broker.publish("K.", "arrivals")
        assert await asyncio.wait_for(greeted.get(), 60) == "Good evening, K."
    kafka_broker.delete_topic("arrivals")
    kafka_broker.delete_topic("greetings")
