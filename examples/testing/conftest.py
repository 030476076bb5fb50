"""A helper of the examples. Nothing has to be done for the broker: pytest has found its plugin."""

import time

import pytest


@pytest.fixture
def eventually():
    """Wait until something is so that other threads and processes bring about."""

    def wait(condition, seconds=60.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not come about"
            time.sleep(0.01)

    return wait
