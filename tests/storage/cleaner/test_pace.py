"""barnabas.storage.cleaner.pace: no faster than allowed, and no further once told to stop."""

import threading

import pytest

from barnabas.storage.cleaner.pace import Pace
from barnabas.storage.errors import CleaningAborted


class Time:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_it_sleeps_until_the_bytes_fit_into_the_rate() -> None:
    time = Time()
    pace = Pace(1000, clock=lambda: time.now, sleep=time.sleep)
    pace.took(500)
    time.now += 2
    pace.took(500)
    pace.took(3000)
    assert time.slept == pytest.approx([0.5, 1.5])


def test_without_a_limit_it_never_sleeps() -> None:
    time = Time()
    Pace(clock=lambda: time.now, sleep=time.sleep).took(10**12)
    assert time.slept == []


def test_the_lowest_rate_does_not_exceed_the_longest_sleep() -> None:
    time = Time()

    def until_told_to_stop(seconds: float) -> None:
        time.sleep(seconds)
        if len(time.slept) == 3:
            stop.set()

    stop = threading.Event()
    pace = Pace(5e-324, stop, clock=lambda: time.now, sleep=until_told_to_stop)
    with pytest.raises(CleaningAborted):
        pace.took(1)
    assert time.slept == [3600, 3600, 3600]


def test_it_ends_when_told_to() -> None:
    stop = threading.Event()
    pace = Pace(stop=stop)
    pace.took(1)
    stop.set()
    with pytest.raises(CleaningAborted):
        pace.took(1)


def test_a_stop_ends_a_sleep() -> None:
    stop = threading.Event()
    pace = Pace(1e-9, stop, sleep=lambda seconds: stop.set())
    with pytest.raises(CleaningAborted):
        pace.took(1)
