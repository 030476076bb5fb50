"""Values for fields, by their types and by the meaning of their names."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from barnabas.protocol.schema import BYTES, RECORDS, STRING, Message, StructType, WireType, wire_types
from tests.fuzz.records import Batches
from tests.fuzz.world import GROUPS, INSTANCES, TOPICS, TRANSACTIONAL_IDS, World

TEXTS = (
    *(
        "",
        "a",
        "consumer",
        "range",
        "\x1b[31mred",
        "\u202ereversed",
        "\0",
        "x" * 249,
        "x" * 250,
        "x" * 32767,
        "é" * 1000,
    ),
    *("🎈", "..", "../../etc", "a\nb", "%s%n", "-1", "0", "1", "9223372036854775807", "9223372036854775808", "NaN"),
)
CONFIGS = (
    *("retention.ms", "retention.bytes", "segment.bytes", "segment.ms", "cleanup.policy", "compression.type"),
    *("max.message.bytes", "message.timestamp.type", "flush.messages", "flush.ms", "delete.retention.ms"),
    *("min.cleanable.dirty.ratio", "min.compaction.lag.ms", "max.compaction.lag.ms", "min.insync.replicas"),
    *("file.delete.delay.ms", "index.interval.bytes", "segment.index.bytes", "message.timestamp.after.max.ms"),
    *("unclean.leader.election.enable", "preallocate", "segment.jitter.ms", "no.such.setting", ""),
    # Of brokers; the client beside the fuzzer has settings of its own for its topic.
    *("log.cleaner.threads", "log.retention.ms", "log.segment.bytes", "log.flush.interval.ms", "num.partitions"),
)
CONFIG_VALUES = (
    *("", "0", "1", "-1", "-2", "100", "100000", "9223372036854775807", "0.5"),
    *("compact", "delete", "compact,delete", "zstd", "true", "LogAppendTime"),
)
SUBSCRIPTION = b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"

_TIMEOUTS = (0, 1, 10, 50, 100, 500, 6000, 60_000, -1, 2**31 - 1)
_OFFSETS = (0, 0, 1, 2, 5, 10, 100, -1, -2, -3, 2**31, 2**63 - 1, -(2**63))
_INDEXES = (0, 0, 0, 1, 1, 2, 3, -1, 2**31 - 1, -(2**31))
_MORE_THAN_A_PIECE = 3000


def interesting_number(random: Random, wire_type: WireType) -> int:
    bits = wire_type.size * 8
    low, high = (0, 2**bits - 1) if wire_type.name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if random.random() < 0.5:
        return random.choice((0, 1, 2, 3, 10))
    return random.choice(
        (low, low + 1, max(low, -2), max(low, -1), 0, 1, high // 2, high - 1, high, random.randint(low, high))
    )


class Values:
    """Makes requests whose values fit together more often than not."""

    def __init__(self, random: Random, world: World) -> None:
        self.random = random
        self.world = world
        self.batches = Batches(random, world)
        # The topic, group and so on that the fields of one request refer to.
        self._group, self._member, self._generation = world.member(random)
        self._transactional_id, self._producer_id, self._epoch = world.producer(random)
        self._session = random.choice([*world.sessions, (0, -1), (0, 0)])

    def message(self, message: type[Message], version: int) -> Any:
        return self._struct(message, version)

    def _struct(self, struct: StructType, version: int) -> Any:
        values = {}
        for name, wire_type in wire_types(struct).items():
            spec = struct.fields[name]
            if version not in spec.versions:
                if spec.required:
                    values[name] = [] if isinstance(wire_type, list) else getattr(wire_type, "zero", None)
            elif spec.tag is not None and self.random.random() < 0.5:
                values[name] = [] if spec.default == () else spec.default
            elif version in spec.nullable and self.random.random() < 0.1:
                values[name] = None
            else:
                values[name] = self.value(name, wire_type, version)
        return struct(**values)

    def value(self, name: str, wire_type: Any, version: int) -> Any:
        if isinstance(wire_type, list):
            return [self.value(name, wire_type[0], version) for _ in range(self._count())]
        if isinstance(wire_type, StructType):
            return self._struct(wire_type, version)
        meaning = _MEANINGS.get(name)
        if meaning is not None and self.random.random() < 0.9:
            value = meaning(self)
            if _fits(value, wire_type):
                return value
        return self._any(wire_type)

    def _count(self) -> int:
        chance = self.random.random()
        if chance < 0.002:
            return self.random.choice((100, _MORE_THAN_A_PIECE))
        return 1 if chance < 0.7 else self.random.choice((0, 2, 2, 3, 5))

    def _any(self, wire_type: WireType) -> Any:
        random = self.random
        if wire_type is STRING:
            return random.choice(TEXTS)
        if wire_type is BYTES:
            return random.choice((b"", b"\0", SUBSCRIPTION, random.randbytes(random.choice((1, 7, 100)))))
        if wire_type is RECORDS:
            return self.batches.any()
        if wire_type.name == "bool":
            return random.random() < 0.5
        if wire_type.name == "uuid":
            return random.choice([bytes(16), random.randbytes(16), *self.world.topic_ids])
        if wire_type.name == "float64":
            return random.choice((0.0, -1.0, 1e308, float("inf"), float("nan")))
        return interesting_number(random, wire_type)

    def config_name(self) -> str:
        return self.random.choice(CONFIGS)


def _fits(value: Any, wire_type: WireType) -> bool:
    if wire_type is STRING:
        return isinstance(value, str)
    if wire_type in (BYTES, RECORDS):
        return isinstance(value, bytes | bytearray)
    if wire_type.name == "uuid":
        return isinstance(value, bytes) and len(value) == 16
    if wire_type.name == "bool":
        return True
    if wire_type.name == "float64":
        return isinstance(value, float)
    return isinstance(value, int) and -(2 ** (wire_type.size * 8 - 1)) <= value < 2 ** (wire_type.size * 8 - 1)


def _pick(*choices: Any) -> Callable[[Values], Any]:
    return lambda values: values.random.choice(choices)


_topic = _pick(*TOPICS[:6], *TOPICS[:6], *TOPICS)
_group = lambda values: values._group  # noqa: E731
_timeout = _pick(*_TIMEOUTS)
_offset = _pick(*_OFFSETS)
_index = _pick(*_INDEXES)
_epoch = _pick(-1, 0, 0, 1, 2**31 - 1)

_MEANINGS: dict[str, Callable[[Values], Any]] = {
    "topic": _topic,
    "name": lambda values: values.random.choice((*TOPICS, *TOPICS, values.config_name(), "range", "roundrobin")),
    "topic_name": _topic,
    "topic_names": _topic,
    "resource_name": lambda values: values.random.choice((*TOPICS, "", "0", "1", *GROUPS)),
    "resource_type": _pick(2, 2, 2, 4, 8, 16, 32, 0, 127),
    "configuration_keys": lambda values: values.config_name(),
    "config_operation": _pick(0, 1, 2, 3, 0, -1, 4),
    "value": _pick(*CONFIG_VALUES),
    "group_id": _group,
    "groups": lambda values: values.random.choice(GROUPS),
    "groups_names": lambda values: values.random.choice(GROUPS),
    "key": lambda values: values.random.choice((*GROUPS, *TRANSACTIONAL_IDS)),
    "coordinator_keys": lambda values: values.random.choice((*GROUPS, *TRANSACTIONAL_IDS)),
    "key_type": _pick(0, 1, 0, 1, 2, -1),
    "member_id": lambda values: values._member,
    "group_instance_id": _pick(*(instance for instance in INSTANCES if instance)),
    "generation_id": lambda values: values._generation,
    "generation_id_or_member_epoch": lambda values: values._generation,
    "protocol_type": _pick("consumer", "consumer", "consumer", "connect", ""),
    "protocol_name": _pick("range", "range", "roundrobin"),
    "transactional_id": lambda values: values._transactional_id,
    "transactional_ids": lambda values: values.random.choice(TRANSACTIONAL_IDS),
    "v3_and_below_transactional_id": lambda values: values._transactional_id,
    "producer_id": lambda values: values._producer_id,
    "v3_and_below_producer_id": lambda values: values._producer_id,
    "producer_epoch": lambda values: values._epoch,
    "v3_and_below_producer_epoch": lambda values: values._epoch,
    "session_id": lambda values: values._session[0],
    "session_epoch": lambda values: values._session[1],
    "timeout_ms": _timeout,
    "max_wait_ms": _pick(0, 0, 0, 1, 10, 50, -1),
    "session_timeout_ms": _pick(50, 100, 500, 6000, 30_000, -1, 2**31 - 1),
    "rebalance_timeout_ms": _timeout,
    "transaction_timeout_ms": _pick(1, 100, 1000, 60_000, 0, -1, 2**31 - 1),
    "partition_index": _index,
    "partition_indexes": _index,
    "partition": _index,
    "partitions": _index,
    "index": _index,
    "fetch_offset": _offset,
    "offset": _offset,
    "committed_offset": _offset,
    "timestamp": _pick(-1, -2, -3, -4, -5, -6, -7, 0, 1, 1_700_000_000_000, 2**63 - 1, -(2**63)),
    "retention_time_ms": _pick(-1, 0, 1, 2**63 - 1, -(2**63)),
    "partition_max_bytes": _pick(1, 1000, 1_048_576, 0, -1, 2**31 - 1),
    "max_bytes": _pick(1, 1000, 1_048_576, 50_000_000, 0, -1, 2**31 - 1),
    "min_bytes": _pick(0, 1, 1, 1000, -1, 2**31 - 1),
    "isolation_level": _pick(0, 1, 0, 1, 2, -1),
    "acks": _pick(-1, -1, 1, 1, 0, 2),
    "current_leader_epoch": _epoch,
    "leader_epoch": _epoch,
    "last_fetched_epoch": _epoch,
    "replica_id": _pick(-1, -1, -1, 0, 1, -2),
    "num_partitions": _pick(-1, 1, 1, 2, 3, 0, -2, 20_000, 2**31 - 1),
    "count": _pick(1, 2, 3, 4, 0, -1, 20_000, 2**31 - 1),
    "replication_factor": _pick(-1, 1, 1, 0, 2, -2),
    "broker_ids": _pick(0, 0, 1, -1),
    "replicas": _pick(0, 0, 1, -1),
    "committed": _pick(True, False),
    "client_software_name": _pick("fuzz", "a b", "", "x" * 300),
    "metadata": _pick(SUBSCRIPTION, SUBSCRIPTION, b"", b"\xff"),
    "assignment": _pick(SUBSCRIPTION, b"", b"\xff"),
    "transactional_id_pattern": _pick(".*", "tx-.", "[", "(a+)+$", ""),
    "committed_metadata": _pick("", "words", "m" * 5000),
    "validate_only": _pick(True, False, False),
}
