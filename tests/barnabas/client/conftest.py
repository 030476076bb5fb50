import pytest

from barnabas.client import client, fetcher, member, producer


class Time:
    """A clock that moves when somebody sleeps, or when the test says so."""

    def __init__(self):
        self.now = 1_700_000_000.0

    def monotonic(self):
        return self.now

    time = monotonic

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """No test waits for a pause between two attempts, or for a timeout."""
    clock = Time()
    for module in (client, fetcher, member, producer):
        monkeypatch.setattr(module, "time", clock)
    return clock
