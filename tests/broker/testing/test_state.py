"""What a broker says about its own state."""

import asyncio

from barnabas.broker.testing.state import state_of
from tests.broker.server.harness import connected
from tests.support.running_broker import cluster_of, running


async def test_a_connection_that_is_paused_has_no_requests(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server):
        while not broker.server.connections:  # noqa: ASYNC110
            await asyncio.sleep(0)
        broker.server.pause()
        (connection,) = state_of(cluster_of(broker))["connections"]
        assert connection["requests"] == []
        broker.server.resume()
