import asyncio
import time
from itertools import pairwise

import pytest

from barnabas.broker.clock import Every
from barnabas.broker.testing.clock import MovableClock


@pytest.fixture
async def clock():
    return MovableClock(asyncio.get_running_loop())


async def nothing():
    await asyncio.sleep(0)


async def test_it_runs_as_the_systems_clock_does(clock):
    assert abs(clock.now_ms() - time.time() * 1000) < 5000
    before = clock.monotonic()
    fired = asyncio.Event()
    clock.call_later(0.01, fired.set)
    await asyncio.wait_for(fired.wait(), 30)
    assert clock.monotonic() - before >= 0.01


async def test_timers_fire_in_order_each_at_its_own_time(clock):
    started, wall = clock.monotonic(), clock.now_ms()
    fired = []

    def note(name):
        fired.append((name, round(clock.monotonic() - started), round((clock.now_ms() - wall) / 1000)))

    clock.call_later(30, lambda: note("late"))
    clock.call_later(10, lambda: note("early"))
    clock.call_later(50, lambda: note("never"))
    assert await clock.advance(40, nothing) == 2
    assert fired == [("early", 10, 10), ("late", 30, 30)]
    assert round(clock.monotonic() - started) >= 40
    assert clock.ahead_ms == 40_000


async def test_what_a_timer_sets_falls_due_in_the_same_advance(clock):
    fired = []
    clock.call_later(10, lambda: clock.call_later(10, lambda: fired.append("second")))
    await clock.advance(19, nothing)
    assert fired == []
    await clock.advance(2, nothing)
    assert fired == ["second"]


async def test_the_next_one_waits_until_what_one_caused_is_done(clock):
    happened = []
    clock.call_later(1, lambda: happened.append("first"))
    clock.call_later(2, lambda: happened.append("second"))

    async def settle():
        await asyncio.sleep(0)
        happened.append("settled")

    await clock.advance(3, settle)
    assert happened == ["settled", "first", "settled", "second", "settled"]


async def test_a_cancelled_timer_does_not_fire(clock):
    fired = []
    clock.call_later(1, lambda: fired.append("never")).cancel()
    later = clock.call_later(2, lambda: fired.append("never"))
    clock.call_later(1, later.cancel)
    assert await clock.advance(3, nothing) == 1
    assert fired == []


async def test_cancelled_timers_do_not_accumulate(clock):
    for _ in range(5000):
        clock.call_later(3600, lambda: None).cancel()
    assert len(clock._timers) < 3000


async def test_after_an_advance_time_runs_on(clock):
    fired = asyncio.Event()
    clock.call_later(60.01, fired.set)
    await clock.advance(60, nothing)
    assert not fired.is_set() or clock.monotonic() > 60
    await asyncio.wait_for(fired.wait(), 30)


async def test_a_check_runs_on_its_schedule(clock):
    started = clock.monotonic()
    runs = []
    Every(clock, lambda: 10_000, lambda: runs.append(round(clock.monotonic() - started))).start()
    await clock.advance(45, nothing)
    assert runs == [10, 20, 30, 40]


async def test_a_week_of_checks_is_thinned_out_and_ends_with_the_last(clock):
    started = clock.monotonic()
    runs = []
    Every(clock, lambda: 15_000, lambda: runs.append(round(clock.monotonic() - started))).start()
    week = 7 * 86_400
    await clock.advance(week, nothing)
    assert 32 <= len(runs) <= 70
    assert all(run % 15 == 0 for run in runs)
    assert week - 15 <= runs[-1] <= week
    assert max(later - earlier for earlier, later in pairwise(runs)) <= week / 60


async def test_a_callback_that_fails_does_not_stop_the_others(clock):
    complaints, fired = [], []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["exception"]))
    clock.call_later(1, lambda: 1 // 0)
    clock.call_later(2, lambda: fired.append("second"))
    await clock.advance(3, nothing)
    assert fired == ["second"]
    assert [type(each) for each in complaints] == [ZeroDivisionError]


async def test_the_wall_time_can_be_set_back_and_the_monotonic_time_cannot(clock):
    await clock.advance(100, nothing)
    monotonic = clock.monotonic()
    clock.set_wall_ahead(0)
    assert clock.ahead_ms == 0
    assert clock.monotonic() >= monotonic


async def test_two_advances_at_once_follow_each_other(clock):
    fired = []
    clock.call_later(15, lambda: fired.append("once"))
    await asyncio.gather(clock.advance(10, nothing), clock.advance(10, nothing))
    assert (fired, clock.ahead_ms) == (["once"], 20_000)
