"""Long work on a worker, piece by piece."""

import asyncio
from collections import deque

import pytest

from barnabas.broker.replica.long_work import LongWork


class IdleWorker:
    """Does its work when it is told to."""

    def __init__(self):
        self.jobs = deque()

    def run(self, work, done=None):
        self.jobs.append((work, done))

    def work(self):
        work, done = self.jobs.popleft()
        try:
            outcome = work()
        except Exception as error:
            outcome = error
        done(outcome)


class Pieces:
    """Takes this many pieces."""

    def __init__(self, pieces):
        self.left = pieces

    @property
    def finished(self):
        return not self.left

    def advance(self):
        self.left -= 1


class Broken(Pieces):
    def advance(self):
        raise ZeroDivisionError


def test_between_two_pieces_the_loop_has_its_turn():
    worker, ends = IdleWorker(), []
    LongWork(worker).add(Pieces(3), ends.append)
    for _ in range(2):
        worker.work()
        assert (ends, len(worker.jobs)) == ([], 1)
    worker.work()
    assert (ends, len(worker.jobs)) == ([None], 0)


def test_several_take_turns_and_more_than_four_wait():
    worker, ends = IdleWorker(), []
    long_work = LongWork(worker)
    for name, pieces in enumerate([9, 9, 9, 2, 1]):
        long_work.add(Pieces(pieces), lambda _, name=name: ends.append(name))
    while worker.jobs:
        # One piece at a time: the loop waits for no more than that.
        assert len(worker.jobs) == 1
        worker.work()
    assert ends == [3, 4, 0, 1, 2]


def test_one_that_fails_ends():
    worker, ends = IdleWorker(), []
    LongWork(worker).add(Broken(3), ends.append)
    worker.work()
    assert [type(end) for end in ends] == [ZeroDivisionError]


async def test_it_can_be_awaited():
    worker = IdleWorker()
    long_work = LongWork(worker)
    finishing = asyncio.create_task(long_work.finish(Pieces(1)))
    failing = asyncio.create_task(long_work.finish(Broken(1)))
    await asyncio.sleep(0)
    worker.work()
    worker.work()
    await finishing
    with pytest.raises(ZeroDivisionError):
        await failing
