"""Records of share groups: who gets which, and what becomes of them."""

import pytest

from barnabas.client.requests.shares import ACCEPT, REJECT, RELEASE

pytestmark = pytest.mark.java

WAIT = {"max_wait_ms": 10_000, "min_bytes": 1}


def begin(side, *batches, topic):
    """A topic with batches of so many records, which the story's group reads from the beginning."""
    place = side.place(topic)
    side.produce(place, *batches, topic=topic)
    side.initialize(place, start_offset=0)
    return place


def test_records_are_acquired_and_accepted(tell):
    def story(side):
        place = begin(side, 3, 2, topic="accepted")
        yield side.fetch("m", 0, place, **WAIT)
        yield side.fetch("m", 1)
        yield side.acknowledge("m", 2, {place: [(0, 4, [ACCEPT])]})
        yield side.read(place)
        yield side.summary(place)
        yield side.fetch("m", 3)
        yield side.fetch("m", -1)
        yield side.fetch("m", 4)

    tell(story)


def test_released_records_come_again(tell):
    def story(side):
        place = begin(side, 3, 3, topic="released")
        yield side.fetch("m", 0, place, **WAIT)
        yield side.acknowledge("m", 1, {place: [(1, 3, [RELEASE]), (4, 4, [ACCEPT]), (5, 5, [REJECT])]})
        yield side.read(place)
        yield side.fetch("m", 2, **WAIT)
        yield side.acknowledge("m", 3, {place: [(0, 3, [ACCEPT, ACCEPT, RELEASE, ACCEPT])]})
        yield side.read(place)
        yield side.fetch("m", 4, **WAIT)
        yield side.summary(place)

    tell(story)
