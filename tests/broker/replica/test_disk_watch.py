"""A disk that fails, and is tried until it works."""

import errno
from types import SimpleNamespace

import pytest

from barnabas.broker.replica.disk_watch import DiskWatch
from tests.broker.replica.cluster import InlineWorker
from tests.support.manual_clock import ManualClock

FULL = OSError(errno.ENOSPC, "No space left on device")


class Disk:
    """A data directory, and how often it was tried."""

    path = "data"

    def __init__(self):
        self.is_full = False
        self.tries = 0

    def try_disk(self):
        self.tries += 1
        if self.is_full:
            raise FULL


@pytest.fixture
def watched():
    clock, disk, changes = ManualClock(), Disk(), []
    watch = DiskWatch(disk, InlineWorker(), clock, lambda: changes.append(watch.is_failing))
    return SimpleNamespace(watch=watch, clock=clock, disk=disk, changes=changes)


def test_a_disk_that_fails_is_tried_until_it_works(watched):
    watched.disk.is_full = True
    watched.watch.failed("full")
    watched.watch.failed("full")
    assert watched.changes == [True]
    watched.clock.advance(5)
    assert (watched.disk.tries, watched.changes) == (5, [True])
    watched.disk.is_full = False
    watched.clock.advance(1)
    assert watched.changes == [True, False]
    watched.clock.advance(100)
    assert watched.disk.tries == 6


def test_a_disk_that_fails_again_soon_is_tried_less_often(watched):
    waits = []
    for _ in range(7):
        watched.watch.failed("full")
        before = watched.clock.monotonic()
        while watched.watch.is_failing:
            watched.clock.advance(1)
        waits.append(watched.clock.monotonic() - before)
    assert waits == [1, 2, 4, 8, 16, 32, 32]
    watched.clock.advance(60)
    watched.watch.failed("full")
    watched.clock.advance(1)
    assert not watched.watch.is_failing


def test_nobody_is_told_when_it_has_stopped(watched):
    watched.watch.failed("full")
    watched.watch.stop()
    watched.clock.advance(10)
    watched.watch.failed("full")
    assert (watched.changes, watched.disk.tries) == ([True], 0)
