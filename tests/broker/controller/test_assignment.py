from collections import Counter

import pytest

from broker.controller.assignment import check_replicas, spread_replicas
from broker.controller.decisions import Refused
from protocol.errors import ErrorCode


def test_the_example_that_kafka_gives() -> None:
    # Ten partitions with three replicas over five brokers; each column's followers are shifted a step further.
    assert spread_replicas([0, 1, 2, 3, 4], 10, 3, start=0, shift=0) == [
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
    assert spread_replicas([1, 5, 7], 4, 2, start=2, shift=1) == [(7, 5), (1, 7), (5, 1), (7, 1)]


def test_one_broker_has_them_all() -> None:
    assert spread_replicas([3], 3, 1, start=0, shift=0) == [(3,), (3,), (3,)]


@pytest.mark.parametrize("brokers", [1, 2, 3, 5])
@pytest.mark.parametrize("start", [0, 2])
def test_it_is_even_and_names_nobody_twice(brokers: int, start: int) -> None:
    for factor in range(1, brokers + 1):
        assignments = spread_replicas(range(brokers), brokers * 6, factor, start=start, shift=start)
        assert all(len(set(replicas)) == factor for replicas in assignments)
        assert set(Counter(replicas[0] for replicas in assignments).values()) == {6}


def test_partitions_that_are_added_go_on_with_the_round() -> None:
    whole = spread_replicas([1, 2, 3], 3, 2, start=1, shift=1)
    added = spread_replicas([1, 2, 3], 2, 2, start=1, shift=1, first_partition=1)
    assert added == whole[1:]


def test_more_replicas_than_brokers() -> None:
    with pytest.raises(Refused) as caught:
        spread_replicas([1, 2], 1, 3, start=0, shift=0)
    assert caught.value.error_code is ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(Refused):
        spread_replicas([], 1, 1, start=0, shift=0)


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
def test_replicas_by_hand_that_cannot_be(replicas: list[int], says: str) -> None:
    with pytest.raises(Refused) as caught:
        check_replicas(replicas, {1, 2, 3}, 2)
    assert caught.value.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert says in (caught.value.message or "")


def test_replicas_by_hand_that_can_be() -> None:
    check_replicas([2, 1], {1, 2, 3}, 2)
    check_replicas([3], {1, 2, 3}, None)
