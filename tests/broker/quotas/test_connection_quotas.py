"""How many connections may be opened per second."""

import pytest

from barnabas.broker.config.values import INT_MAX
from barnabas.broker.quotas.connection_quotas import ConnectionQuotas
from barnabas.broker.quotas.entities import DEFAULT
from barnabas.broker.quotas.rates import Window


@pytest.fixture
def quotas():
    return ConnectionQuotas(lambda: Window(11, 1000))


def waits(quotas, count, broker_limit=INT_MAX, listener_limit=INT_MAX, listener="A"):
    return [quotas.record(listener, broker_limit, listener_limit, 0) for _ in range(count)]


def test_without_limits_nobody_waits(quotas):
    assert not any(waits(quotas, 1000))


def test_a_broker_s_limit_is_for_all_listeners(quotas):
    assert waits(quotas, 6, broker_limit=1, listener="A") == [0] * 6
    assert waits(quotas, 6, broker_limit=1, listener="B") == [0, 0, 0, 0, 1000, 1000]


def test_a_listener_s_limit_is_its_own(quotas):
    assert waits(quotas, 12, listener_limit=1, listener="A")[-2:] == [1000, 1000]
    assert waits(quotas, 10, listener_limit=1, listener="B") == [0] * 10


def test_an_address_is_refused_and_what_is_refused_does_not_count(quotas):
    quotas.set_limit("192.0.2.1", 1)
    assert [quotas.record_from("192.0.2.1", 0) for _ in range(12)] == [0] * 10 + [1000, 1000]
    assert quotas.record_from("192.0.2.2", 0) == 0
    assert quotas.record_from("192.0.2.1", 11_000) == 0


def test_an_address_without_a_limit_has_the_default(quotas):
    quotas.set_limit(DEFAULT, 1)
    quotas.set_limit("192.0.2.1", 100)
    assert not any(quotas.record_from("192.0.2.1", 0) for _ in range(50))
    assert any(quotas.record_from("192.0.2.2", 0) for _ in range(50))
    quotas.set_limit(DEFAULT, None)
    assert quotas.record_from("192.0.2.2", 0) == 0
