import asyncio
import time

from barnabas.broker.clock import Every, SystemClock
from tests.support.manual_clock import ManualClock


async def test_wall_time_is_in_milliseconds_since_1970():
    before = time.time() * 1000
    now = SystemClock(asyncio.get_running_loop()).now_ms()
    assert isinstance(now, int)
    assert before - 1 <= now <= time.time() * 1000


async def test_monotonic_time_is_in_seconds_and_never_runs_backwards():
    clock = SystemClock(asyncio.get_running_loop())
    times = [clock.monotonic() for _ in range(100)]
    assert times == sorted(times)
    assert abs(times[0] - time.monotonic()) < 60


async def test_a_timer_calls_back_on_the_loop():
    clock = SystemClock(asyncio.get_running_loop())
    called = asyncio.Event()
    clock.call_later(0.001, called.set)
    await called.wait()


async def test_a_timer_that_was_cancelled_does_not_call_back():
    clock = SystemClock(asyncio.get_running_loop())
    calls = []
    later = asyncio.Event()
    clock.call_later(0.001, lambda: calls.append("cancelled")).cancel()
    clock.call_later(0.002, later.set)
    await later.wait()
    assert calls == []


def test_a_check_with_an_interval_of_zero_still_pauses():
    clock = ManualClock()
    runs = []
    Every(clock, lambda: 0, lambda: runs.append(clock.monotonic())).start()
    clock.advance(0.01)
    assert 1 <= len(runs) <= 10
