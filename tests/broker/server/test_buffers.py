import asyncio
import itertools

import pytest

from barnabas.broker.server import freeing
from barnabas.broker.server.buffers import SMALLEST, BufferPool


def test_a_buffer_given_back_is_the_next_one_taken():
    pool = BufferPool()
    buffer = pool.take()
    pool.give(buffer)
    assert pool.take() is buffer
    assert pool.take() is not buffer


def test_sizes_are_powers_of_two_and_at_least_the_smallest():
    pool = BufferPool()
    assert len(pool.take(1)) == SMALLEST
    assert len(pool.take(SMALLEST + 1)) == 2 * SMALLEST


def test_a_large_buffer_serves_large_frames_only_and_can_be_let_go():
    pool = BufferPool()
    large = pool.take(4 * SMALLEST)
    pool.give(large)
    assert len(pool.take()) == SMALLEST
    assert pool.take(3 * SMALLEST) is large
    pool.give(large)
    pool.trim()
    assert pool.take(4 * SMALLEST) is not large


def test_the_pool_keeps_a_bounded_number_of_bytes():
    pool = BufferPool()
    buffers = [pool.take(16 * 1024 * 1024) for _ in range(6)]
    for buffer in buffers:
        pool.give(buffer)
    taken = [pool.take(16 * 1024 * 1024) for _ in range(6)]
    assert sum(any(new is old for old in buffers) for new in taken) == 4


@pytest.mark.parametrize("by", ["the pool is full", "the pool is trimmed"])
async def test_the_memory_of_a_large_buffer_goes_in_pieces(monkeypatch, by):
    monkeypatch.setattr(freeing, "perf_counter", itertools.count(0.0).__next__)  # every step takes a turn
    size = 4 * freeing.BYTES_PER_STEP
    pool = BufferPool()
    buffer = pool.take(size)
    buffer[:] = b"x" * size
    for other in [pool.take(16 * 1024 * 1024) for _ in range(4)] if by == "the pool is full" else []:
        pool.give(other)
    pool.give(buffer)
    if by == "the pool is trimmed":
        pool.trim()
    left = [4]
    while left[-1]:
        await asyncio.sleep(0)
        left.append(sum(map(bool, buffer[:: freeing.BYTES_PER_STEP])))
    assert sorted(set(left)) == [0, 1, 2, 3, 4]
