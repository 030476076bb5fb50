"""The streams groups of a shard."""

from __future__ import annotations

from collections.abc import Collection

from barnabas.broker.group.kind import GroupKind
from barnabas.broker.group.of_kind import GroupsOfRecords, Surroundings
from barnabas.broker.group.streams import replay
from barnabas.broker.group.streams.group import StreamsGroup
from barnabas.broker.group.streams.membership import StreamsMembership


class StreamsGroups(GroupsOfRecords):
    kind = GroupKind.STREAMS
    group_type = StreamsGroup
    keys = replay.APPLY.keys()
    apply = replay.APPLY
    ends = replay.ENDS_GROUP
    ends_member = replay.ENDS_MEMBER

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self.membership = StreamsMembership(around)

    def loaded(self) -> None:
        self.membership.watch_all()

    def forget(self, group: StreamsGroup) -> None:
        self.membership.forget(group)

    def forget_member(self, group_id: str, member_id: str) -> None:
        self.membership.forget_member(group_id, member_id)

    def topics_changed(self, names: Collection[str], are_new: bool) -> None:
        self.membership.topics_changed(names)
