"""broker.replica.leadership: the high watermark, and who is in sync."""

import pytest

from barnabas.broker.replica.leadership import Leadership
from barnabas.protocol.errors import ErrorCode

LAG = 30_000


def leadership(isr=(1, 2, 3), epoch_start_offset=0, now_ms=0):
    """Broker 1 leads, 2 and 3 follow."""
    return Leadership(1, 5, epoch_start_offset, 10, (1, 2, 3), isr, now_ms)


def alive(broker_id):
    return True


def fetch(leader, broker_id, offset, end=100, now_ms=0):
    leader.followers[broker_id].fetched(offset, 0, end, -1, now_ms)


def test_a_leader_on_its_own_commits_what_it_has():
    alone = Leadership(1, 0, 0, 0, (1,), (1,), 0)
    assert alone.high_watermark(7, 0, LAG, alive) == 7
    assert alone.lagging(7, 10 * LAG, LAG) == []


def test_the_slowest_of_the_isr_holds_the_high_watermark():
    leader = leadership()
    fetch(leader, 2, 100)
    fetch(leader, 3, 60)
    assert leader.high_watermark(100, 0, LAG, alive) == 60
    fetch(leader, 3, 100)
    assert leader.high_watermark(100, 0, LAG, alive) == 100


def test_a_member_of_the_isr_that_has_not_fetched_yet_holds_it_at_the_unknown_offset():
    assert leadership().high_watermark(100, 0, LAG, alive) == -1


def test_a_follower_outside_the_isr_does_not_count_once_it_has_lagged():
    leader = leadership(isr=(1, 2))
    fetch(leader, 2, 100, now_ms=LAG + 1)
    fetch(leader, 3, 10, now_ms=LAG + 1)
    assert leader.high_watermark(100, LAG + 1, LAG, alive) == 100


def test_a_follower_that_has_caught_up_counts_before_it_joins():
    leader = leadership(isr=(1, 2))
    fetch(leader, 2, 100)
    fetch(leader, 3, 100, now_ms=1)
    assert leader.high_watermark(120, 2, LAG, alive) == 100


def test_a_follower_that_is_gone_does_not_hold_the_high_watermark_once_it_has_left_the_isr():
    leader = leadership()
    fetch(leader, 2, 100)
    fetch(leader, 3, 60)
    assert leader.high_watermark(100, 1, LAG, lambda broker_id: broker_id != 3) == 60
    leader.update(11, (1, 2, 3), (1, 2), now_ms=1)
    assert leader.high_watermark(100, 1, LAG, alive) == 60
    assert leader.high_watermark(100, 1, LAG, lambda broker_id: broker_id != 3) == 100


def test_a_follower_joins_at_the_high_watermark():
    leader = leadership(isr=(1, 2))
    fetch(leader, 3, 59)
    assert not leader.may_join(3, high_watermark=60)
    fetch(leader, 3, 60)
    assert leader.may_join(3, high_watermark=60)


def test_a_follower_joins_only_when_it_has_reached_the_start_of_the_leader_epoch():
    leader = leadership(isr=(1, 2), epoch_start_offset=80)
    fetch(leader, 3, 70)
    assert not leader.may_join(3, high_watermark=60)
    fetch(leader, 3, 80)
    assert leader.may_join(3, high_watermark=60)


def test_while_a_larger_isr_is_asked_for_the_newcomer_counts():
    leader = leadership(isr=(1, 2))
    fetch(leader, 2, 100)
    fetch(leader, 3, 60)
    leader.ask_to_expand(3)
    late = 10 * LAG
    assert leader.high_watermark(100, late, LAG, alive) == 60


def test_while_a_smaller_isr_is_asked_for_the_laggard_counts():
    leader = leadership()
    fetch(leader, 2, 100)
    fetch(leader, 3, 60)
    late = 10 * LAG
    change = leader.ask_to_shrink([3])
    assert change.isr == (1, 2)
    assert leader.high_watermark(100, late, LAG, alive) == 60
    assert leader.answered(change, 5, 11, (1, 2))
    assert leader.high_watermark(100, late, LAG, alive) == 100


def test_one_change_is_in_flight_at_a_time():
    leader = leadership(isr=(1, 2))
    fetch(leader, 3, 100)
    leader.ask_to_expand(3)
    assert not leader.may_join(3, 0)
    assert leader.lagging(1000, 10 * LAG, LAG) == []


def test_a_follower_lags_when_it_has_not_caught_up_for_long_enough():
    leader = leadership(now_ms=0)
    fetch(leader, 2, 100, end=100, now_ms=LAG)
    fetch(leader, 3, 50, end=100, now_ms=LAG)
    assert leader.lagging(110, LAG, LAG) == []
    assert leader.lagging(110, LAG + 1, LAG) == [3]


def test_a_follower_that_keeps_pace_one_fetch_behind_does_not_lag():
    leader = leadership()
    fetch(leader, 3, 10, end=100, now_ms=LAG)
    fetch(leader, 3, 100, end=200, now_ms=2 * LAG)  # all that there was at the fetch before
    fetch(leader, 2, 200, end=200, now_ms=2 * LAG)
    assert leader.lagging(300, 2 * LAG, LAG) == []
    assert leader.lagging(300, 2 * LAG + 1, LAG) == [3]


def test_an_answer_from_another_leader_epoch_is_ignored():
    leader = leadership()
    change = leader.ask_to_shrink([3])
    assert not leader.answered(change, 4, 11, (1, 2))
    assert leader.maximal_isr == {1, 2, 3}


def test_an_answer_to_an_earlier_request_is_ignored():
    leader = leadership()
    change = leader.ask_to_shrink([3])
    leader.update(12, (1, 2, 3), (1, 2, 3), 0)
    assert not leader.answered(change, 5, 11, (1, 2))
    assert leader.isr == (1, 2, 3)


@pytest.mark.parametrize("error", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA])
def test_what_the_controller_refuses_is_forgotten(error):
    leader = leadership(isr=(1, 2))
    change = leader.ask_to_expand(3)
    assert not leader.refused(change, error)
    assert leader.maximal_isr == {1, 2}
    assert leader.asked is None


def test_a_request_that_may_have_been_lost_is_repeated():
    leader = leadership(isr=(1, 2))
    change = leader.ask_to_expand(3)
    assert leader.refused(change, ErrorCode.NOT_CONTROLLER)
    assert leader.asked is change


def test_a_leader_that_is_behind_counts_both_until_it_is_told():
    leader = leadership(isr=(1, 2))
    change = leader.ask_to_expand(3)
    assert not leader.refused(change, ErrorCode.INVALID_UPDATE_VERSION)
    assert leader.maximal_isr == {1, 2, 3}
    leader.update(11, (1, 2, 3), (1, 2), 0)
    assert leader.maximal_isr == {1, 2}


def test_an_order_that_repeats_what_is_known_does_not_decide_a_pending_change():
    """A new controller repeats what there was before; the change that is under way may be carried out yet."""
    leader = leadership(isr=(1, 2))
    fetch(leader, 2, 100)
    fetch(leader, 3, 100)
    change = leader.ask_to_expand(3)
    leader.update(10, (1, 2, 3), (1, 2), 0)
    fetch(leader, 2, 120, end=120)
    assert leader.high_watermark(120, 0, LAG, alive) == 100  # the newcomer may lead next
    assert leader.answered(change, 5, 11, (1, 2, 3))
    assert leader.isr == (1, 2, 3)
    leader.ask_to_shrink([3])
    leader.update(12, (1, 2, 3), (1, 2), 0)
    assert leader.asked is None


def test_an_order_that_is_older_than_the_last_answer_is_ignored():
    """It was sent twice, and its second copy comes when the ISR has another member."""
    leader = leadership(isr=(1,))
    fetch(leader, 2, 100)
    assert leader.answered(leader.ask_to_expand(2), 5, 11, (1, 2))
    leader.update(10, (1, 2, 3), (1,), 0)
    assert leader.isr == (1, 2)
    assert leader.maximal_isr == {1, 2}
    assert leader.partition_epoch == 11
