import asyncio

import pytest
from structlog.testing import capture_logs

from barnabas.broker.background import Background


@pytest.fixture
def background():
    return Background("the gardener failed")


async def test_a_failure_is_logged_and_costs_nothing_else(background):
    ended = asyncio.Event()

    async def fail():
        raise ValueError("no water")

    async def end():
        ended.set()

    with capture_logs() as logs:
        background.start(fail())
        background.start(end())
        await ended.wait()
    assert [(line["event"], str(line["exc_info"])) for line in logs] == [("the gardener failed", "no water")]


async def test_stop_waits_for_the_end_of_what_it_cancels(background):
    started, cleaned_up = asyncio.Event(), []

    async def work():
        started.set()
        try:
            await asyncio.Future()
        finally:
            await asyncio.sleep(0)
            cleaned_up.append(True)

    with capture_logs() as logs:
        background.start(work())
        await started.wait()
        await background.stop()
    assert cleaned_up == [True]
    assert logs == []
