"""A cluster as a coordinator sees it: who leads which partition, and brokers that answer what a test says."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from barnabas.broker.controller.images import PartitionImage, TopicImage
from barnabas.broker.interbroker.channel import ChannelError

ME, OTHER, THIRD = 1, 2, 3


class Cluster:
    """Leaders by topic: {"t": [1, 2]} says that broker 1 leads t-0, and broker 2 leads t-1."""

    def __init__(self, **leaders):
        self.topics = {}
        self.lead(**{"__transaction_state": [ME], **leaders})

    def lead(self, **leaders):
        for name, ids in leaders.items():
            partitions = tuple(PartitionImage(index, (leader,), leader) for index, leader in enumerate(ids))
            self.topics[name] = TopicImage(name, name.encode(), partitions, {}, 0)

    def delete(self, name):
        del self.topics[name]

    def topic(self, name):
        return self.topics.get(name)

    def partition(self, topic, index):
        image = self.topics.get(topic)
        return None if image is None or index >= len(image.partitions) else image.partitions[index]


class Channel:
    """Requests wait until a test answers them."""

    def __init__(self):
        self.asked = []

    async def request(self, key, message, version, answer, timeout_ms):
        asked = SimpleNamespace(
            key=key, message=message, version=version, answer=asyncio.get_running_loop().create_future()
        )
        self.asked.append(asked)
        return await asked.answer


class Peers:
    def __init__(self, *broker_ids):
        self.channels = {broker_id: Channel() for broker_id in broker_ids}

    def channel(self, broker_id):
        return self.channels.get(broker_id)

    async def asked(self, broker_id):
        """The request that waits for a broker's answer."""
        channel = self.channels[broker_id]
        for _ in range(5):
            await asyncio.sleep(0)
        (asked,) = channel.asked
        channel.asked = []
        return asked

    async def is_idle(self, broker_id):
        for _ in range(5):
            await asyncio.sleep(0)
        return not self.channels[broker_id].asked

    async def answer(self, broker_id, response):
        """Answer the request that waits; its message. An exception is a lost answer."""
        asked = await self.asked(broker_id)
        if isinstance(response, Exception):
            asked.answer.set_exception(response)
        else:
            asked.answer.set_result(response)
        for _ in range(5):
            await asyncio.sleep(0)
        return asked


LOST = ChannelError("the connection was lost")
