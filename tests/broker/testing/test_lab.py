"""The laboratory as a whole: it is attached to the server only while it is in use, and observing changes nothing."""

import pytest
from structlog.testing import capture_logs

from barnabas.broker.server.dispatch import Route
from barnabas.broker.testing.lab import Lab
from barnabas.client.requests.data import produce
from barnabas.protocol.api import ApiKey
from tests.broker.server.harness import connected
from tests.support.batches import batch
from tests.support.running_broker import cluster_of, create_topic, running


@pytest.fixture
async def broker(tmp_path):
    async with running(tmp_path) as broker:
        await create_topic(broker, "t")
        yield broker


async def write(client):
    return await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), 9)


def route(broker):
    return type(broker.server.dispatcher._routes[0, 9])


async def test_it_is_attached_only_while_something_is_in_use(broker):
    lab = Lab(cluster_of(broker))
    async with connected(broker.server) as client:
        await write(client)
        assert route(broker) is Route
        lab.strict.switch(True)
        lab.journal.switch(True)
        await write(client)
        assert route(broker) is not Route
        lab.strict.switch(False)
        await write(client)
        assert route(broker) is not Route
        lab.journal.switch(False)
        await write(client)
        assert route(broker) is Route


async def test_a_watcher_that_fails_changes_nothing_for_clients(broker, monkeypatch):
    lab = Lab(cluster_of(broker))
    lab.strict.switch(True)
    lab.journal.switch(True)

    def fails(*arguments):
        raise RuntimeError("out of order")

    for watcher in (lab.strict, lab.journal):
        monkeypatch.setattr(watcher, "arrived", fails)
        monkeypatch.setattr(watcher, "answered", fails)
    with capture_logs() as logs:
        async with connected(broker.server) as client:
            answer = await write(client)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert [entry["event"] for entry in logs].count("a watcher failed") == 4


async def test_a_reset_keeps_what_is_switched_on(broker):
    lab = Lab(cluster_of(broker))
    lab.journal.switch(True)
    lab.faults.add({"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"})
    async with connected(broker.server) as client:
        await write(client)
        lab.reset()
        assert (await write(client)).responses[0].partition_responses[0].error_code == 0
    assert lab.journal.on
    assert lab.journal.last_number == 2
