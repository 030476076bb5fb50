"""How far groups were behind in the last minutes, also while nobody looked."""

import pytest

from barnabas.broker.console import lags as module
from barnabas.broker.console.lags import LagHistory
from barnabas.protocol.records.builder import NewRecord
from tests.broker.console.test_api import commit
from tests.support.running_broker import cluster_of, delete_topic


@pytest.fixture
def lags(console):
    return LagHistory(cluster_of(console.broker))


def of(lags, group="castle", hidden=()):
    found = lags.of(group, lambda topic: topic not in hidden)
    assert len(found["times"]) == len(found["messages"]) == len(found["late_ms"])
    return found["messages"]


async def test_each_look_adds_to_the_curve_of_each_group(console, lags):
    await console.topic("t", 1, [b"a", b"b", b"c"])
    await lags.look()
    await commit(console, offset=1)
    await commit(console, "inn", offset=3)
    await lags.look()
    console.write("t", b"d")
    await lags.look()
    await commit(console, offset=4)
    await lags.look()
    assert of(lags) == [2, 3, 0]
    assert of(lags, "inn") == [0, 1, 1]
    assert of(lags, "nobody") == []


async def test_topics_are_added_up_if_they_may_be_seen(console, lags):
    await console.topic("t", 1, [b"a", b"b", b"c"])
    await console.topic("u", 1, [b"a", b"b"])
    await commit(console, offset=0)
    await lags.look()
    await commit(console, offset=0, topic="u")
    await lags.look()
    assert of(lags) == [3, 5]
    assert of(lags, hidden=["t"]) == [2]
    assert of(lags, hidden=["u"]) == [3, 3]
    assert of(lags, hidden=["t", "u"]) == []


async def test_how_late_a_group_was_is_the_age_of_the_first_message_that_it_had_not_read(console, lags, monkeypatch):
    read, timestamp_at = [], module.timestamp_at
    monkeypatch.setattr(module, "timestamp_at", lambda log, offset: read.append(offset) or timestamp_at(log, offset))
    now_ms = console.broker.clock.now_ms()
    await console.topic("t", 1, [NewRecord(now_ms - age, None, b"x") for age in (90_000, 60_000, 30_000)])
    await commit(console, offset=1)
    await lags.look()
    await lags.look()
    assert read == [1]  # the second look remembers it
    await commit(console, offset=3)
    await lags.look()
    first, second, last = lags.of("castle", lambda topic: True)["late_ms"]
    assert 60_000 <= first <= second < 90_000
    assert last == 0


async def test_only_the_last_minutes_are_kept_and_only_so_many_groups(console, monkeypatch):
    monkeypatch.setattr(module, "_KEPT", 3)
    monkeypatch.setattr(module, "_MOST_SERIES", 1)
    monkeypatch.setattr(module, "_MOST_READ", 0)
    lags = LagHistory(cluster_of(console.broker))
    await console.topic("t", 1, [b"a"])
    await commit(console, "castle", offset=0)
    await commit(console, "inn", offset=0)
    for _ in range(5):
        await lags.look()
    assert sorted([of(lags, "castle"), of(lags, "inn")]) == [[], [1, 1, 1]]
    found = max((lags.of(group, lambda topic: True)["late_ms"] for group in ("castle", "inn")), key=len)
    assert found == [None, None, None]  # nothing was read


async def test_a_topic_that_is_deleted_takes_its_curve_along(console, lags):
    await console.topic("t", 1, [b"a"])
    await commit(console, offset=0)
    await lags.look()
    assert of(lags) == [1]
    await delete_topic(console.broker, "t")
    while of(lags):
        await lags.look()


async def test_the_console_keeps_it_while_nobody_looks(console):
    await console.topic("t", 1, [b"a", b"b"])
    await commit(console, offset=0)
    await console.console._api.lags.look()
    status, told = await console.get("/api/lag", name="castle")
    assert (status, told["messages"][-1]) == (200, 2)
    assert (await console.get("/api/lag", name="nobody"))[1] == {"times": [], "messages": [], "late_ms": []}
