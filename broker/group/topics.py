"""The topics that groups read: what is needed of them to assign partitions, and a number that stands for all of it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from barnabas.broker.controller.images import BrokerImage, TopicImage
from barnabas.broker.group.assignors.spec import TopicPartitions


class Topics(Protocol):
    """What groups know of the cluster."""

    @property
    def topics(self) -> Mapping[str, TopicImage]: ...

    @property
    def brokers(self) -> Mapping[int, BrokerImage]: ...

    def topic(self, name: str) -> TopicImage | None: ...

    def name_of(self, topic_id: bytes) -> str | None: ...


def ids_of(names: Iterable[str], topics: Topics) -> frozenset[bytes]:
    """The ids of those of these topics that exist."""
    return frozenset(image.topic_id for name in names if (image := topics.topic(name)) is not None)


def partitions_of(names: Iterable[str], topics: Topics) -> dict[bytes, TopicPartitions]:
    """What assignors are told of those of these topics that exist."""
    return {
        image.topic_id: TopicPartitions(len(image.partitions), _racks(image, topics.brokers))
        for name in names
        if (image := topics.topic(name)) is not None
    }


def metadata_hash(names: Collection[str], topics: Topics) -> int:
    """A number that changes when one of these topics does, in a way that may change an assignment.

    Kafka has a hash function of its own for it. A group that comes from there has one rebalance when it sees another.
    """
    in_racks = any(broker.rack is not None for broker in topics.brokers.values())
    described = [
        (
            image.name,
            image.topic_id,
            len(image.partitions),
            [sorted(racks) for racks in _racks(image, topics.brokers)] if in_racks else None,
        )
        for name in sorted(names)
        if (image := topics.topic(name)) is not None
    ]
    if not described:
        return 0
    return int.from_bytes(hashlib.blake2b(repr(described).encode(), digest_size=8).digest(), "big", signed=True)


def _racks(image: TopicImage, brokers: Mapping[int, BrokerImage]) -> tuple[frozenset[str], ...]:
    racks = {broker_id: broker.rack for broker_id, broker in brokers.items() if broker.rack is not None}
    if not racks:
        return (frozenset(),) * len(image.partitions)
    return tuple(
        frozenset(racks[broker_id] for broker_id in partition.replica_nodes if broker_id in racks)
        for partition in image.partitions
    )
