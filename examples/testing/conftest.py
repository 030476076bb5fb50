"""A helper for the examples. The broker needs no setup here: pytest finds its plugin."""

import time

import pytest


@pytest.fixture
def eventually():
    """Wait for a condition that other threads or processes bring about."""

    def wait(condition, seconds=60.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the condition did not become true"
            time.sleep(0.01)

    return wait
