"""Error answers of any API in any version, with the error where that API has room for it.

Where an answer has an error code of its own besides those of its parts, an error for the whole request goes there and
the parts are left out, as Kafka does when a request fails as a whole; an error for a topic or a partition goes to just
that part. `MIRRORS` says which list of an answer has an entry for each entry of a request.

If a request covers more than the fault, it is handled without the affected parts (`split`), which are then put into
its answer (`merge`), so that the rest really happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.broker.testing.subjects import TopicName, partition_of, topic_of, types_of
from barnabas.protocol.api import ApiKey, request_type, response_type
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
from barnabas.protocol.schema import BYTES, NO_VERSIONS, STRING, Message, Struct, StructType, WireType

ERROR_FIELDS: Final = ("error_code", "partition_error_code", "acknowledge_error_code")
_PARTITION_FIELDS: Final = ("partition_index", "partition", "index", "partition_id")
_NAME_FIELDS: Final = ("name", "topic", "topic_name", "group_id", "key", "transactional_id", "user")
_OTHER_IDENTITIES: Final = (
    *("topic_id", "resource_type", "resource_name", "entity_type", "entity_name"),
    *("member_id", "group_instance_id", "producer_id"),
)

# Whether a fault is about a part of a request: a topic (None: not about topics) and a partition (None: all of it).
Hits = Callable[[str | None, int | None], bool]


class Mirror(NamedTuple):
    """For each entry of the request's list there is one in the answer's, and maybe lists inside both."""

    answer: str
    request: str
    inner: Mirror | None = None


def _by_partition(answer: str, request: str, partitions: str, wanted: str) -> Mirror:
    return Mirror(answer, request, Mirror(partitions, wanted))


_TOPICS: Final = _by_partition("topics", "topics", "partitions", "partitions")
_STATES: Final = _by_partition("results", "topics", "partitions", "partitions")

MIRRORS: Final[dict[ApiKey, tuple[Mirror, ...]]] = {
    ApiKey.PRODUCE: (_by_partition("responses", "topic_data", "partition_responses", "partition_data"),),
    ApiKey.FETCH: (_by_partition("responses", "topics", "partitions", "partitions"),),
    ApiKey.LIST_OFFSETS: (_TOPICS,),
    ApiKey.METADATA: (Mirror("topics", "topics"),),
    ApiKey.OFFSET_COMMIT: (_TOPICS,),
    ApiKey.OFFSET_FETCH: (
        _by_partition("topics", "topics", "partitions", "partition_indexes"),
        Mirror("groups", "groups", _by_partition("topics", "topics", "partitions", "partition_indexes")),
    ),
    ApiKey.FIND_COORDINATOR: (Mirror("coordinators", "coordinator_keys"),),
    ApiKey.DESCRIBE_GROUPS: (Mirror("groups", "groups"),),
    ApiKey.CREATE_TOPICS: (Mirror("topics", "topics"),),
    ApiKey.DELETE_TOPICS: (Mirror("responses", "topics"), Mirror("responses", "topic_names")),
    ApiKey.DELETE_RECORDS: (_TOPICS,),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_TOPICS,),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        _by_partition("results_by_topic_v3_and_below", "v3_and_below_topics", "results_by_partition", "partitions"),
        Mirror(
            "results_by_transaction",
            "transactions",
            _by_partition("topic_results", "topics", "results_by_partition", "partitions"),
        ),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        Mirror("markers", "markers", _by_partition("topics", "topics", "partitions", "partition_indexes")),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (_TOPICS,),
    ApiKey.CREATE_ACLS: (Mirror("results", "creations"),),
    ApiKey.DELETE_ACLS: (Mirror("filter_results", "filters"),),
    ApiKey.DESCRIBE_CONFIGS: (Mirror("results", "resources"),),
    ApiKey.ALTER_CONFIGS: (Mirror("responses", "resources"),),
    ApiKey.CREATE_PARTITIONS: (Mirror("results", "topics"),),
    ApiKey.DELETE_GROUPS: (Mirror("results", "groups_names"),),
    ApiKey.ELECT_LEADERS: (
        _by_partition("replica_election_results", "topic_partitions", "partition_result", "partitions"),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Mirror("responses", "resources"),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (_by_partition("responses", "topics", "partitions", "partitions"),),
    ApiKey.OFFSET_DELETE: (_TOPICS,),
    ApiKey.ALTER_CLIENT_QUOTAS: (Mirror("entries", "entries", Mirror("entity", "entity")),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (Mirror("results", "deletions"), Mirror("results", "upsertions")),
    ApiKey.DESCRIBE_PRODUCERS: (_by_partition("topics", "topics", "partitions", "partition_indexes"),),
    ApiKey.DESCRIBE_TRANSACTIONS: (Mirror("transaction_states", "transactional_ids"),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Mirror("groups", "group_ids"),),
    **dict.fromkeys(
        (
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            ApiKey.DELETE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ),
        (_by_partition("results", "topics", "partitions", "partitions"),),
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: (Mirror("groups", "group_ids"),),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (Mirror("groups", "groups"),),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (_by_partition("responses", "topics", "partitions", "partitions"),),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (Mirror("responses", "topics"),),
    ApiKey.STREAMS_GROUP_DESCRIBE: (Mirror("groups", "group_ids"),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (Mirror("topics", "topics"),),
    ApiKey.SHARE_FETCH: (_by_partition("responses", "topics", "partitions", "partitions"),),
    ApiKey.SHARE_ACKNOWLEDGE: (_by_partition("responses", "topics", "partitions", "partitions"),),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (_STATES,),
    ApiKey.READ_SHARE_GROUP_STATE: (_STATES,),
    ApiKey.WRITE_SHARE_GROUP_STATE: (_STATES,),
    ApiKey.DELETE_SHARE_GROUP_STATE: (_STATES,),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (_STATES,),
}


def error_answer(key: ApiKey, version: int, request: Message, error: ErrorCode, *, of_parts: bool) -> Any:
    """An answer with `error`: in each part if `of_parts` is set, otherwise for the whole where there is room.

    None if this version's answer has no room for an error.
    """
    answer = response_type(key)
    if key == ApiKey.DESCRIBE_LOG_DIRS and version < 3:
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(error_code=error, log_dir="", topics=[])])
    if isinstance(request, AlterReplicaLogDirsRequest):
        return _alter_replica_log_dirs(request, error)
    top = error_field(answer, version)
    mirrors = [m for m in MIRRORS.get(key, ()) if _exists(answer, m.answer, version) and getattr(request, m.request)]
    if top is not None and not (of_parts and mirrors):
        built = _filled(answer, request)
        setattr(built, top, error)
        return built
    if not mirrors:
        return None
    built = _filled(answer, request)
    for mirror in mirrors:
        parts = _mirrored(answer, mirror, getattr(request, mirror.request), version, error, of_parts)
        setattr(built, mirror.answer, [*getattr(built, mirror.answer), *parts])
    return built


def has_room(key: ApiKey) -> bool:
    """Whether answers of this API have room for an error in any version."""
    answer = response_type(key)
    return (
        key in MIRRORS
        or key in (ApiKey.ALTER_REPLICA_LOG_DIRS,)
        or any(error_field(answer, version) for version in request_type(key).versions)
    )


def error_field(struct: StructType, version: int) -> str | None:
    return next((name for name in ERROR_FIELDS if _exists(struct, name, version)), None)


def _exists(struct: StructType, name: str, version: int) -> bool:
    spec = struct.fields.get(name)
    return spec is not None and version in spec.versions


def _mirrored(
    owner: StructType, mirror: Mirror, entries: Sequence[Any], version: int, error: ErrorCode, of_parts: bool
) -> list[Struct]:
    struct = types_of(owner)[mirror.answer][0]
    own_error = error_field(struct, version)
    built = []
    for entry in entries:
        part = _filled(struct, entry)
        inner = mirror.inner
        inside = getattr(entry, inner.request) or () if inner is not None else ()
        if inner is not None and not (own_error and inside and not of_parts and _errors_inside(struct, inner)):
            parts = _mirrored(struct, inner, inside, version, error, of_parts)
            setattr(part, inner.answer, parts)
            if own_error and (not parts or not _errors_inside(struct, inner)):
                setattr(part, own_error, error)
        elif own_error:
            setattr(part, own_error, error)
        built.append(part)
    return built


@cache
def _errors_inside(struct: StructType, mirror: Mirror) -> bool:
    inner = types_of(struct)[mirror.answer][0]
    if any(name in inner.fields for name in ERROR_FIELDS):
        return True
    return mirror.inner is not None and _errors_inside(inner, mirror.inner)


def _filled(struct: StructType, entry: Any) -> Any:
    """A struct of the answer, named as the request's entry (a struct, a name or a number); the rest is nothing."""
    values = {}
    for name, wire_type in types_of(struct).items():
        spec = struct.fields[name]
        identity = _identity(name, entry)
        if identity is not None:
            values[name] = identity
        elif isinstance(wire_type, StructType) and spec.required and spec.nullable == NO_VERSIONS:
            values[name] = _filled(wire_type, None)
        elif spec.required or name in ("node_id", "port"):
            values[name] = _nothing(name, wire_type)
    return struct(**values)


def _identity(name: str, entry: Any) -> Any:
    """The value in the request's entry of a field that identifies a part of an answer."""
    if isinstance(entry, Message) and name != "member_id":
        return None
    if name in _PARTITION_FIELDS:
        return entry if isinstance(entry, int) else partition_of(entry) if isinstance(entry, Struct) else None
    if name in _NAME_FIELDS and isinstance(entry, str):
        return entry
    if isinstance(entry, Struct):
        if name in (*_NAME_FIELDS, *_OTHER_IDENTITIES) and name in type(entry).fields:
            return getattr(entry, name)
        if name in _NAME_FIELDS:
            return next((getattr(entry, n) for n in ("name", "topic") if n in type(entry).fields), None)
    return None


def _nothing(name: str, wire_type: Any) -> Any:
    """The neutral value of a field: -1 where 0 would be an offset, an id or an epoch."""
    if isinstance(wire_type, list):
        return []
    if isinstance(wire_type, StructType):
        return None
    if wire_type in (STRING, BYTES) or not isinstance(wire_type, WireType):
        return wire_type.zero
    unknown = wire_type.name == "int64" or name.endswith(("_id", "epoch", "port"))
    return -1 if unknown and wire_type.name.startswith("int") else wire_type.zero


def _alter_replica_log_dirs(request: AlterReplicaLogDirsRequest, error: ErrorCode) -> Any:
    answer = response_type(ApiKey.ALTER_REPLICA_LOG_DIRS)
    built = _filled(answer, request)
    mirror = _by_partition("results", "topics", "partitions", "partitions")
    parts = [part for entry in request.dirs for part in _mirrored(answer, mirror, entry.topics, 2, error, True)]
    built.results = parts
    return built


# --- requests that cover more than the fault ---


def split(key: ApiKey, request: Message, hits: Hits, name_of: TopicName) -> Message | None:
    """Take the parts that `hits` selects out of a request and return a request of those; None if there are none."""
    taken = copied(request)
    found = False
    for mirror in MIRRORS.get(key, ()):
        entries = getattr(request, mirror.request, None)
        if entries:
            hit, rest = _split(entries, mirror, hits, name_of, None)
            setattr(taken, mirror.request, hit)
            setattr(request, mirror.request, rest)
            found = found or bool(hit)
    return taken if found else None


def _split(
    entries: Sequence[Any], mirror: Mirror, hits: Hits, name_of: TopicName, topic: str | None
) -> tuple[list[Any], list[Any]]:
    hit: list[Any] = []
    rest: list[Any] = []
    for entry in entries:
        if isinstance(entry, int):
            (hit if hits(topic, entry) else rest).append(entry)
        elif isinstance(entry, str):
            (hit if hits(entry, None) else rest).append(entry)
        else:
            own = topic_of(entry, name_of) or topic
            inside = getattr(entry, mirror.inner.request) if mirror.inner is not None else None
            if not inside or mirror.inner is None:
                (hit if hits(own, partition_of(entry)) else rest).append(entry)
                continue
            inner_hit, inner_rest = _split(inside, mirror.inner, hits, name_of, own)
            for parts, whole in ((inner_hit, hit), (inner_rest, rest)):
                if parts:
                    part = copied(entry)
                    setattr(part, mirror.inner.request, parts)
                    whole.append(part)
    return hit, rest


def is_empty(key: ApiKey, request: Message) -> bool:
    """Whether `split` has left nothing of a request."""
    return not any(getattr(request, mirror.request, None) for mirror in MIRRORS.get(key, ()))


def merge(key: ApiKey, answer: Message, errors: Message) -> Message:
    """An answer with the parts of another one put in."""
    merged = copied(answer)
    for mirror in MIRRORS.get(key, ()):
        _merge(merged, errors, mirror)
    return merged


def _merge(into: Struct, other: Struct, mirror: Mirror) -> None:
    parts = list(getattr(into, mirror.answer) or ())
    for entry in getattr(other, mirror.answer) or ():
        place = next((n for n, known in enumerate(parts) if _same(known, entry)), None)
        if place is None or mirror.inner is None:
            parts.append(entry)
        else:
            parts[place] = copied(parts[place])
            _merge(parts[place], entry, mirror.inner)
    setattr(into, mirror.answer, parts)


def _same(one: Struct, other: Struct) -> bool:
    """Whether two entries of an answer are of the same topic, group or transaction."""
    names = [name for name in (*_NAME_FIELDS, "topic_id", "producer_id") if name in type(one).fields]
    return all(getattr(one, name) == getattr(other, name) for name in names)


_T = TypeVar("_T", bound=Struct)


def copied(struct: _T) -> _T:
    copy = object.__new__(type(struct))
    for name in type(struct).fields:
        setattr(copy, name, getattr(struct, name))
    return copy


def error_codes(struct: Struct) -> Iterator[int]:
    """Every error code in an answer except NONE."""
    for name, wire_type in types_of(type(struct)).items():
        value = getattr(struct, name)
        if name in ERROR_FIELDS:
            if value:
                yield value
        elif isinstance(value, Struct):
            yield from error_codes(value)
        elif isinstance(value, list) and isinstance(wire_type, list) and isinstance(wire_type[0], StructType):
            for each in value:
                yield from error_codes(each)
