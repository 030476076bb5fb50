"""Which quota applies to a client, and who shares it."""

import pytest

from barnabas.broker.quotas import client_quotas
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.entities import DEFAULT, Entity
from barnabas.broker.quotas.rates import Window

RATE = "producer_byte_rate"

# Kafka's order: the first that exists applies.
ORDER = [
    Entity("alice", "app"),
    Entity("alice", DEFAULT),
    Entity("alice"),
    Entity(DEFAULT, "app"),
    Entity(DEFAULT, DEFAULT),
    Entity(DEFAULT),
    Entity(None, "app"),
    Entity(None, DEFAULT),
]


@pytest.fixture
def quotas():
    return ClientQuotas(lambda: Window(11, 1000), lambda: Window(11, 1000))


def limits(**values):
    return {key: float(value) for key, value in values.items()}


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_most_specific_quota_applies(quotas, first):
    for number, entity in list(enumerate(ORDER))[first:]:
        quotas.set(entity, {RATE: number + 1.0})
    assert quotas.of("alice", "app", 0).produce.limit == first + 1


def test_without_quotas_nothing_applies(quotas):
    assert not quotas.are_there
    assert quotas.of("alice", "app", 0) is None


def test_a_quota_that_is_removed_no_longer_applies(quotas):
    quotas.set(Entity("alice"), limits(producer_byte_rate=1))
    assert quotas.of("alice", "app", 0) is not None
    quotas.set(Entity("alice"), {})
    assert quotas.of("alice", "app", 0) is None
    assert not quotas.are_there


def test_each_kind_of_quota_is_looked_for_by_itself(quotas):
    quotas.set(Entity("alice", "app"), limits(producer_byte_rate=1))
    quotas.set(Entity("alice"), limits(producer_byte_rate=2, consumer_byte_rate=3))
    quotas.set(Entity(None, DEFAULT), limits(request_percentage=4, controller_mutation_rate=5))
    found = quotas.of("alice", "app", 0)
    assert (found.produce.limit, found.fetch.limit, found.request.limit, found.mutation.limit) == (1, 3, 4, 5)


def test_others_are_not_limited(quotas):
    quotas.set(Entity("alice", "app"), limits(producer_byte_rate=1))
    assert quotas.of("alice", "other", 0) is None
    assert quotas.of("bob", "app", 0) is None


def test_a_user_named_like_the_default_is_a_user(quotas):
    quotas.set(Entity("<default>"), limits(producer_byte_rate=1))
    assert quotas.of("alice", "app", 0) is None
    assert quotas.of("<default>", "app", 0) is not None


def uses(quotas, user, client_id, size=10_000, at_ms=0):
    return quotas.of(user, client_id, at_ms).produce.record(size, at_ms)


SHARED = {
    "a user's connections share it": (Entity("alice"), ("alice", "a"), ("alice", "b"), True),
    "each user has its own of the default": (Entity(DEFAULT), ("alice", "a"), ("bob", "a"), False),
    "a user's connections share the default": (Entity(DEFAULT), ("alice", "a"), ("alice", "b"), True),
    "users share a client id's": (Entity(None, "a"), ("alice", "a"), ("bob", "a"), True),
    "each client id has its own of the default": (Entity(None, DEFAULT), ("alice", "a"), ("alice", "b"), False),
    "a user's client ids have their own": (Entity("alice", DEFAULT), ("alice", "a"), ("alice", "b"), False),
    "each user's client id has its own": (Entity(DEFAULT, "a"), ("alice", "a"), ("bob", "a"), False),
}


@pytest.mark.parametrize(("entity", "one", "other", "together"), SHARED.values(), ids=SHARED)
def test_who_shares_a_quota(quotas, entity, one, other, together):
    quotas.set(entity, limits(producer_byte_rate=1000))
    assert uses(quotas, *one) == 0
    assert (uses(quotas, *other) > 0) == together


def test_what_is_used_of_a_more_specific_quota_does_not_count_for_another(quotas):
    quotas.set(Entity(DEFAULT, "a"), limits(producer_byte_rate=1000))
    quotas.set(Entity(DEFAULT), limits(producer_byte_rate=1000))
    assert uses(quotas, "alice", "a") == 0
    assert uses(quotas, "alice", "b") == 0
    assert uses(quotas, "alice", "c") > 0


def test_what_was_used_counts_when_a_quota_changes(quotas):
    quotas.set(Entity("alice"), limits(producer_byte_rate=1000))
    assert uses(quotas, "alice", "app") == 0
    quotas.set(Entity("alice"), limits(producer_byte_rate=500))
    assert uses(quotas, "alice", "app", size=0) == 10_000


def test_request_time_throttles_nobody_for_longer_than_a_sample(quotas):
    quotas.set(Entity("alice"), limits(request_percentage=1))
    assert quotas.of("alice", "app", 0).request.record(5000, 0) == 1000


def test_one_answer_holds_at_most_what_the_window_allows(quotas):
    quotas.set(Entity("alice"), limits(consumer_byte_rate=1000))
    assert quotas.of("alice", "app", 0).fetch.most_at_once == 10_000


def test_clients_that_make_up_ids_do_not_fill_the_memory(quotas, monkeypatch):
    monkeypatch.setattr(client_quotas, "_MOST_REMEMBERED", 10)
    quotas.set(Entity(None, DEFAULT), limits(producer_byte_rate=1000, controller_mutation_rate=1))
    for number in range(100):
        uses(quotas, "alice", f"app-{number}", at_ms=number * 5000)
    assert len(quotas._known) <= 10
    assert len(quotas._rates) <= 13 * 3
    assert uses(quotas, "alice", "app-99", at_ms=99 * 5000) > 0  # what counts is not forgotten
