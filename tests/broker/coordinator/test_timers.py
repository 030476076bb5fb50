import pytest

from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorRecord, CoordinatorResult
from barnabas.broker.coordinator.timers import ClockTimers, DecidingTimers
from barnabas.protocol.errors import ErrorCode
from tests.support.manual_clock import ManualClock


@pytest.fixture
async def clock():
    return ManualClock()


async def test_a_timer_goes_off_once(clock):
    timers, told = ClockTimers(clock, lambda *_: None), []
    timers.schedule("a", 1500, lambda: told.append("a"))
    clock.advance(1.499)
    assert told == []
    clock.advance(0.001)
    clock.advance(10)
    assert told == ["a"]


async def test_scheduling_a_timer_again_moves_it(clock):
    timers, told = ClockTimers(clock, lambda *_: None), []
    timers.schedule("a", 1000, lambda: told.append("first"))
    timers.schedule("a", 3000, lambda: told.append("second"))
    clock.advance(2)
    assert told == []
    clock.advance(1)
    assert told == ["second"]


async def test_a_timer_may_schedule_itself_again(clock):
    timers, told = ClockTimers(clock, lambda *_: None), []

    def tick():
        told.append(clock.monotonic())
        timers.schedule("a", 1000, tick)

    timers.schedule("a", 1000, tick)
    clock.advance(3)
    assert told == [1, 2, 3]


async def test_timers_are_cancelled_one_by_one_or_all_at_once(clock):
    timers, told = ClockTimers(clock, lambda *_: None), []
    for key in "abc":
        timers.schedule(key, 1000, lambda key=key: told.append(key))
    timers.cancel("a")
    timers.cancel("never scheduled")
    clock.advance(0.5)
    timers.close()
    clock.advance(10)
    assert told == []


async def test_a_callback_that_fails_is_reported_with_its_key(clock):
    failures = []
    timers = ClockTimers(clock, lambda key, error: failures.append((key, str(error))))

    def fail():
        raise ValueError("broken")

    timers.schedule("a", 1000, fail)
    clock.advance(1)
    assert failures == [("a", "broken")]


@pytest.fixture
def decided():
    """What a coordinator is to carry out."""
    return []


@pytest.fixture
async def deciding(clock, decided):
    return DecidingTimers(ClockTimers(clock, lambda *_: None), decided.append)


def remove_a_member():
    return CoordinatorResult([CoordinatorRecord(b"member", None)])


async def test_a_decision_that_was_not_written_is_made_again(clock, deciding, decided):
    deciding.schedule("a", 1000, remove_a_member)
    clock.advance(1)
    decided.pop().done(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    clock.advance(0.499)
    assert decided == []
    clock.advance(0.001)
    decided.pop().done(ErrorCode.NONE)
    clock.advance(10)
    assert decided == []


async def test_a_decision_is_not_made_again_before_its_new_time(clock, deciding, decided):
    deciding.schedule("a", 1000, remove_a_member)
    clock.advance(1)
    deciding.schedule("a", 5000, remove_a_member)
    decided.pop().done(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    clock.advance(4.999)
    assert decided == []
    clock.advance(0.001)
    assert len(decided) == 1


async def test_a_timer_that_decides_nothing(clock, deciding, decided):
    deciding.schedule("a", 1000, lambda: NOTHING_TO_DO)
    clock.advance(1)
    assert decided == []


async def test_a_decision_whose_timer_is_cancelled_is_not_made(clock, deciding, decided):
    deciding.schedule("a", 1000, remove_a_member)
    deciding.cancel("a")
    clock.advance(1)
    assert decided == []
