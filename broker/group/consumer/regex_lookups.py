"""Looks up the patterns of consumer groups, and notes which topics match.

All patterns of a group are looked up together, so that new topics cause one rebalance. That happens after the heartbeat
that asks for it is answered, some topics at a time: others are served in between. Later heartbeats see the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.broker.coordinator.result import CoordinatorResult
from barnabas.broker.coordinator.timers import Timers
from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.group.consumer.member import ConsumerMember
from barnabas.broker.group.consumer.records import epoch_record
from barnabas.broker.group.consumer.regexes import (
    LookUp,
    MayDescribe,
    is_due,
    look_up,
    resolved_records,
    wanted_regexes,
)
from barnabas.broker.group.consumer.story import Stories
from barnabas.broker.group.kind import AnyGroup
from barnabas.broker.group.topics import Topics, metadata_hash


class RegexLookups:
    """The look-ups of one coordinator partition."""

    def __init__(
        self,
        groups: Mapping[str, AnyGroup],
        topics: Topics,
        timers: Timers,
        carry_out: Callable[[CoordinatorResult], None],
        now_ms: Callable[[], int],
        stories: Stories,
    ) -> None:
        self._groups = groups
        self._topics = topics
        self._timers = timers
        self._carry_out = carry_out
        self._now_ms = now_ms
        self._stories = stories
        self._under_way: set[str] = set()  # groups whose patterns are being looked up, or are about to be
        # When a topic was last created: as a version of the topics, it goes on growing after a restart.
        self._topics_version = now_ms()

    def topics_created(self) -> None:
        self._topics_version = max(self._now_ms(), self._topics_version + 1)

    def begin_if_due(
        self,
        group: ConsumerGroup,
        old: ConsumerMember,
        new: ConsumerMember,
        may_describe: MayDescribe,
        refresh_interval_ms: int,
    ) -> None:
        """With the heartbeat that makes `new` out of `old`."""
        wanted = wanted_regexes(group, old, new) if old.regex or new.regex or group.subscribed_regexes else []
        group_id, version = group.group_id, self._topics_version
        if group_id in self._under_way or not is_due(group, wanted, version, self._now_ms(), refresh_interval_ms):
            return
        self._go_on_later(group_id, look_up(wanted, self._topics, may_describe), version)

    def _go_on_later(self, group_id: str, steps: LookUp, version: int) -> None:
        self._under_way.add(group_id)
        self._timers.schedule((group_id, "regex", ""), 0, lambda: self._go_on(group_id, steps, version))

    def _go_on(self, group_id: str, steps: LookUp, version: int) -> None:
        self._under_way.discard(group_id)
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return
        try:
            next(steps)
        except StopIteration as end:
            self._looked_up(group, end.value, version)
        else:
            self._go_on_later(group_id, steps, version)

    def _looked_up(self, group: ConsumerGroup, found: Mapping[str, frozenset[str]], version: int) -> None:
        records, resolved = resolved_records(group, found, version, self._now_ms())
        names = {name for member in group.members.values() for name in member.topics}
        names.update(name for regex in resolved.values() for name in regex.topics)
        metadata = metadata_hash(names, self._topics)
        matches = {regex: known.topics for regex, known in group.regexes.items()}
        if metadata != group.metadata_hash or any(
            known.topics != matches.get(regex, frozenset()) for regex, known in resolved.items()
        ):
            records.append(epoch_record(group.group_id, group.epoch + 1, metadata))
            reason = "a pattern matches other topics"
            self._stories.begin(self._now_ms(), group, group.epoch + 1, (), reason)
        self._carry_out(CoordinatorResult(records, key=group.group_id))
