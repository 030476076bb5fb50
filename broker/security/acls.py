"""Access rules, and what follows from them. Pure: whoever stores the rules passes them in.

A rule (an ACL) allows or denies a principal an operation, from a host, on the resources whose names match a pattern.
Denials win. If no rule matches, nothing is allowed, except that `allow.everyone.if.no.acl.found` allows everything on
resources that no rule applies to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.protocol.acls import WILDCARD, AclOperation, PatternType, PermissionType, ResourceType

ANY_USER: Final = "User:*"

# What a permission to do something else also allows. Denials are literal.
_IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}


class Pattern(NamedTuple):
    """The resources that rules apply to: one by its name, all of a type ("*"), or those with a prefix."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


class Entry(NamedTuple):
    """What a rule says about its resources."""

    principal: str
    host: str
    operation: AclOperation
    permission: PermissionType


class Acl(NamedTuple):
    pattern: Pattern
    entry: Entry


class AclFilter(NamedTuple):
    """Chooses rules. ANY and None choose all."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: PermissionType = PermissionType.ANY

    def matches(self, acl: Acl) -> bool:
        entry = acl.entry
        return (
            self._matches_pattern(acl.pattern)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (PermissionType.ANY, entry.permission)
        )

    def _matches_pattern(self, pattern: Pattern) -> bool:
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type == PatternType.MATCH:  # all rules that apply to the resource of this name
            if pattern.pattern_type == PatternType.PREFIXED:
                return self.name.startswith(pattern.name)
            return pattern.name in (self.name, WILDCARD)
        return self.name == pattern.name


class _OfType:
    """The rules about resources of one type."""

    __slots__ = ("_lengths", "literal", "prefix_lengths", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, frozenset[Entry]] = {}
        self.prefixed: dict[str, frozenset[Entry]] = {}
        self._lengths: Counter[int] = Counter()
        self.prefix_lengths: list[int] = []

    def put(self, pattern: Pattern, entries: frozenset[Entry]) -> None:
        is_prefix = pattern.pattern_type == PatternType.PREFIXED
        by_name = self.prefixed if is_prefix else self.literal
        was_there = pattern.name in by_name
        if entries:
            by_name[pattern.name] = entries
        elif was_there:
            del by_name[pattern.name]
        if is_prefix and was_there != bool(entries):
            self._lengths[len(pattern.name)] += 1 if entries else -1
            self.prefix_lengths = sorted(length for length, count in self._lengths.items() if count)

    def about(self, name: str) -> Iterator[frozenset[Entry]]:
        """The rules about a resource. Prefixes of a name are looked up, one for each length that any prefix has."""
        for literal in {name, WILDCARD}:
            if literal in self.literal:
                yield self.literal[literal]
        for length in self.prefix_lengths:
            if length > len(name):
                break
            entries = self.prefixed.get(name[:length])
            if entries is not None:
                yield entries


class Acls:
    """All rules, found by the resources that they apply to."""

    def __init__(self) -> None:
        self._patterns: dict[Pattern, frozenset[Entry]] = {}
        self._of_type = {resource_type: _OfType() for resource_type in ResourceType}

    def __iter__(self) -> Iterator[Acl]:
        for pattern, entries in self._patterns.items():
            for entry in entries:
                yield Acl(pattern, entry)

    def __len__(self) -> int:
        return sum(map(len, self._patterns.values()))

    def entries(self, pattern: Pattern) -> frozenset[Entry]:
        return self._patterns.get(pattern, frozenset())

    def put(self, pattern: Pattern, entries: Iterable[Entry]) -> None:
        """Replace the rules of a pattern."""
        entries = frozenset(entries)
        if entries:
            self._patterns[pattern] = entries
        else:
            self._patterns.pop(pattern, None)
        self._of_type[pattern.resource_type].put(pattern, entries)

    def replace(self, patterns: Mapping[Pattern, Iterable[Entry]]) -> None:
        """Replace all rules."""
        for pattern in [each for each in self._patterns if each not in patterns]:
            self.put(pattern, ())
        for pattern, entries in patterns.items():
            self.put(pattern, entries)

    def authorize(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool | None:
        """Whether the rules allow something. None: no rule applies to this resource."""
        granting = (operation, AclOperation.ALL, *_IMPLIED_BY.get(operation, ()))
        found, allowed = False, False
        for entries in self._of_type[resource_type].about(name):
            found = True
            for entry in entries:
                if entry.principal not in (principal, ANY_USER) or entry.host not in (host, WILDCARD):
                    continue
                if entry.permission == PermissionType.ALLOW:
                    allowed = allowed or entry.operation in granting
                elif entry.operation in (operation, AclOperation.ALL):
                    return False
        return allowed if found else None

    def authorize_some(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether the rules allow something to at least one resource of a type, whatever its name.

        As in Kafka, only rules about this operation or about all operations are considered. A denial takes away what is
        allowed by the same name, or by names that begin with its prefix.
        """
        allowed: list[Pattern] = []
        denied: set[Pattern] = set()
        for pattern, entries in self._patterns.items():
            if pattern.resource_type != resource_type:
                continue
            for entry in entries:
                if (
                    entry.principal in (principal, ANY_USER)
                    and entry.host in (host, WILDCARD)
                    and entry.operation in (operation, AclOperation.ALL)
                ):
                    if entry.permission == PermissionType.ALLOW:
                        allowed.append(pattern)
                    else:
                        denied.add(pattern)
        everything = Pattern(resource_type, WILDCARD)
        if everything in denied:
            return False
        prefixes = tuple(each.name for each in denied if each.pattern_type == PatternType.PREFIXED)
        return any(
            pattern == everything
            or not (
                pattern.name.startswith(prefixes) or (pattern.pattern_type == PatternType.LITERAL and pattern in denied)
            )
            for pattern in allowed
        )
