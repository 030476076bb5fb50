import asyncio
import threading

import pytest
from structlog.testing import capture_logs

from barnabas.broker.replica.worker import Worker


@pytest.fixture
async def worker():
    worker = Worker(asyncio.get_running_loop(), threads=2)
    yield worker
    await worker.stop()


def outcomes():
    """A callback, and the queue of what it was called with and where."""
    queue = asyncio.Queue()
    return queue, lambda outcome: queue.put_nowait((outcome, threading.current_thread()))


async def test_work_is_done_on_a_thread_and_its_result_reported_on_the_loop(worker):
    queue, done = outcomes()
    worker.run(threading.current_thread, done)
    thread, told_on = await queue.get()
    assert thread is not threading.current_thread()
    assert told_on is threading.current_thread()


async def test_exceptions_of_the_work_are_reported_too(worker):
    queue, done = outcomes()
    worker.run(lambda: 1 // 0, done)
    outcome, _ = await queue.get()
    assert isinstance(outcome, ZeroDivisionError)


async def test_what_it_raises_is_logged_if_it_is_not_awaited():
    worker = Worker(asyncio.get_running_loop(), threads=1)
    with capture_logs() as logs:
        worker.run(lambda: 1 // 0)
        await worker.stop()
    assert [entry["event"] for entry in logs] == ["background work failed"]


async def test_a_caller_may_wait(worker):
    assert await worker.call(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        await worker.call(lambda: 1 // 0)


async def test_one_that_blocks_does_not_hold_up_another(worker):
    release = threading.Event()
    queue, done = outcomes()
    worker.run(release.wait, done)
    assert await worker.call(lambda: "done") == "done"
    release.set()
    assert (await queue.get())[0] is True


async def test_stopping_finishes_and_reports_what_was_started():
    worker = Worker(asyncio.get_running_loop(), threads=1)
    finished = []
    for number in range(5):
        worker.run(lambda number=number: number, finished.append)
    await worker.stop()
    assert finished == [0, 1, 2, 3, 4]


async def test_work_after_the_stop_is_not_started():
    worker = Worker(asyncio.get_running_loop(), threads=1)
    started = []
    worker.run(lambda: started.append(1), lambda _: worker.run(lambda: started.append(2)))
    await worker.stop()
    worker.run(lambda: started.append(3))
    assert started == [1]
