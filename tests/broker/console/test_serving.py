"""Where the console listens, and when it wants a token."""

import pytest

from barnabas.broker.console.serving import TOKEN_VARIABLE, start
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.testing.lab import Lab
from tests.support.running_broker import cluster_of, running


async def url_of(folder, host="127.0.0.1", **settings):
    async with running(folder, **settings) as broker:
        cluster = cluster_of(broker)
        metrics = Metrics(cluster)
        console, url = await start(cluster, metrics, Lab(cluster), host, 0, writes=False)
        await console.stop()
        metrics.stop()
        return url


async def test_on_this_machine_alone_it_needs_no_token(tmp_path):
    url = await url_of(tmp_path)
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/")


async def test_whoever_can_reach_it_from_elsewhere_needs_a_token(tmp_path):
    url = await url_of(tmp_path, "0.0.0.0")
    assert url.startswith("http://0.0.0.0:")
    assert len(url.partition("?token=")[2]) > 20


async def test_the_token_may_be_given(tmp_path, monkeypatch):
    monkeypatch.setenv(TOKEN_VARIABLE, "my own")
    assert (await url_of(tmp_path)).endswith("?token=my%20own")


@pytest.mark.parametrize(
    "settings", [{"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}]
)
async def test_where_the_broker_asks_who_somebody_is_the_console_does_too(tmp_path, settings):
    assert "?token=" in await url_of(tmp_path, **settings, super_users="User:ANONYMOUS")


async def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_behind(tmp_path):
    async with running(tmp_path) as broker:
        cluster = cluster_of(broker)
        taken = broker.server.listeners[0].port
        with pytest.raises(OSError, match="address already in use"):
            await start(cluster, Metrics(cluster), Lab(cluster), "127.0.0.1", taken, writes=False)
