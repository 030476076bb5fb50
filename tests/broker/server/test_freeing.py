"""What takes long to free is freed a little per turn of the loop."""

import asyncio
import itertools
import mmap

import pytest

from barnabas.broker.server import freeing
from barnabas.broker.server.freeing import BYTES_PER_STEP, LongList, let_go_of, let_go_of_memory

COUNT = 100


class Thing:
    left = 0

    def __init__(self):
        Thing.left += 1

    def __del__(self):
        Thing.left -= 1


@pytest.fixture(autouse=True)
def one_step_per_turn(monkeypatch):
    Thing.left = 0
    monkeypatch.setattr(freeing, "perf_counter", itertools.count(0.0).__next__)


async def freed_per_turn():
    """How many things go in each turn, until none is left."""
    freed = []
    while Thing.left:
        before = Thing.left
        await asyncio.sleep(0)
        freed.append(before - Thing.left)
    return [each for each in freed if each]


async def test_a_long_list_is_freed_over_several_turns():
    things = LongList(Thing() for _ in range(COUNT))
    del things
    assert Thing.left == COUNT
    assert max(await freed_per_turn()) <= 16


async def test_several_long_lists_take_turns():
    lists = [LongList(Thing() for _ in range(COUNT)) for _ in range(3)]
    lists.clear()
    assert max(await freed_per_turn()) <= 16


async def test_what_somebody_else_has_stays():
    kept = [Thing() for _ in range(COUNT)]
    things = LongList(kept)
    del things
    for _ in range(COUNT):
        await asyncio.sleep(0)
    assert Thing.left == len(kept) == COUNT


async def test_elements_of_a_list_that_is_only_borrowed():
    things = [Thing() for _ in range(COUNT)]
    let_go_of(things[:])
    assert len(things) == COUNT
    del things
    assert max(await freed_per_turn()) <= 16


def test_without_a_loop_everything_goes_at_once():
    things = LongList(Thing() for _ in range(COUNT))
    del things
    assert Thing.left == 0


class Mapping(mmap.mmap):
    """Remembers what it was told."""

    def madvise(self, option, start, length):
        self.__dict__.setdefault("advised", []).append((option, start, length))
        super().madvise(option, start, length)


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="this system has no such call")
async def test_a_large_buffer_is_given_back_a_part_at_a_time():
    mapping = Mapping(-1, 3 * BYTES_PER_STEP + mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapping[:] = b"x" * len(mapping)
    let_go_of_memory(mapping)
    counts = []
    while mapping[-1]:
        await asyncio.sleep(0)
        counts.append(len(mapping.__dict__.get("advised", [])))
    assert counts[:4] == [1, 2, 3, 4]
    assert not any(mapping[::BYTES_PER_STEP])
