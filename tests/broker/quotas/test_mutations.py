"""What requests create and delete, as far as quotas allow."""

import pytest

from barnabas.broker.quotas.client_quotas import MutationQuota
from barnabas.broker.quotas.mutations import Mutations
from barnabas.broker.quotas.rates import TokenBucket, Window


class Client:
    """May change a partition per second; eleven at once."""

    def __init__(self):
        self.now_ms = 1_000_000
        self._quota = MutationQuota(1.0, TokenBucket(), lambda: Window(11, 1000))

    def asks(self, strict):
        return Mutations(self._quota, strict, lambda: self.now_ms)


@pytest.fixture
def client():
    return Client()


def test_what_is_over_the_quota_is_refused_where_that_is_strict(client):
    request = client.asks(strict=True)
    assert request.admit("a", 11)
    assert request.admit("b", 3)  # nothing was owed before
    assert not request.admit("c", 1)
    assert request.throttle_ms(client.now_ms) == 3000


def test_what_was_refused_costs_no_tokens(client):
    client.asks(strict=True).admit("a", 14)
    assert not client.asks(strict=True).admit("b", 1000)
    client.now_ms += 3000
    assert client.asks(strict=True).admit("b", 1)


def test_otherwise_everything_is_done_and_the_client_waits(client):
    request = client.asks(strict=False)
    assert request.admit("a", 11)
    assert request.throttle_ms(client.now_ms) == 0
    assert request.admit("b", 3)
    assert request.throttle_ms(client.now_ms) == 3000
    client.now_ms += 1000
    assert request.throttle_ms(client.now_ms) == 2000


def test_a_topic_that_is_decided_about_again_is_counted_once(client):
    request = client.asks(strict=True)
    for _ in range(5):
        assert request.admit("a", 11)
    assert request.admit("b", 1)
