"""Members are numbers; they have as many partitions as `sizes` says."""

from __future__ import annotations

from barnabas.broker.group.assignors.loads import Loads


def test_the_lightest_get_partitions_until_they_are_level_with_the_next() -> None:
    sizes = [2, 0, 0, 1]
    loads = Loads([0, 1, 2, 3], sizes)
    given = []
    for _ in range(7):
        given.append(loads.lightest())
        sizes[given[-1]] += 1
    assert given == [1, 2, 1, 2, 3, 1, 2]


def test_the_heaviest_give_partitions_away_until_they_are_level_with_the_next() -> None:
    sizes = [2, 4, 3]
    loads = Loads([0, 1, 2], sizes)
    taken = []
    for _ in range(6):
        heaviest = loads.heaviest()
        assert heaviest is not None
        sizes[heaviest] -= 1
        taken.append(heaviest)
    assert taken == [1, 1, 2, 1, 2, 0]


def test_a_member_with_nothing_to_give_is_left_out() -> None:
    loads = Loads([0, 1, 2], [1, 5, 3])
    assert loads.heaviest() == 1
    loads.leave_out_heaviest()
    assert loads.heaviest() == 2
    loads.leave_out_heaviest()
    assert loads.heaviest() == 0
    loads.leave_out_heaviest()
    assert loads.heaviest() is None


def test_members_are_even_when_a_move_would_only_swap_them() -> None:
    sizes = [0, 3]
    loads = Loads([0, 1], sizes)
    assert loads.spread == 3
    assert not loads.is_even
    assert (loads.heaviest(), loads.lightest()) == (1, 0)
    assert not loads.is_even
    sizes[:] = 1, 2
    assert (loads.heaviest(), loads.lightest()) == (1, 0)
    assert loads.is_even
