"""Stories of share groups made up from seeds: members fetch, acknowledge, release and reject."""

import random

import pytest

from tests.integration.share.test_fetching import WAIT, begin

pytestmark = pytest.mark.java

MEMBERS = ("a", "b", "c")


@pytest.mark.parametrize("seed", range(6))
def test_any_story(tell, seed):
    def story(side):
        made_up = random.Random(seed)
        place = begin(side, *(made_up.randrange(1, 7) for _ in range(30)), topic=f"any-{seed}")
        epochs = {}
        has = {}
        for member in MEMBERS:
            # Kafka answers a first fetch that need not wait before it has loaded anything.
            answer = side.fetch(member, 0, place, max_records=made_up.randrange(1, 5), **WAIT)
            yield answer
            epochs[member] = 1
            has[member] = acquired(answer)
        for _ in range(60):
            member = made_up.choice(MEMBERS)
            what = made_up.choice(("fetch", "fetch", "acknowledge", "acknowledge", "both", "nonsense"))
            # What is released with a fetch may be written before or after that: no brokers would agree on it.
            types = (1, 3) if what == "both" else (1, 1, 2, 3)
            batches = made_up_acknowledgements(made_up, has[member], types)
            if what == "nonsense":
                first = made_up.randrange(60)
                batches = [(first, first + made_up.randrange(4), [made_up.choice((1, 2, 3))])]
                has[member] = [offset for offset in has[member] if not batches[0][0] <= offset <= batches[0][1]]
            if what in ("acknowledge", "nonsense"):
                yield side.acknowledge(member, epochs[member], {place: batches} if batches else {})
                epochs[member] += 1
            else:
                given = {place: batches} if what == "both" and batches else None
                if given is None:
                    has[member] += [offset for first, last, _ in batches for offset in range(first, last + 1)]
                exact = made_up.choice((0, 0, 1))
                answer = side.fetch(
                    member,
                    epochs[member],
                    place,
                    acknowledgements=given,
                    max_records=made_up.randrange(1, 12),
                    share_acquire_mode=exact,
                )
                yield answer
                epochs[member] += 1
                has[member] += acquired(answer)
        yield states(side.read(place))

    tell(story)


def acquired(answer):
    return [
        offset
        for topic in answer.responses
        for partition in topic.partitions
        for each in partition.acquired_records
        for offset in range(each.first_offset, each.last_offset + 1)
    ]


def made_up_acknowledgements(made_up, offsets, types):
    """Of some of a member's offsets, which it has no longer then."""
    taken = sorted(offsets)[: made_up.randrange(5)]
    for offset in taken:
        offsets.remove(offset)
    return [(offset, offset, [made_up.choice(types)]) for offset in taken]


def states(read):
    (result,) = read.results[0].partitions
    return result.start_offset, {
        offset: (each.delivery_state, each.delivery_count)
        for each in result.state_batches
        for offset in range(each.first_offset, each.last_offset + 1)
    }
