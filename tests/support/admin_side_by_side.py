"""Apache Kafka and Barnabas side by side, with the same topics, for requests of administrators.

The topics are `one`, `three` (partitions), `compacted`, and `configured`, which has a setting of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import ZERO_UUID, Message, Struct
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.side_by_side import Side, SideBySide

SETTINGS = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "num.partitions": "3",
    "log.retention.hours": "24",
    "log.segment.bytes": "2097152",
}

# With its "eligible leader replicas", which Barnabas does not have, Kafka gives every cluster this setting.
SET_BY_KAFKA = "min.insync.replicas"

# Settings of tiered storage, which Barnabas does not have either.
TIERED = ("log.local.retention.ms", "log.local.retention.bytes")


class AdminSide(Side):
    """Answers to administrators contain more fields that are up to each broker."""

    def comparable(self, value: Any) -> Any:
        if isinstance(value, Struct):
            fields = {name: getattr(value, name) for name in type(value).__slots__}
            compared = super().comparable(value)
            if "topic_id" in fields:
                compared["topic_id"] = "none" if value.topic_id == ZERO_UUID else "an id"
            for name in fields.keys() & {"total_bytes", "usable_bytes"}:
                compared[name] = "so many" if fields[name] > 0 else fields[name]
            if "log_dir" in fields:
                compared["log_dir"] = "a folder"
            if "documentation" in fields:
                compared["documentation"] = bool(fields["documentation"])
            if "synonyms" in fields:
                compared["synonyms"] = [synonym for synonym in compared["synonyms"] if synonym["name"] not in TIERED]
            return compared
        if isinstance(value, list):
            return super().comparable([item for item in value if getattr(item, "name", "") != SET_BY_KAFKA])
        return super().comparable(value)


@contextmanager
def administered(data: Path) -> Iterator[SideBySide]:
    with ApacheKafka(SETTINGS) as kafka, BrokerProcess(data, settings=SETTINGS) as barnabas:
        sides = SideBySide(AdminSide(kafka.port), AdminSide(barnabas.port))
        for side in (sides.kafka, sides.barnabas):
            side.create_topic("one")
            side.create_topic("three", 3)
            side.create_topic("compacted", configs={"cleanup.policy": "compact"})
            side.create_topic("configured", configs={"retention.ms": "100000"})
        yield sides
        sides.kafka.close()
        sides.barnabas.close()


def play(brokers: SideBySide, key: ApiKey, version: int, *requests: Message | Callable[[Side], Message]) -> None:
    """Send the same requests to both. A request may be a function of the side that it is sent to."""
    brokers.play(lambda side: (side.ask(key, r(side) if callable(r) else r, version) for r in requests))
