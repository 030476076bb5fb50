"""The subjects of a message: the topics and partitions, groups and transactional ids that it names.

Messages are declarations, so this is derived from the names of their fields, once per type, and works for every API.
The caller translates topic ids into names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.schema import STRING, ZERO_UUID, Struct, StructType, WireType, wire_types

_TOPIC_NAMES: Final = ("topic", "topic_name")
_PARTITIONS: Final = ("partition", "partition_index", "index", "partition_id")
_GROUPS: Final = ("group_id",)
_TRANSACTIONS: Final = ("transactional_id", "v3_and_below_transactional_id")
_TOPIC_RESOURCE: Final = 2
_GROUP_RESOURCE: Final = 32
_GROUP_KEY: Final = 0

TopicName = Callable[[bytes], str | None]


@dataclass
class Subjects:
    """A topic that is named without a partition has None for it."""

    partitions: list[tuple[str, int | None]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    transactional_ids: list[str] = field(default_factory=list)

    @property
    def topics(self) -> set[str]:
        return {topic for topic, _ in self.partitions}


class _Plan(NamedTuple):
    """The fields of one struct that name its subjects."""

    topic: str | None  # a topic's name
    topic_id: bool
    partition: str | None
    partitions: tuple[str, ...]  # lists of partition numbers
    topics: tuple[str, ...]  # lists of topic names
    group: str | None
    groups: tuple[str, ...]
    transaction: str | None
    transactions: tuple[str, ...]
    resource: bool  # resource_type and resource_name
    children: tuple[str, ...]  # lists of structs


@cache
def _plan(struct: StructType) -> _Plan:
    types = wire_types(struct)
    strings = [n for n, t in types.items() if t is STRING]
    string_lists = [n for n, t in types.items() if isinstance(t, list) and t[0] is STRING]
    number_lists = [n for n, t in types.items() if isinstance(t, list) and _is_int32(t[0])]
    is_topic = "Topic" in struct.__name__ and "Config" not in struct.__name__
    return _Plan(
        topic=next((n for n in strings if n in _TOPIC_NAMES or (n == "name" and is_topic)), None),
        topic_id="topic_id" in types,
        partition=next((n for n in _PARTITIONS if n in types and _is_int32(types[n])), None),
        partitions=tuple(n for n in number_lists if n in ("partitions", "partition_indexes")),
        topics=tuple(n for n in string_lists if n in ("topics", "topic_names")),
        group=next((n for n in strings if n in _GROUPS), None),
        groups=tuple(n for n in string_lists if n in ("groups", "groups_names", "group_ids")),
        transaction=next((n for n in strings if n in _TRANSACTIONS), None),
        transactions=tuple(n for n in string_lists if n == "transactional_ids"),
        resource="resource_type" in types and "resource_name" in types,
        children=tuple(n for n, t in types.items() if isinstance(t[0] if isinstance(t, list) else t, StructType)),
    )


def _is_int32(wire_type: Any) -> bool:
    return isinstance(wire_type, WireType) and wire_type.name == "int32"


def subjects_of(message: Struct, name_of: TopicName) -> Subjects:
    found = Subjects()
    if isinstance(message, FindCoordinatorRequest):
        keys = [*message.coordinator_keys, *([message.key] if message.key else [])]
        (found.groups if message.key_type == _GROUP_KEY else found.transactional_ids).extend(keys)
    else:
        _walk(message, None, found, name_of)
    return found


def topic_of(struct: Struct, name_of: TopicName) -> str | None:
    """The topic that this struct itself names."""
    plan = _plan(type(struct))
    name: str | None = getattr(struct, plan.topic) if plan.topic else None
    if not name and plan.topic_id and getattr(struct, "topic_id", ZERO_UUID) != ZERO_UUID:
        name = name_of(struct.topic_id)  # type: ignore[attr-defined]
    if not name and plan.resource and struct.resource_type == _TOPIC_RESOURCE:  # type: ignore[attr-defined]
        name = struct.resource_name  # type: ignore[attr-defined]
    return name or None


def partition_of(struct: Struct) -> int | None:
    """The partition that this struct itself names."""
    plan = _plan(type(struct))
    return getattr(struct, plan.partition) if plan.partition else None


def _walk(struct: Struct, topic: str | None, found: Subjects, name_of: TopicName) -> None:
    plan = _plan(type(struct))
    own = topic_of(struct, name_of)
    topic = own or topic
    before = len(found.partitions)
    if topic is not None:
        if plan.partition:
            found.partitions.append((topic, getattr(struct, plan.partition)))
        for name in plan.partitions:
            found.partitions.extend((topic, index) for index in getattr(struct, name) or ())
    for name in plan.topics:
        found.partitions.extend((each, None) for each in getattr(struct, name) or ())
    if plan.group and getattr(struct, plan.group):
        found.groups.append(getattr(struct, plan.group))
    for name in plan.groups:
        found.groups.extend(getattr(struct, name) or ())
    if plan.resource and struct.resource_type == _GROUP_RESOURCE:  # type: ignore[attr-defined]
        found.groups.append(struct.resource_name)  # type: ignore[attr-defined]
    if plan.transaction and getattr(struct, plan.transaction):
        found.transactional_ids.append(getattr(struct, plan.transaction))
    for name in plan.transactions:
        found.transactional_ids.extend(getattr(struct, name) or ())
    for child in _children(struct, plan):
        _walk(child, topic, found, name_of)
    if own is not None and len(found.partitions) == before:
        found.partitions.append((own, None))


def _children(struct: Struct, plan: _Plan) -> Iterator[Struct]:
    for name in plan.children:
        value = getattr(struct, name)
        if isinstance(value, list):
            yield from value
        elif value is not None:
            yield value


@cache
def names_topics(struct: StructType) -> bool:
    """Whether messages of this type can name topics at all."""
    plan = _plan(struct)
    if plan.topic or plan.topic_id or plan.topics or plan.resource:
        return True
    return any(names_topics(child) for child in _child_types(struct))


@cache
def names_partitions(struct: StructType) -> bool:
    """Whether messages of this type can name partitions of topics."""
    plan = _plan(struct)
    if (plan.partition or plan.partitions) and struct.__name__ != "RequestCursor":
        return True
    return any(names_partitions(child) for child in _child_types(struct))


@cache
def names_groups(struct: StructType) -> bool:
    plan = _plan(struct)
    if plan.group or plan.groups or plan.resource or struct is FindCoordinatorRequest:
        return True
    return any(names_groups(child) for child in _child_types(struct))


@cache
def names_transactions(struct: StructType) -> bool:
    plan = _plan(struct)
    if plan.transaction or plan.transactions or struct is FindCoordinatorRequest:
        return True
    return any(names_transactions(child) for child in _child_types(struct))


def _child_types(struct: StructType) -> Iterator[StructType]:
    for each in wire_types(struct).values():
        inner = each[0] if isinstance(each, list) else each
        if isinstance(inner, StructType):
            yield inner
