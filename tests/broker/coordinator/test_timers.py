import pytest

from barnabas.broker.coordinator.timers import ClockTimers
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
