"""A console over a broker in the test's own process, and a browser's view of its API."""

import json
from contextlib import asynccontextmanager

import aiohttp
import pytest

from barnabas.broker.console.console import Console
from barnabas.broker.console.door import Door
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.testing.control import Control
from barnabas.broker.testing.lab import Lab
from barnabas.protocol.records.builder import NewRecord, build_batch
from tests.support.running_broker import cluster_of, create_topic, partition, running


class Looking:
    """Asks a console as its page does."""

    def __init__(self, console, broker, session, url):
        self.console = console
        self.broker = broker
        self.session = session
        self.url = url

    async def get(self, path, **query):
        async with self.session.get(self.url + path, params=query) as response:
            return response.status, await response.json()

    async def post(self, path, body):
        async with self.session.post(self.url + path, json=body) as response:
            return response.status, await response.json()

    async def topic(self, name="t", partitions=1, records=()):
        """Create a topic, with records in its first partition."""
        await create_topic(self.broker, name, partitions)
        self.write(name, *records)

    def write(self, name, *records, index=0):
        for record in records:
            if not isinstance(record, NewRecord):
                record = NewRecord(1000, None, record)
            partition(self.broker, name, index).append_now(memoryview(build_batch([record])), 1000)


async def next_news(stream):
    """The next event of a stream that is not a comment."""
    async for line in stream.content:
        if line.startswith(b"data: "):
            return json.loads(line.removeprefix(b"data: "))
    raise AssertionError("the stream has ended")


@asynccontextmanager
async def looking(folder, *, writes=False, token=None, host="127.0.0.1", control=False, **settings):
    async with running(folder, **settings) as broker:
        cluster = cluster_of(broker)
        metrics = Metrics(cluster)
        lab = Lab(cluster)
        controlled = Control(cluster, "token", lambda keep: None, lab, metrics) if control else None
        console = Console(cluster, metrics, lab, Door(host, token), writes=writes, control=controlled)
        _, port = await console.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                yield Looking(console, broker, session, f"http://127.0.0.1:{port}")
        finally:
            await console.stop()
            metrics.stop()


@pytest.fixture
async def console(tmp_path):
    async with looking(tmp_path) as found:
        yield found


@pytest.fixture
async def writable(tmp_path):
    async with looking(tmp_path, writes=True) as found:
        yield found
