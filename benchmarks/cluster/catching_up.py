"""How fast a follower that was away gets what it missed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from benchmarks.broker import librdkafka, pages
from benchmarks.cluster.contestants import AroundZooKeeper

_LOOK_AGAIN: Final = 0.005
_TIMEOUT: Final = 300.0
MESSAGE_BYTES: Final = 1024


class CaughtUp(NamedTuple):
    bytes_per_second: float
    cpu_per_byte: float  # seconds that the follower was busy


def catch_up(brokers: AroundZooKeeper, topic: str, partitions: int, size: int) -> CaughtUp:
    """Stop a broker, write `size` bytes, start it again. How fast its files grow, from the first byte to the last."""
    follower = max(each for each in brokers.ports if each != brokers.controller())
    node = brokers.node(follower)
    before = _size(node.data, topic)
    node.stop()
    librdkafka.produce(brokers.bootstrap, topic, MESSAGE_BYTES, size // MESSAGE_BYTES, partitions=partitions)
    whole = max(_size(each.data, topic) for each in brokers.cluster.brokers)
    pages.make_ready(size)
    node.launch()
    process = psutil.Process(node.pid)
    began = None
    deadline = time.monotonic() + _TIMEOUT
    while True:
        now, have = time.monotonic(), _size(node.data, topic)
        if began is None and have > before:
            began, first, began_cpu = now, have, process.cpu_times()
        if have >= whole:
            break
        if now > deadline:
            raise TimeoutError(f"{brokers.name}: the follower has {have} bytes of {whole}")
        time.sleep(_LOOK_AGAIN)  # files tell nobody that they grow
    cpu = process.cpu_times()
    node.await_ready()
    brokers.await_whole()
    assert began is not None
    busy = cpu.user + cpu.system - began_cpu.user - began_cpu.system
    return CaughtUp((whole - first) / (now - began), busy / (whole - first))


def _size(data: Path, topic: str) -> int:
    return sum(each.stat().st_size for each in data.glob(f"{topic}-*/*.log"))
