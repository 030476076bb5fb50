"""How fast a follower that was away gets what it missed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from benchmarks.broker import librdkafka
from benchmarks.cluster.contestants import AroundZooKeeper

_LOOK_AGAIN: Final = 0.005
_TIMEOUT: Final = 300.0
MESSAGE_BYTES: Final = 1024


def bytes_per_second(brokers: AroundZooKeeper, topic: str, partitions: int, size: int) -> float:
    """Stop a broker, write `size` bytes, start it again. How fast its files grow, from the first byte to the last."""
    follower = max(each for each in brokers.ports if each != brokers.controller())
    node = brokers.node(follower)
    before = _size(node.data, topic)
    node.stop()
    librdkafka.produce(brokers.bootstrap, topic, MESSAGE_BYTES, size // MESSAGE_BYTES, partitions=partitions)
    whole = max(_size(each.data, topic) for each in brokers.cluster.brokers)
    node.launch()
    began = None
    deadline = time.monotonic() + _TIMEOUT
    while True:
        now, have = time.monotonic(), _size(node.data, topic)
        if began is None and have > before:
            began, first = now, have
        if have >= whole:
            break
        if now > deadline:
            raise TimeoutError(f"{brokers.name}: the follower has {have} bytes of {whole}")
        time.sleep(_LOOK_AGAIN)  # files tell nobody that they grow
    node.await_ready()
    brokers.await_whole()
    assert began is not None
    return (whole - first) / (now - began)


def _size(data: Path, topic: str) -> int:
    return sum(each.stat().st_size for each in data.glob(f"{topic}-*/*.log"))
