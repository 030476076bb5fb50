"""barnabas.broker.replica.order_sequence: orders that arrive after later ones."""

from types import SimpleNamespace

import pytest

from barnabas.broker.replica.order_sequence import OrderSequence


def order(controller_epoch=1, broker_epoch=5):
    return SimpleNamespace(controller_epoch=controller_epoch, broker_epoch=broker_epoch)


def test_orders_come_in_sequence():
    sequence = OrderSequence()
    assert [sequence.is_overtaken(order(), number) for number in (1, 2, 2, 4)] == [False] * 4


def test_an_order_that_comes_after_a_later_one_is_overtaken():
    sequence = OrderSequence()
    assert [sequence.is_overtaken(order(), number) for number in (3, 2, 4)] == [False, True, False]


@pytest.mark.parametrize("newer", [order(controller_epoch=2), order(broker_epoch=6)])
def test_a_new_controller_and_a_new_registration_count_anew(newer):
    sequence = OrderSequence()
    sequence.is_overtaken(order(), 9)
    assert not sequence.is_overtaken(newer, 1)


def test_an_order_for_an_earlier_registration_is_overtaken():
    sequence = OrderSequence()
    sequence.is_overtaken(order(broker_epoch=6), 1)
    assert sequence.is_overtaken(order(broker_epoch=5), 2)
    assert not sequence.is_overtaken(order(broker_epoch=6), 2)


@pytest.mark.parametrize("outside", [order(controller_epoch=0), order(broker_epoch=-1)])
def test_deposed_controllers_and_those_that_name_no_registration_are_not_in_sequence(outside):
    sequence = OrderSequence()
    sequence.is_overtaken(order(), 9)
    assert not sequence.is_overtaken(outside, 1)
    assert sequence.is_overtaken(order(), 8)


def test_ids_start_again_after_the_last_one():
    sequence = OrderSequence()
    sequence.is_overtaken(order(), 2**31 - 1)
    assert not sequence.is_overtaken(order(), 0)
    assert sequence.is_overtaken(order(), 2**31 - 1)
