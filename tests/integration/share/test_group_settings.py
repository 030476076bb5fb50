"""What is set for a share group: where it begins, and whether it sees transactions that are not committed."""

import time

import pytest

from tests.integration.share.test_fetching import WAIT, begin

pytestmark = pytest.mark.java


@pytest.mark.parametrize("reset", ["earliest", "latest", "by_duration:PT1H", "by_duration:PT0S"])
def test_where_a_group_begins(tell, reset):
    def story(side):
        side.set_for_group("share.auto.offset.reset", reset)
        place = begin(side, 2, topic=f"reset-{reset.partition(':')[2] or reset}", start_offset=-1)
        yield side.fetch("m", 0, place, max_wait_ms=1000 if reset in ("latest", "by_duration:PT0S") else 10_000)
        # A group that begins now does not see what was written before now, on whichever broker the fetch comes later.
        soon = int(time.time() * 1000) + 600_000
        side.produce(place, 1, topic=f"reset-{reset.partition(':')[2] or reset}", timestamp=soon)
        answer, _ = side.fetch_until("m", 1)
        yield answer

    tell(story)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_transactions(tell, level):
    def story(side):
        topic = f"transactions-{level}"
        side.set_for_group("share.isolation.level", level)
        place = begin(side, 2, topic=topic)
        side.transaction(topic, 2, 1, commit=False)
        side.transaction(topic, 3, commit=True)
        side.transaction(topic, 1, commit=False)
        side.produce(place, 1, topic=topic)
        epoch = 0
        while True:
            answer, epoch = side.fetch_until("m", epoch, place)
            yield answer
            acquired = answer.responses[0].partitions[0].acquired_records
            batches = [(each.first_offset, each.last_offset, [1]) for each in acquired]
            if batches:
                yield side.acknowledge("m", epoch, {place: batches})
                epoch += 1
                if batches[-1][1] >= 12:
                    break
        yield side.read(place)

    tell(story)


def test_open_transactions(tell):
    def story(side):
        side.set_for_group("share.isolation.level", "read_committed")
        place = begin(side, 1, topic="open")
        side.transaction("open", 2, commit=None)
        side.produce(place, 1, topic="open")
        yield side.fetch("m", 0, place, **WAIT)
        yield side.fetch("m", 1)

    tell(story)
