"""What a well-behaved client would do next. These requests bring the broker into states worth attacking."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from barnabas.client.requests.admin import create_topics, new_topic
from barnabas.client.requests.data import fetch, produce
from barnabas.client.requests.groups import BY_RANGE, heartbeat, join_group, offset_commit, sync_group
from barnabas.client.requests.lookup import GROUP, TRANSACTION, find_coordinator, metadata
from barnabas.client.requests.streams import streams_group_heartbeat, subtopology, topology
from barnabas.client.requests.transactions import add_partitions_to_txn, end_txn, init_producer_id, txn_offset_commit
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.streams_group_heartbeat import Topology
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.schema import Message
from tests.fuzz.records import NOW_MS
from tests.fuzz.world import GROUPS, TRANSACTIONAL_IDS, World

# The settings of the fuzzer's topics, each of which is of another kind.
_KINDS = {
    "orders": (),
    "compacted": (("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.01"), ("segment.ms", "100")),
    "append-time": (("message.timestamp.type", "LogAppendTime"), ("compression.type", "zstd")),
    "new-1": (("retention.ms", "100"), ("segment.ms", "100")),
    "new-2": (("cleanup.policy", "compact,delete"), ("delete.retention.ms", "0")),
    "new-3": (("max.message.bytes", "1000"),),
}
_PARTITIONS = 3


class Step(NamedTuple):
    key: ApiKey
    version: int
    message: Message


def next_step(random: Random, world: World) -> Step:
    return random.choice(_STEPS)(random, world)


def _create(random: Random, world: World) -> Step:
    name, configs = random.choice(list(_KINDS.items()))
    return Step(ApiKey.CREATE_TOPICS, 7, create_topics(new_topic(name, _PARTITIONS, configs=configs)))


def _look_up(random: Random, world: World) -> Step:
    return Step(ApiKey.METADATA, 12, metadata(None))


def _find(random: Random, world: World) -> Step:
    kind = random.choice((GROUP, TRANSACTION))
    return Step(ApiKey.FIND_COORDINATOR, 4, find_coordinator(4, "key", key_type=kind))


def _produce(random: Random, world: World) -> Step:
    records = [NewRecord(NOW_MS, random.choice((b"a", b"b", b"c")), b"value") for _ in range(random.choice((1, 3)))]
    return Step(ApiKey.PRODUCE, 9, produce((random.choice(list(_KINDS)), random.randrange(3), build_batch(records))))


def _fetch(random: Random, world: World) -> Step:
    return Step(ApiKey.FETCH, 12, fetch((random.choice(list(_KINDS)), random.randrange(3), random.choice((0, 5)))))


def _join(random: Random, world: World) -> Step:
    group, member, _ = world.member(random)
    if random.random() < 0.3:
        group, member = random.choice(GROUPS), ""
    timeouts = {"session_timeout_ms": 6000, "rebalance_timeout_ms": 300}
    return Step(ApiKey.JOIN_GROUP, random.choice((2, 5, 9)), join_group(group, member, **timeouts))


def _sync(random: Random, world: World) -> Step:
    group, member, generation = world.member(random)
    return Step(ApiKey.SYNC_GROUP, 5, sync_group(group, member, generation, {member: b"all"}, **BY_RANGE))


def _beat(random: Random, world: World) -> Step:
    return Step(ApiKey.HEARTBEAT, 4, heartbeat(*world.member(random)))


def _commit(random: Random, world: World) -> Step:
    group, member, generation = world.member(random)
    return Step(ApiKey.OFFSET_COMMIT, 8, offset_commit(group, ("orders", 0, 1), member=member, generation=generation))


def _flow() -> Topology:
    """A new one each time: what is sent may be damaged first."""
    return topology(
        subtopology("0", "orders", sinks=["flow-repartition"]),
        subtopology("1", "compacted", repartition=["flow-repartition"], changelogs=["flow-changelog"]),
    )


def _stream(random: Random, world: World) -> Step:
    member = random.choice(("a", "b"))
    epoch = random.choice((0, world.streams_epochs.get(member, 1), world.streams_epochs.get(member, 1), -1))
    fields = {"topology": _flow()} if epoch == 0 else {"active": random.choice((None, {"0": [0]}, {"0": [0, 1, 2]}))}
    return Step(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, streams_group_heartbeat("flows", member, epoch, **fields))


def _init(random: Random, world: World) -> Step:
    name = random.choice((None, *TRANSACTIONAL_IDS))
    return Step(ApiKey.INIT_PRODUCER_ID, 4, init_producer_id(name, timeout_ms=random.choice((300, 60_000))))


def _add(random: Random, world: World) -> Step:
    name, producer_id, epoch = world.producer(random)
    added = add_partitions_to_txn(3, name or "", producer_id, epoch, ("orders", 0), ("compacted", 1))
    return Step(ApiKey.ADD_PARTITIONS_TO_TXN, 3, added)


def _produce_in_transaction(random: Random, world: World) -> Step:
    name, producer_id, epoch = world.producer(random)
    batch = build_batch(
        [NewRecord(NOW_MS, b"key", b"value")],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=world.sequence(producer_id, epoch, 1),
        transactional=name is not None,
    )
    version = random.choice((9, 12))
    return Step(ApiKey.PRODUCE, version, produce(("orders", 0, batch), transactional_id=name))


def _commit_in_transaction(random: Random, world: World) -> Step:
    name, producer_id, epoch = world.producer(random)
    group, _, _ = world.member(random)
    return Step(ApiKey.TXN_OFFSET_COMMIT, 5, txn_offset_commit(name or "", group, producer_id, epoch, ("orders", 0, 7)))


def _end(random: Random, world: World) -> Step:
    name, producer_id, epoch = world.producer(random)
    version = random.choice((3, 5))
    return Step(ApiKey.END_TXN, version, end_txn(name or "", producer_id, epoch, commit=random.random() < 0.5))


_STEPS: tuple[Callable[[Random, World], Step], ...] = (
    *(_create, _look_up, _find, _produce, _produce, _fetch),
    *(_join, _join, _sync, _beat, _commit, _stream, _stream),
    *(_init, _add, _produce_in_transaction, _commit_in_transaction, _end),
)
