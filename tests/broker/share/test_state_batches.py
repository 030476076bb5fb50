import random

import pytest

from barnabas.broker.share.state_batches import StateBatch, combined


def test_the_higher_count_wins_and_then_the_higher_state():
    before = (StateBatch(0, 9, 0, 1),)
    assert combined(before, [StateBatch(3, 5, 0, 2)], 0) == (
        StateBatch(0, 2, 0, 1),
        StateBatch(3, 5, 0, 2),
        StateBatch(6, 9, 0, 1),
    )
    assert combined(before, [StateBatch(0, 9, 2, 1)], 0) == (StateBatch(0, 9, 2, 1),)
    assert combined((StateBatch(0, 9, 4, 3),), [StateBatch(2, 3, 0, 2)], 0) == (StateBatch(0, 9, 4, 3),)


def test_neighbours_become_one():
    assert combined((StateBatch(0, 4, 2, 1),), [StateBatch(5, 9, 2, 1)], 0) == (StateBatch(0, 9, 2, 1),)


def test_what_is_below_the_start_is_forgotten():
    before = (StateBatch(0, 4, 2, 1), StateBatch(7, 9, 0, 1))
    assert combined(before, [], 8) == (StateBatch(8, 9, 0, 1),)
    assert combined(before, [], 10) == ()
    assert combined(before, [], -1) == before


@pytest.mark.parametrize("seed", range(30))
def test_any_batches(seed):
    """Against a dictionary with the state of every single offset."""
    made_up = random.Random(seed)
    batches = ()
    states = {}
    start = 0
    for _ in range(30):
        new = []
        for _ in range(made_up.randrange(4)):
            first = start + made_up.randrange(30)
            new.append(StateBatch(first, first + made_up.randrange(9), made_up.choice((0, 2, 4)), made_up.randrange(4)))
        start += made_up.choice((0, 0, 2))
        for first, last, state, count in new:
            for offset in range(first, last + 1):
                states[offset] = max(states.get(offset, (-1, -1)), (count, state))
        states = {offset: state for offset, state in states.items() if offset >= start}
        batches = combined(batches, new, start)
        assert states == {
            offset: (count, state) for first, last, state, count in batches for offset in range(first, last + 1)
        }
        assert list(batches) == sorted(batches)
