"""The topics that groups read: what is needed of them to assign partitions, and a number that stands for all of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from struct import pack, unpack, unpack_from
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from xxhash import xxh3_64_digest

from barnabas.broker.controller.images import BrokerImage, TopicImage
from barnabas.broker.group.assignors.spec import TopicPartitions

_HASH_VERSION: Final = 0  # of what is hashed of a topic
# By topic: the racks of all brokers, and the hash with these. A topic that changes is another image.
_hashes: Final[WeakKeyDictionary[TopicImage, tuple[Mapping[int, str], int]]] = WeakKeyDictionary()

# A member's subscription is examined as a whole, whenever it joins or changes it.
MOST_NAMES: Final = 5_000
TOO_MANY_NAMES: Final = f"A member subscribes to at most {MOST_NAMES} topics by name."


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
    """Kafka's number for these topics: it changes when one of them does, in a way that may change an assignment."""
    existing = topics.topics
    found = [existing[name] for name in sorted(existing.keys() & names)]  # groups may name many more
    if not found:
        return 0
    racks = _racks_of(topics.brokers)
    return _hash(pack(f"<{len(found)}q", *(_topic_hash(image, racks) for image in found)))


def _topic_hash(image: TopicImage, racks: Mapping[int, str]) -> int:
    known = _hashes.get(image)
    if known is None or known[0] != racks:
        known = _hashes[image] = (racks, _hash(_described(image, racks)))
    return known[1]


def _hash(data: bytes) -> int:
    """XXH3, as the signed number that Java has."""
    return int.from_bytes(xxh3_64_digest(data), "big", signed=True)


def _described(image: TopicImage, racks: Mapping[int, str]) -> bytes:
    """What Kafka hashes of a topic: its id, its name, and for each partition the racks of its replicas."""
    high, low = unpack(">2q", image.topic_id)
    count = len(image.partitions)
    described = pack("<b2q", _HASH_VERSION, high, low) + _text(image.name) + pack("<i", count)
    if not racks:
        return described + pack(f"<{count}i", *range(count))
    parts = [described]
    for index, partition in enumerate(image.partitions):
        parts.append(pack("<i", index))
        texts = [_text(racks[broker_id]) for broker_id in partition.replica_nodes if broker_id in racks]
        # Java compares strings by their UTF-16 code units.
        for text in sorted(texts, key=lambda text: unpack_from(f"<{len(text) // 2 - 2}H", text)):
            parts += (text[-4:], text)
    return b"".join(parts)


def _text(text: str) -> bytes:
    """A string's UTF-16 code units, and their number."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + pack("<i", len(encoded) // 2)


def _racks(image: TopicImage, brokers: Mapping[int, BrokerImage]) -> tuple[frozenset[str], ...]:
    racks = _racks_of(brokers)
    if not racks:
        return (frozenset(),) * len(image.partitions)
    return tuple(
        frozenset(racks[broker_id] for broker_id in partition.replica_nodes if broker_id in racks)
        for partition in image.partitions
    )


def _racks_of(brokers: Mapping[int, BrokerImage]) -> dict[int, str]:
    return {broker_id: broker.rack for broker_id, broker in brokers.items() if broker.rack is not None}
