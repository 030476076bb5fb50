"""Patterns that members subscribe to: the broker looks up the topics that match, and looks again now and then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from enum import Enum
from typing import Final

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.consumer.group import ConsumerGroup, ResolvedRegex
from barnabas.broker.group.consumer.member import ConsumerMember
from barnabas.broker.group.consumer.records import regex_record, regex_tombstone
from barnabas.broker.group.intervals import has_passed
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.topics import Topics
from barnabas.broker.patterns import InvalidPattern, matcher
from barnabas.protocol.errors import ErrorCode

# Whether the client that subscribes to a pattern may see a topic.
MayDescribe = Callable[[str], bool]
# Ends with the topics that match each pattern.
LookUp = Generator[None, None, dict[str, frozenset[str]]]

_SHORTEST_INTERVAL_MS: Final = 10_000
# A name takes about a microsecond, and with the worst patterns a hundred.
_NAMES_PER_STEP: Final = 100


class RegexChange(Enum):
    """What a heartbeat changes about its member's pattern."""

    NONE = "none"
    UPDATED = "updated"
    UPDATED_AND_RESOLVED = "updated and resolved"
    """The topics that it matches are known already, or there is no pattern any more."""


def changed_regex(
    group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember, records: list[CoordinatorRecord]
) -> RegexChange:
    """Note a change of a member's pattern. Raises Refused if the new one is not a regular expression."""
    if old.regex == new.regex:
        return RegexChange.NONE
    if old.regex and group.members_with(old.regex) == 1:
        records.append(regex_tombstone(group.group_id, old.regex))
    if not new.regex:
        return RegexChange.UPDATED_AND_RESOLVED
    if group.members_with(new.regex) == 0:
        try:
            matcher(new.regex)
        except InvalidPattern as error:
            raise Refused(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"SubscribedTopicRegex `{new.regex}` is not a valid regular expression: {error}.",
            ) from None
        return RegexChange.UPDATED
    return RegexChange.UPDATED_AND_RESOLVED if new.regex in group.regexes else RegexChange.UPDATED


def wanted_regexes(group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> list[str]:
    """The patterns of the group after a member's change."""
    wanted = dict.fromkeys(group.subscribed_regexes)
    if old.regex and old.regex != new.regex and group.members_with(old.regex) == 1:
        wanted.pop(old.regex, None)
    if new.regex:
        wanted[new.regex] = None
    return list(wanted)


def is_due(group: ConsumerGroup, wanted: Collection[str], topics_version: int, now_ms: int, interval_ms: int) -> bool:
    """Whether to look up the patterns now."""
    if not wanted or not has_passed(group.resolved_at_ms, _SHORTEST_INTERVAL_MS + 1, now_ms):
        return False
    return (
        len(wanted) != len(group.regexes)
        or group.resolved_version < topics_version
        or has_passed(group.resolved_at_ms, interval_ms + 1, now_ms)
    )


def look_up(regexes: Collection[str], topics: Topics, may_describe: MayDescribe) -> LookUp:
    """Find the topics that patterns match, as far as the client may see them, some names per step. Internal topics are
    among them, as in Kafka."""
    names = list(topics.topics)
    found = {}
    left = _NAMES_PER_STEP
    for regex in regexes:
        matches = matcher(regex)
        matching = []
        for name in names:
            if matches(name) and may_describe(name):
                matching.append(name)
            left -= 1
            if not left:
                yield
                left = _NAMES_PER_STEP
        found[regex] = frozenset(matching)
    return found


def resolved_records(
    group: ConsumerGroup, found: Mapping[str, frozenset[str]], version: int, now_ms: int
) -> tuple[list[CoordinatorRecord], dict[str, ResolvedRegex]]:
    """What was found for patterns, as far as members still have them: records, and the patterns of the group then."""
    resolved = dict(group.regexes)
    records = []
    for regex, topics in found.items():
        if group.members_with(regex):
            resolved[regex] = ResolvedRegex(topics, version, now_ms)
            records.append(regex_record(group.group_id, regex, topics, version, now_ms))
    return records, resolved
