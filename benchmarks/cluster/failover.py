"""How long a partition is without a leader: from kill -9 until a client's next record is acknowledged.

The client is as eager as one can be: it asks a surviving broker for the leaders until they are others, and sends its
record again until it is acknowledged by all replicas in sync.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from barnabas.client.requests.data import produce
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode, ProtocolError
from benchmarks.broker import frames
from benchmarks.cluster.contestants import AroundZooKeeper, described

TIMEOUT: Final = 120.0
_AGAIN: Final = 0.02
_RECORD: Final = frames.batch(bytes(100))


def seconds_without_leader(brokers: AroundZooKeeper, victim: int, topic: str) -> float:
    """Kill a broker. The seconds until each partition of the topic that it led has acknowledged a record again.

    Afterwards it is started again, and the cluster is whole.
    """
    led = [index for (_, index), each in brokers.partitions(victim, [topic]).items() if each.leader_id == victim]
    if not led:
        raise RuntimeError(f"{brokers.name}: broker {victim} leads nothing of {topic}")
    survivors = [each for each in brokers.ports if each != victim]
    wires = {each: brokers.wire(each) for each in survivors}
    try:
        began = time.monotonic()
        brokers.node(victim).kill()
        _write(wires, topic, led, victim, began + TIMEOUT)
        taken = time.monotonic() - began
    finally:
        for each in wires.values():
            each.close()
    brokers.cluster.start_brokers([brokers.node(victim)])
    brokers.await_whole()
    return taken


def _write(wires: dict[int, Wire], topic: str, partitions: Sequence[int], dead: int, deadline: float) -> None:
    """Write a record to each of these partitions."""
    missing = set(partitions)
    while True:
        for asked in list(wires):
            try:
                leaders = described(wires[asked], [topic])
                for leader, wire in wires.items():
                    mine = [index for index in sorted(missing) if leaders[topic, index].leader_id == leader]
                    if mine:
                        missing -= _acknowledged(wire, topic, mine)
            except (OSError, ProtocolError, KeyError):
                pass  # it is busy with what has happened; the next round asks again
            if not missing:
                return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(missing)} partitions have no leader but broker {dead}")
        time.sleep(_AGAIN)  # nothing tells a client, so poll


def _acknowledged(wire: Wire, topic: str, partitions: Sequence[int]) -> set[int]:
    request = produce(*((topic, index, _RECORD) for index in partitions), timeout_ms=30_000)
    (answer,) = wire.ask(ApiKey.PRODUCE, request, frames.PRODUCE_VERSION).responses
    return {each.index for each in answer.partition_responses if each.error_code == ErrorCode.NONE}
