"""The watch measures what a turn of the loop costs, not what it waits for."""

import asyncio
import gc
import time

import pytest

from tests.fuzz.turns import LONG, LongestTurn, Watch, watched


@pytest.fixture
def path(tmp_path):
    return tmp_path / "turns"


def run(path, callback, *, with_watch=False):
    """Call this on a loop that is watched; the longest turn, in seconds."""
    longest = LongestTurn(path)
    watch = Watch(path)

    async def main():
        watch.start()
        asyncio.get_running_loop().call_soon(callback, *[watch] if with_watch else [])
        for _ in range(10):
            await asyncio.sleep(0)
        watch.stop()

    with asyncio.Runner(loop_factory=lambda: watched(asyncio.SelectorEventLoop, watch)) as runner:
        runner.run(main())
    gc.callbacks.pop()
    return longest.take()


def work(seconds=2 * LONG):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_turn_that_works_is_long(path):
    assert run(path, work) >= 2 * LONG
    stacks = path.with_name("turns.stacks").read_text()
    assert "function work" in stacks


def test_what_a_long_turn_does_is_seen(path):
    def work_until_it_is_seen(watch):
        work()
        end = time.monotonic() + 60  # a busy machine may let the watch wait
        while not watch.seen and time.monotonic() < end:
            time.sleep(0.001)

    run(path, work_until_it_is_seen, with_watch=True)
    assert "in work_until_it_is_seen" in path.with_name("turns.stacks").read_text()


def test_a_turn_that_waits_is_not(path):
    assert run(path, lambda: time.sleep(5 * LONG)) < 5 * LONG


def test_garbage_collections_are_told_by_generation(path):
    def collect():
        gc.collect(1)
        work()

    run(path, collect)
    assert " ms of garbage collection" in path.with_name("turns.stacks").read_text()


def test_several_turns_do_not_count_together(path):
    def again(left):
        work(LONG / 2)
        if left:
            asyncio.get_running_loop().call_soon(again, left - 1)

    assert run(path, lambda: again(5)) < 3 * LONG
