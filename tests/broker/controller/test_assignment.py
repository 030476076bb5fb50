from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.controller.assignment import check_replicas, spread_replicas
from barnabas.broker.controller.results import Refused
from barnabas.protocol.errors import ErrorCode


def without_racks(*brokers: int) -> dict[int, str | None]:
    return dict.fromkeys(brokers)


def test_the_example_that_kafka_gives() -> None:
    # Ten partitions with three replicas over five brokers; each column's followers are shifted a step further.
    assert spread_replicas(without_racks(0, 1, 2, 3, 4), 10, 3, start=0, shift=0) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_from_another_start() -> None:
    assert spread_replicas(without_racks(1, 5, 7), 4, 2, start=2, shift=1) == [(7, 5), (1, 7), (5, 1), (7, 1)]


def test_one_broker_has_them_all() -> None:
    assert spread_replicas(without_racks(3), 3, 1, start=0, shift=0) == [(3,), (3,), (3,)]


@pytest.mark.parametrize("brokers", [1, 2, 3, 5])
@pytest.mark.parametrize("start", [0, 2])
def test_it_is_even_and_names_no_broker_twice(brokers: int, start: int) -> None:
    for factor in range(1, brokers + 1):
        assignments = spread_replicas(without_racks(*range(brokers)), brokers * 6, factor, start=start, shift=start)
        assert all(len(set(replicas)) == factor for replicas in assignments)
        assert set(Counter(replicas[0] for replicas in assignments).values()) == {6}


def test_added_partitions_continue_the_round() -> None:
    whole = spread_replicas(without_racks(1, 2, 3), 3, 2, start=1, shift=1)
    added = spread_replicas(without_racks(1, 2, 3), 2, 2, start=1, shift=1, first_partition=1)
    assert added == whole[1:]


def test_the_example_that_kafka_gives_for_racks() -> None:
    # Brokers 0 to 5 in three racks: neighbours in the order 0, 3, 1, 5, 4, 2 are in different ones.
    racks: dict[int, str | None] = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert spread_replicas(racks, 7, 3, start=0, shift=0) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


def test_racks_are_left_alone_where_some_brokers_have_none() -> None:
    assert spread_replicas({1: "a", 2: None, 3: "a"}, 2, 2, start=0, shift=0) == [(1, 2), (2, 3)]


@given(
    racks=st.lists(st.sampled_from("abcd"), min_size=1, max_size=12),
    partitions=st.integers(1, 30),
    start=st.integers(0, 20),
    shift=st.integers(0, 20),
    data=st.data(),
)
def test_replicas_are_on_as_many_racks_as_possible(
    racks: list[str], partitions: int, start: int, shift: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    brokers: dict[int, str | None] = dict(enumerate(racks))
    assignments = spread_replicas(brokers, partitions, factor, start=start, shift=shift)
    assert len(assignments) == partitions
    for replicas in assignments:
        assert len(set(replicas)) == factor
        assert len({brokers[replica] for replica in replicas}) == min(factor, len(set(racks)))
    leaders = Counter(replicas[0] for replicas in assignments)
    assert max(leaders.values()) - min(leaders[each] for each in brokers) <= 1


def test_more_replicas_than_brokers() -> None:
    with pytest.raises(Refused) as caught:
        spread_replicas(without_racks(1, 2), 1, 3, start=0, shift=0)
    assert caught.value.error_code is ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(Refused):
        spread_replicas({}, 1, 1, start=0, shift=0)


@pytest.mark.parametrize(
    ("replicas", "says"),
    [
        ([], "empty"),
        ([1, 9], "broker 9"),
        ([-1, 1], "broker -1"),
        ([1, 2, 1], "broker 1 more than once"),
        ([1], "1 replica"),
        ([1, 2, 3], "3 replica"),
    ],
)
def test_invalid_manual_assignments(replicas: list[int], says: str) -> None:
    with pytest.raises(Refused) as caught:
        check_replicas(replicas, {1, 2, 3}, 2)
    assert caught.value.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert says in (caught.value.message or "")


def test_valid_manual_assignments() -> None:
    check_replicas([2, 1], {1, 2, 3}, 2)
    check_replicas([3], {1, 2, 3}, None)
