"""Which quotas a filter selects. It asks for each part of an entity by name, for the default, or for any."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from barnabas.broker.quotas.entities import DEFAULT, IP, KINDS, Default, Entity, Name


class Match(IntEnum):
    EXACT = 0
    DEFAULT = 1
    ANY = 2


class InvalidFilter(Exception):
    """Why a filter cannot be used."""


class UnknownEntityType(Exception):
    """A filter names something that has no quotas."""


class Filter(NamedTuple):
    exactly: dict[str, Name]
    any_of: frozenset[str]
    is_strict: bool  # whether entities with other parts are left out

    def selects(self, entity: Entity) -> bool:
        parts = entity.parts
        if self.is_strict and len(parts) != len(self.exactly) + len(self.any_of):
            return False
        return self.any_of <= parts.keys() and all(parts.get(kind) == name for kind, name in self.exactly.items())


def filter_of(components: Iterable[tuple[str, int, str | None]], is_strict: bool) -> Filter:
    exactly: dict[str, Name] = {}
    any_of: set[str] = set()
    for kind, match, name in components:
        if not kind:
            raise InvalidFilter("Invalid empty entity type.")
        if kind in exactly or kind in any_of:
            raise InvalidFilter(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in KINDS:
            raise UnknownEntityType(f"Unsupported entity type {kind}")
        found = _name(match, name)
        if found is None:
            any_of.add(kind)
        else:
            exactly[kind] = found
    kinds = exactly.keys() | any_of
    if IP in kinds and len(kinds) > 1:
        raise InvalidFilter("Invalid entity filter component combination, ip cannot be used with user or client-id.")
    return Filter(exactly, frozenset(any_of), is_strict)


def _name(match: int, name: str | None) -> Name | None:
    """The name that is looked for, or None for any."""
    if match == Match.EXACT:
        if name is None:
            raise InvalidFilter("Request specified MATCH_TYPE_EXACT, but set the match string to null.")
        return name
    if match not in (Match.DEFAULT, Match.ANY):
        raise InvalidFilter(f"Unknown match type {match}")
    if name is not None:
        raise InvalidFilter(f"Request specified match type {match}, but also specified a match string.")
    return DEFAULT if match == Match.DEFAULT else None


def shown(name: Name) -> str | None:
    """A name as answers have it."""
    return None if isinstance(name, Default) else name
