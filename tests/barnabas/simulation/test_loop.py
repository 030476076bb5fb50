"""barnabas.simulation.loop: time, processes that stand still and die."""

import asyncio
import gc
import warnings

import pytest

from barnabas.simulation.loop import Deadlock, Livelock, Scheduler


@pytest.fixture
def scheduler():
    return Scheduler(1)


def test_time_passes_only_when_nothing_is_due(scheduler):
    loop = scheduler.process("a")
    seen = []

    async def work():
        for _ in range(3):
            await asyncio.sleep(10)
            seen.append(loop.time())

    scheduler.run(loop.create_task(work()).done)
    assert seen == [10, 20, 30]


def test_callbacks_run_in_the_order_of_time_and_arrival(scheduler):
    loop = scheduler.process("a")
    seen = []
    loop.call_later(2, seen.append, "c")
    loop.call_later(1, seen.append, "b")
    loop.call_later(2, seen.append, "d")
    loop.call_soon(seen.append, "a")
    loop.call_later(1, seen.append, "cancelled").cancel()
    scheduler.run(end=5)
    assert seen == ["a", "b", "c", "d"]
    assert scheduler.now == 5


def test_timeouts_and_queues_of_asyncio_work(scheduler):
    loop = scheduler.process("a")

    async def work():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.Event().wait()
        queue = asyncio.Queue()
        loop.call_later(4, queue.put_nowait, "x")
        return await asyncio.wait_for(queue.get(), 10), loop.time()

    task = loop.create_task(work())
    scheduler.run(task.done)
    assert task.result() == ("x", 7)


def test_a_dead_process_does_nothing_more(scheduler):
    loop = scheduler.process("a")
    seen = []

    async def work():
        try:
            await asyncio.sleep(10)
        finally:
            seen.append("finally")

    loop.create_task(work())
    loop.call_later(3, seen.append, "timer")
    scheduler.run(end=1)
    loop.kill()
    scheduler.run(end=100)
    scheduler.close()
    assert seen == []


def test_a_process_that_stands_still_does_everything_later(scheduler):
    first, second = scheduler.process("a"), scheduler.process("b")
    seen = []
    for at in (1, 2, 6):
        first.call_later(at, lambda at=at: seen.append((at, scheduler.now)))
    second.call_later(2, lambda: seen.append(("b", scheduler.now)))
    first.pause()
    second.call_later(5, first.resume)
    scheduler.run(end=10)
    assert seen == [("b", 2), (1, 5), (2, 5), (6, 6)]


def test_work_on_a_thread_takes_time_and_is_lost_with_its_process(scheduler):
    loop = scheduler.process("a")
    loop.work_time = lambda: (2.0, 1.0)
    done = []

    async def work():
        await loop.run_in_executor(None, lambda: done.append(loop.time()))
        done.append(loop.time())
        await loop.run_in_executor(None, done.append, "lost")

    loop.create_task(work())
    scheduler.run(end=4)
    loop.kill()
    scheduler.run(end=10)
    assert done == [2, 3]


def test_what_work_raises_is_raised_where_it_is_awaited(scheduler):
    loop = scheduler.process("a")
    task = loop.create_task(asyncio.wait_for(loop.run_in_executor(None, int, "x"), 5))
    scheduler.run(task.done)
    assert isinstance(task.exception(), ValueError)


def test_nothing_to_wait_for(scheduler):
    with pytest.raises(Deadlock):
        scheduler.run(lambda: False)


def test_running_in_circles(scheduler):
    loop = scheduler.process("a")

    def again():
        loop.call_soon(again)

    again()
    with pytest.raises(Livelock, match="in a"):
        scheduler.run(end=1)


def test_what_dead_processes_begin_at_their_end_is_not_left_to_others(scheduler):
    """Tests may have an event loop of their own, in which nobody would ever await it."""
    gc.collect()  # what other tests have left
    loop = scheduler.process("a")

    async def say_goodbye():
        raise AssertionError("a dead process does nothing")

    async def work():
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.gather(say_goodbye())

    loop.create_task(work())
    scheduler.run(end=1)
    scheduler.close()
    bystander = asyncio.new_event_loop()
    asyncio.set_event_loop(bystander)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            scheduler.bury()
            del loop
            gc.collect()
        assert asyncio.all_tasks(bystander) == set()
    finally:
        asyncio.set_event_loop(None)
        bystander.close()
    assert [str(each.message) for each in warned] == []


def test_chance_is_by_purpose(scheduler):
    first = scheduler.random("network").random()
    scheduler.random("disk").random()
    assert Scheduler(1).random("network").random() == first
    assert Scheduler(2).random("network").random() != first
