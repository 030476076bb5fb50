"""Records belong to a member for a while: then they are for others."""

import pytest

from barnabas import Barnabas
from tests.support.share_side import ShareSide

WAIT = {"max_wait_ms": 10_000, "min_bytes": 1}
LOCK_SECONDS = 30


@pytest.fixture(scope="module")
def broker():
    with Barnabas({"share.coordinator.state.topic.num.partitions": "1"}, journal=False) as broker:
        yield broker


@pytest.fixture(scope="module")
def one_side(broker):
    side = ShareSide(broker.port)
    side.wait_for_coordinator()
    yield side
    side.close()


@pytest.fixture
def side(one_side, request):
    one_side.begin(request.node.name)
    yield one_side
    one_side.begin("")


@pytest.fixture
def place(side):
    place = side.place(side.group)
    side.produce(place, 3, topic=side.group)
    side.initialize(place)
    return place


def offsets(answer):
    return [
        (offset, each.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for each in partition.acquired_records
        for offset in range(each.first_offset, each.last_offset + 1)
    ]


def test_records_that_nobody_acknowledges_come_again(broker, side, place):
    assert offsets(side.fetch("a", 0, place, **WAIT)) == [(0, 1), (1, 1), (2, 1)]
    assert not side.acknowledge("a", 1, {place: [(0, 0, [1])]}).responses[0].partitions[0].error_code
    broker.clock.advance(LOCK_SECONDS - 1)
    assert not offsets(side.fetch("b", 0, place))
    broker.clock.advance(1)
    assert offsets(side.fetch("b", 1, **WAIT)) == [(1, 2), (2, 2)]
    # The first member has them no longer.
    assert side.acknowledge("a", 2, {place: [(1, 2, [1])]}).responses[0].partitions[0].error_code


def test_records_that_are_renewed_stay(broker, side, place):
    side.fetch("a", 0, place, **WAIT)
    broker.clock.advance(LOCK_SECONDS - 1)
    side.acknowledge("a", 1, {place: [(1, 2, [4])]}, is_renew_ack=True)
    broker.clock.advance(LOCK_SECONDS - 1)
    assert offsets(side.fetch("b", 0, place, **WAIT)) == [(0, 2)]
    assert not side.acknowledge("a", 2, {place: [(1, 2, [1])]}).responses[0].partitions[0].error_code


def test_a_fetch_waits_until_records_come_back(broker, side, place):
    side.fetch("a", 0, place, **WAIT)
    assert not offsets(side.fetch("b", 0, place))
    side.leave("a")
    assert offsets(side.fetch("b", 1, **WAIT)) == [(0, 2), (1, 2), (2, 2)]
