"""Where access rules are in the registry, and what their nodes contain: as Kafka 3.9 stores them in ZooKeeper.

/kafka-acl/Topic/NAME                         {"version": 1, "acls": [{"principal": …, "permissionType": "Allow",
                                              "operation": "Read", "host": "*"}]}
/kafka-acl-extended/prefixed/Topic/PREFIX     the same
/kafka-acl-changes/acl_changes_SEQUENCE             TOPIC:NAME: these rules were changed
/kafka-acl-extended-changes/acl_changes_SEQUENCE    {"version": 1, "resourceType": "TOPIC", "name": …, …}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from barnabas.broker.controller.znodes import MalformedNode
from barnabas.broker.registry.registry import Node
from barnabas.broker.registry.tree_operations import Create
from barnabas.broker.security.acls import Entry, Pattern
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType, pascal_case

LITERAL: Final = "/kafka-acl"
EXTENDED: Final = "/kafka-acl-extended"
PREFIXED: Final = f"{EXTENDED}/prefixed"
LITERAL_CHANGES: Final = "/kafka-acl-changes"
EXTENDED_CHANGES: Final = "/kafka-acl-extended-changes"
_CHANGE: Final = "acl_changes_"

_TYPES: Final = {pascal_case(each): each for each in ResourceType if each > ResourceType.ANY}
_OPERATIONS: Final = {pascal_case(each): each for each in AclOperation if each > AclOperation.ANY}
_PERMISSIONS: Final = {pascal_case(each): each for each in (PermissionType.DENY, PermissionType.ALLOW)}

MIRRORED: Final = (LITERAL, EXTENDED, LITERAL_CHANGES, EXTENDED_CHANGES)
SKELETON: Final = (
    LITERAL,
    *(f"{LITERAL}/{name}" for name in _TYPES),
    *(EXTENDED, PREFIXED),
    *(f"{PREFIXED}/{name}" for name in _TYPES),
    *(LITERAL_CHANGES, EXTENDED_CHANGES),
)
"""The parent nodes without data, from the top."""


def path_of(pattern: Pattern) -> str:
    root = PREFIXED if pattern.pattern_type == PatternType.PREFIXED else LITERAL
    return f"{root}/{pascal_case(pattern.resource_type)}/{pattern.name}"


def pattern_at(path: str) -> Pattern | None:
    """The pattern whose rules are at a path; None for parent nodes and for what is not known here."""
    for root, pattern_type in ((PREFIXED, PatternType.PREFIXED), (LITERAL, PatternType.LITERAL)):
        if path.startswith(f"{root}/"):
            type_name, slash, name = path.removeprefix(f"{root}/").partition("/")
            if slash and type_name in _TYPES:
                return Pattern(_TYPES[type_name], name, pattern_type)
    return None


def announcement(pattern: Pattern) -> Create:
    """What tells other brokers that a pattern's rules have changed."""
    resource_type = pattern.resource_type.name
    if pattern.pattern_type == PatternType.LITERAL:
        return Create(f"{LITERAL_CHANGES}/{_CHANGE}", f"{resource_type}:{pattern.name}".encode(), sequential=True)
    event = {
        "version": 1,
        "resourceType": resource_type,
        "name": pattern.name,
        "patternType": pattern.pattern_type.name,
    }
    return Create(f"{EXTENDED_CHANGES}/{_CHANGE}", _encode(event), sequential=True)


def write_entries(entries: Iterable[Entry]) -> bytes:
    return _encode(
        {
            "version": 1,
            "acls": [
                {
                    "principal": entry.principal,
                    "permissionType": pascal_case(entry.permission),
                    "operation": pascal_case(entry.operation),
                    "host": entry.host,
                }
                for entry in sorted(entries)
            ],
        }
    )


def read_entries(path: str, node: Node) -> frozenset[Entry]:
    if not node.data:  # a parent
        return frozenset()
    try:
        fields = json.loads(node.data)
        return frozenset(
            Entry(
                str(acl["principal"]),
                str(acl["host"]),
                _OPERATIONS[acl["operation"]],
                _PERMISSIONS[acl["permissionType"]],
            )
            for acl in fields["acls"]
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MalformedNode(f"{path}: {error!r}") from error


def _encode(fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
