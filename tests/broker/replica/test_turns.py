"""Work in turns, held against a loop that is turned by hand."""

import asyncio
from itertools import pairwise

import pytest

from barnabas.broker.replica.turns import Turns
from barnabas.broker.set_aside import SetAside


class Steps:
    """A job of this many steps that records each of them."""

    def __init__(self, seen, name, count):
        self.seen = seen
        self.name = name
        self.count = count

    def __iter__(self):
        for step in range(self.count):
            self.seen.append((self.name, step))
            yield


class SteppedClock:
    """Time passes whenever the clock is read: after every step."""

    def __init__(self, step=1.0):
        self.now = 0.0
        self.step = step

    def monotonic(self):
        self.now += self.step
        return self.now


@pytest.fixture
def seen():
    return []


async def test_a_small_job_is_done_at_once(seen):
    turns = Turns(SteppedClock(0.001), asyncio.get_running_loop(), SetAside())
    turns.add("a", iter(Steps(seen, "a", 3)))
    assert seen == [("a", 0), ("a", 1), ("a", 2)]
    await turns.done("a")


async def test_slow_steps_are_not_all_done_at_once(seen):
    turns = Turns(SteppedClock(0.003), asyncio.get_running_loop(), SetAside())
    turns.add("a", iter(Steps(seen, "a", 8)))
    turns.add("b", iter(Steps(seen, "b", 8)))
    assert seen == [("a", 0), ("a", 1)]  # 5 ms are used up, for the jobs of this turn together
    await turns.done("a")
    await turns.done("b")
    assert len(seen) == 16


async def test_a_large_job_lets_others_have_their_turn(seen):
    turns = Turns(SteppedClock(), asyncio.get_running_loop(), SetAside())
    turns.add("a", iter(Steps(seen, "a", 100)))
    counts = []
    while len(seen) < 100:
        counts.append(len(seen))
        await asyncio.sleep(0)
    assert counts[0] < 100
    assert all(later - earlier <= 1 for earlier, later in pairwise(counts))


async def test_many_small_jobs_let_others_have_their_turn_too(seen):
    turns = Turns(SteppedClock(), asyncio.get_running_loop(), SetAside())
    for number in range(100):
        turns.add(str(number), iter(Steps(seen, str(number), 1)))
    assert 0 < len(seen) < 100
    for number in range(100):
        await turns.done(str(number))
    assert len(seen) == 100


async def test_a_turn_has_as_many_steps_as_there_is_time_for(seen):
    turns = Turns(SteppedClock(0.001), asyncio.get_running_loop(), SetAside())
    turns.add("a", iter(Steps(seen, "a", 1000)))
    before = len(seen)
    await asyncio.sleep(0)
    assert before + 1 < len(seen) < 1000


async def test_done_waits_for_the_last_step(seen):
    turns = Turns(SteppedClock(), asyncio.get_running_loop(), SetAside())
    turns.add("a", iter(Steps(seen, "a", 100)))
    assert len(seen) < 100
    await asyncio.gather(turns.done("a"), turns.done("a"), turns.done("unheard of"))
    assert len(seen) == 100


async def test_names_take_turns_and_a_small_job_is_not_kept_waiting(seen):
    turns = Turns(SteppedClock(), asyncio.get_running_loop(), SetAside())
    turns.add("large", iter(Steps(seen, "large", 1000)))
    turns.add("small", iter(Steps(seen, "small", 30)))
    await turns.done("small")
    assert ("small", 29) in seen
    assert ("large", 999) not in seen


async def test_jobs_of_one_name_are_done_in_order(seen):
    turns = Turns(SteppedClock(), asyncio.get_running_loop(), SetAside())
    turns.add("a", iter(Steps(seen, "first", 100)))
    turns.add("a", iter(Steps(seen, "second", 2)))
    assert ("second", 0) not in seen
    await turns.done("a")
    assert [name for name, _ in seen] == ["first"] * 100 + ["second"] * 2


async def test_a_waiting_client_may_give_up(seen):
    turns = Turns(SteppedClock(), asyncio.get_running_loop(), SetAside())
    turns.add("a", iter(Steps(seen, "a", 100)))
    waiting = [asyncio.create_task(turns.done("a")) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await waiting[1]
    assert len(seen) == 100


async def test_a_job_that_fails_is_given_up_and_the_next_one_done(seen):
    def failing():
        yield
        raise OSError("no space left")

    turns = Turns(SteppedClock(), asyncio.get_running_loop(), SetAside())
    turns.add("a", iter(Steps(seen, "before", 50)))
    turns.add("a", failing())
    turns.add("a", iter(Steps(seen, "after", 1)))
    await turns.done("a")
    assert seen[-1] == ("after", 0)


async def test_all_that_is_left_can_be_finished(seen):
    turns = Turns(SteppedClock(), asyncio.get_running_loop(), SetAside())
    turns.add("a", iter(Steps(seen, "a", 100)))
    turns.add("b", iter(Steps(seen, "b", 100)))
    waiting = asyncio.create_task(turns.done("b"))
    await asyncio.sleep(0)
    turns.finish()
    assert len(seen) == 200
    await waiting
