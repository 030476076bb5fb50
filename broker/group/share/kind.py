"""The share groups of a shard."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

from barnabas.broker.background import Background
from barnabas.broker.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.broker.coordinator.timers import DecidingTimers
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.kind import GroupKind
from barnabas.broker.group.of_kind import GroupsOfRecords, Surroundings
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.sessions import Sessions
from barnabas.broker.group.share import replay
from barnabas.broker.group.share.group import ShareGroup
from barnabas.broker.group.share.membership import ShareMembership
from barnabas.broker.group.share.offsets import ShareOffsets
from barnabas.broker.group.share.partitions import NONE
from barnabas.broker.group.share.records import state_record
from barnabas.broker.group.share.requests import heartbeat_error
from barnabas.broker.group.share.settings import ShareGroupTimes
from barnabas.broker.group.share.states import States, first_error
from barnabas.broker.share.persister import ShareState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from barnabas.protocol.share_group_records import ShareGroupStatePartitionMetadataKey

AnswerBeat = Callable[[ShareGroupHeartbeatResponse], None]


class ShareGroups(GroupsOfRecords):
    kind = GroupKind.SHARE
    group_type = ShareGroup
    keys = replay.APPLY.keys()
    apply = replay.APPLY
    ends = replay.ENDS_GROUP
    ends_member = replay.ENDS_MEMBER

    def __init__(self, around: Surroundings, share_state: ShareState, background: Background) -> None:
        super().__init__(around)
        times = ShareGroupTimes(around.settings, around.set_for_group)
        timers = DecidingTimers(around.timers, around.carry_out)
        self.sessions = Sessions(timers, around.now_ms, lambda *who: self.membership.session_ended(*who))
        self.membership = ShareMembership(
            around.groups,
            around.settings,
            times,
            around.topics,
            self.sessions,
            around.carry_out,
            around.now_ms,
        )
        self._topics = around.topics
        self._states = States(around.groups, share_state, background, around.topics, around.carry_out)
        self.offsets = ShareOffsets(self.membership, self._states, around.topics)
        self._now_ms = around.now_ms

    def replay(self, key: Any, value: Any) -> None:
        super().replay(key, value)
        if isinstance(key, ShareGroupStatePartitionMetadataKey) and value is not None:
            cast(ShareGroup, self.groups[key.group_id]).asked_at_ms = self._now_ms()

    def loaded(self) -> None:
        self.membership.watch_all()

    def forget(self, group: ShareGroup) -> None:
        self.membership.forget(group)

    def forget_member(self, group_id: str, member_id: str) -> None:
        self.sessions.forget(group_id, member_id)

    def topics_changed(self, names: Collection[str], are_new: bool) -> None:
        self.membership.topics_changed(names)

    def topics_deleted(self, topic_ids: Collection[bytes]) -> Sequence[CoordinatorRecord]:
        return self.membership.topics_deleted(topic_ids)

    def heartbeat_of(
        self, request: ShareGroupHeartbeatRequest, client: ClientInfo, answer: AnswerBeat
    ) -> CoordinatorResult:
        try:
            response, decision, wanted = self.membership.heartbeat(request, client)
        except Refused as refused:
            error, message = refused.error, str(refused)
            return CoordinatorResult(done=lambda failure: answer(heartbeat_error(failure or error, message)))

        def done(error: ErrorCode) -> None:
            decision.done(error)
            answer(heartbeat_error(error) if error else response)
            if wanted is not None and not error:
                # Nobody waits for it: members get the partitions with a later heartbeat.
                starts = {id: dict.fromkeys(indexes, -1) for id, indexes in wanted.partitions.items()}
                self._states.initialize(wanted.group_id, wanted.epoch, starts)

        return decision._replace(done=done)

    def prepare_deletion(self, group: ShareGroup, go_on: Callable[[ErrorCode], None]) -> CoordinatorResult | None:
        """The states of its partitions go first."""
        state = group.state_partitions
        if state is NONE:
            return None
        partitions = state.all_partitions(self._topics)

        def noted(error: ErrorCode) -> None:
            if error or not partitions:
                go_on(error)
            else:
                self._states.delete(group.group_id, partitions, lambda errors: go_on(first_error(errors)))

        record = state_record(group.group_id, NONE.begin_deletion(partitions, self._topics))
        return CoordinatorResult([record], noted, key=group.group_id)
