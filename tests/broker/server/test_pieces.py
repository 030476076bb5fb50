"""Work in pieces: it finishes, whatever others do, and others do not wait for long."""

import asyncio

import pytest
from structlog.testing import capture_logs

from barnabas.broker.server import pieces as module
from barnabas.broker.server.pieces import Pieces, each, once, parts, spread


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch):
    """A piece is one step, and a turn two pieces."""
    monkeypatch.setattr(module, "_SECONDS_PER_PIECE", 0)
    ticks = iter(range(1_000_000))
    monkeypatch.setattr(module, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(module, "_SECONDS_PER_TURN", 4)


async def ended(pieces):
    """Wait until everything is done; there is no event for that."""
    while pieces.are_under_way:  # noqa: ASYNC110
        await asyncio.sleep(0)


def steps(name, count, done):
    for number in range(count):
        done.append(f"{name}{number}")
        yield


async def test_the_first_piece_is_done_at_once_and_the_rest_in_turns():
    pieces, done = Pieces(), []
    pieces.begin(steps("a", 3, done))
    assert done == ["a0"]
    assert pieces.are_under_way
    await ended(pieces)
    assert done == ["a0", "a1", "a2"]


async def test_those_under_way_take_turns():
    pieces, done = Pieces(), []
    for name in "abc":
        pieces.begin(steps(name, 3, done))
    await ended(pieces)
    assert done == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


async def test_others_have_their_turn_in_between():
    pieces, done = Pieces(), []
    pieces.begin(steps("a", 9, done))
    asyncio.get_running_loop().call_soon(done.append, "other")
    await ended(pieces)
    assert done.index("other") < done.index("a8")


async def test_work_may_start_other_work():
    pieces, done = Pieces(), []

    def first():
        yield from steps("a", 2, done)
        pieces.begin(steps("b", 3, done))

    pieces.begin(first())
    await ended(pieces)
    assert done == ["a0", "a1", "b0", "b1", "b2"]


async def test_one_that_fails_leaves_the_others_alone():
    pieces, done = Pieces(), []

    def failing():
        yield
        raise ValueError("broken")

    with capture_logs() as logs:
        pieces.begin(failing())
        pieces.begin(steps("a", 3, done))
        await ended(pieces)
    assert done == ["a0", "a1", "a2"]
    assert [entry["event"] for entry in logs] == ["work in pieces failed"]


async def test_a_coroutine_can_wait_for_the_result():
    def result():
        yield
        yield
        return 7

    def failing():
        yield
        raise ValueError("broken")

    pieces = Pieces()
    assert await pieces.result(result()) == 7
    with pytest.raises(ValueError, match="broken"):
        await pieces.result(failing())


async def test_work_stops_for_a_cancelled_coroutine():
    pieces, done = Pieces(), []
    waiting = asyncio.ensure_future(pieces.result(steps("a", 1000, done)))
    await asyncio.sleep(0)
    waiting.cancel()
    await ended(pieces)
    assert len(done) < 1000


async def test_stopped():
    pieces, closed = Pieces(), []

    def endless():
        try:
            while True:
                yield
        finally:
            closed.append(True)

    pieces.begin(endless())
    pieces.stop()
    assert closed == [True]
    assert not pieces.are_under_way


async def test_a_coroutine_can_go_through_many_things():
    done = []
    asyncio.get_running_loop().call_soon(done.append, "other")
    async for item in spread(range(5)):
        done.append(item)
    assert sorted(map(str, done)) == ["0", "1", "2", "3", "4", "other"]
    assert done[-1] == 4


async def test_a_step_for_each():
    assert await Pieces().result(each(str, [1, 2])) == ["1", "2"]


def test_parts():
    assert list(parts([1, 2, 3], 2)) == [[1, 2], [3]]
    assert list(parts([], 2)) == []


def test_once_for_each_key():
    done = []

    def work(key):
        done.append(key)
        return key.upper()

    result = once(work)
    assert [result(key) for key in ("a", "b", "a")] == ["A", "B", "A"]
    assert done == ["a", "b"]


async def test_the_rest_of_what_is_under_way_waits_for_the_next_turn():
    pieces, done = Pieces(), []
    pieces.go_on_with(steps("a", 2, done))
    assert done == []
    await ended(pieces)
    assert done == ["a0", "a1"]
