"""Rates and token buckets: how long a client that is too fast is throttled."""

import random
from pathlib import Path

import pytest

from barnabas.broker.quotas.rates import Rate, TokenBucket, Window
from tests.support.apache_kafka import run_java

KAFKAS = Window(11, 1000)
BEGINNING = 1_000_000


def throttled(rate, value, at_ms, limit, window=KAFKAS):
    rate.record(value, BEGINNING + at_ms, window)
    return rate.throttle_ms(limit, BEGINNING + at_ms, window)


def test_a_first_burst_counts_as_spread_over_the_whole_window():
    """11 samples of a second have 10 whole ones: up to ten seconds' worth, nobody waits."""
    assert throttled(Rate(), 10_000, 0, limit=1000) == 0


def test_whoever_is_over_the_limit_waits_until_the_rate_is_within_it():
    assert throttled(Rate(), 15_000, 0, limit=1000) == 5000
    assert throttled(Rate(), 20_000, 0, limit=1000) == 10_000


def test_waiting_for_the_throttle_time_is_enough():
    rate = Rate()
    assert throttled(rate, 15_000, 0, limit=1000) == 5000
    assert throttled(rate, 0, 5000, limit=1000) == 5000  # the window has grown to 10 s by now; the rest counts anew
    assert rate.throttle_ms(1000, BEGINNING + 15_000, KAFKAS) == 0


def test_what_is_older_than_the_window_does_not_count():
    rate = Rate()
    throttled(rate, 1_000_000, 0, limit=1000)
    assert throttled(rate, 1, 11_000, limit=1000) == 0


def test_what_was_taken_back_does_not_count():
    rate = Rate()
    assert throttled(rate, 15_000, 0, limit=1000) > 0
    rate.record(-15_000, BEGINNING, KAFKAS)
    assert rate.throttle_ms(1000, BEGINNING, KAFKAS) == 0


def test_a_limit_of_zero_throttles_for_as_long_as_possible():
    assert throttled(Rate(), 1, 0, limit=0) == 2**31 - 1


def test_a_rate_is_idle_when_nothing_of_it_counts():
    rate = Rate()
    throttled(rate, 1, 0, limit=1)
    assert not rate.is_idle(BEGINNING + 10_999, KAFKAS)
    assert rate.is_idle(BEGINNING + 11_000, KAFKAS)


def test_a_bucket_starts_with_a_windows_worth():
    bucket = TokenBucket()
    bucket.take(22, 2, BEGINNING, KAFKAS)
    assert bucket.throttle_ms(2, BEGINNING, KAFKAS) == 0
    bucket.take(3, 2, BEGINNING, KAFKAS)
    assert bucket.throttle_ms(2, BEGINNING, KAFKAS) == 1500
    assert bucket.throttle_ms(2, BEGINNING + 1000, KAFKAS) == 500
    assert bucket.throttle_ms(2, BEGINNING + 1500, KAFKAS) == 0


def test_a_bucket_never_holds_more_than_a_windows_worth():
    bucket = TokenBucket()
    bucket.take(0, 2, BEGINNING, KAFKAS)
    bucket.take(24, 2, BEGINNING + 3_600_000, KAFKAS)
    assert bucket.throttle_ms(2, BEGINNING + 3_600_000, KAFKAS) == 1000


def test_a_bucket_is_idle_when_it_is_full():
    bucket = TokenBucket()
    bucket.take(1, 2, BEGINNING, KAFKAS)
    assert not bucket.is_idle(BEGINNING + 10_999, KAFKAS)
    assert bucket.is_idle(BEGINNING + 11_000, KAFKAS)


# --- the same figures as Kafka's own classes give ---

SCENARIOS = 60
EVENTS = 60


class Measured:
    """What Barnabas says to the lines that Throttle.java reads."""

    def __init__(self):
        self.rate = Rate()
        self.bucket = None
        self.limit = 0.0
        self.window = KAFKAS

    def answer(self, line):
        match line.split():
            case ["rate" | "bucket" as kind, limit, samples, seconds]:
                self.rate, self.bucket = Rate(), TokenBucket() if kind == "bucket" else None
                self.limit, self.window = float(limit), Window(int(samples), int(seconds) * 1000)
                return 0
            case ["record", now, value]:
                if self.bucket is None:
                    self.rate.record(float(value), int(now), self.window)
                else:
                    self.bucket.take(float(value), self.limit, int(now), self.window)
                return self._waits(int(now))
            case ["check", now]:
                return self._waits(int(now))

    def _waits(self, now):
        return (self.rate if self.bucket is None else self.bucket).throttle_ms(self.limit, now, self.window)


def scenario(seed):
    """A client that is sometimes fast, sometimes slow, and sometimes silent."""
    draw = random.Random(seed)
    kind = draw.choice(["rate", "rate", "bucket"])
    limit = draw.choice([1, 2.5, 10, 1024, 100_000, 33.333])
    yield f"{kind} {limit} {draw.choice([1, 2, 3, 11])} {draw.choice([1, 2, 5])}"
    now = 1_700_000_000_000
    for number in range(EVENTS):
        now += draw.choice([0, 1, 7, 99, 100, 500, 999, 1000, 1001, 2500, 5000, 10_000, 30_000])
        if number and draw.random() < 0.2:  # Kafka never reads a rate before something happened
            yield f"check {now}"
        else:
            yield f"record {now} {draw.choice([1, -1, limit, limit * draw.uniform(0, 12), limit * 40])}"


@pytest.mark.java
def test_the_figures_are_those_of_kafkas_metrics():
    lines = [line for seed in range(SCENARIOS) for line in scenario(seed)]
    program = Path(__file__).parents[2] / "java" / "Throttle.java"
    kafkas = list(map(int, run_java(program, input="\n".join(lines)).stdout.split()))
    measured = Measured()
    ours = [measured.answer(line) for line in lines]
    different = [(line, theirs, own) for line, theirs, own in zip(lines, kafkas, ours, strict=True) if theirs != own]
    assert different == []
    assert sum(waits > 0 for waits in ours) > len(ours) // 5
