"""Joining, staying in and leaving a share group: each heartbeat takes a group one step further.

A heartbeat updates its member. If what members read has changed, or the topics have, or partitions have got their
state, the group's epoch is raised, and the target assignment is computed. The member gets what the target gives it at
once: partitions are shared, so nobody has to let go of them first. Partitions without a state are noted, and the caller
asks the share coordinator for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

import structlog

from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorRecord, CoordinatorResult
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.intervals import has_passed
from barnabas.broker.group.kind import AnyGroup
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.sessions import Sessions
from barnabas.broker.group.share.group import ShareGroup, subscribed
from barnabas.broker.group.share.member import JOINING_EPOCH, LEAVING_EPOCH, Assigned, ShareMember
from barnabas.broker.group.share.partitions import Partitions
from barnabas.broker.group.share.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    state_record,
)
from barnabas.broker.group.share.requests import assignment_of, check_epoch, check_request, updated_member
from barnabas.broker.group.share.settings import ShareGroupTimes, ShareSettings
from barnabas.broker.group.share.target import assign
from barnabas.broker.group.topics import Topics, ids_of, metadata_hash
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

log = structlog.get_logger()


class Wanted(NamedTuple):
    """Partitions that need a state, and the epoch of the group that asks."""

    group_id: str
    epoch: int
    partitions: Partitions


class Beat(NamedTuple):
    """What a heartbeat leads to. The answer counts once what was decided is committed, and then states are wanted."""

    response: ShareGroupHeartbeatResponse
    decision: CoordinatorResult
    wanted: Wanted | None = None


class ShareMembership:
    """Decides for the share groups of one coordinator partition."""

    def __init__(
        self,
        groups: Mapping[str, AnyGroup],
        settings: ShareSettings,
        times: ShareGroupTimes,
        topics: Topics,
        sessions: Sessions,
        carry_out: Callable[[CoordinatorResult], None],
        now_ms: Callable[[], int],
    ) -> None:
        """`carry_out` is for decisions made by timers, which no client waits for."""
        self._groups = groups
        self._settings = settings
        self._times = times
        self._topics = topics
        self._sessions = sessions
        self.carry_out = carry_out
        self._now_ms = now_ms

    def heartbeat(self, request: ShareGroupHeartbeatRequest, client: ClientInfo) -> Beat:
        """Raises Refused."""
        check_request(request)
        if request.member_epoch == LEAVING_EPOCH:
            return self._leave(request)
        is_joining = request.member_epoch == JOINING_EPOCH
        group = self.begin(request.group_id) if is_joining else self.existing(request.group_id)
        limit = self._settings.group_share_max_size
        if len(group.members) >= limit and request.member_id not in group.members:
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group may not have more than {limit} members.")
        member = group.members.get(request.member_id)
        if member is None and not is_joining:
            raise _unknown(request.member_id, group)
        member = member or ShareMember(request.member_id)
        check_epoch(member, request.member_epoch)
        return self._advance(group, member, updated_member(member, request, client), request)

    def begin(self, group_id: str) -> ShareGroup:
        if group_id in self._groups:
            return self.existing(group_id)
        log.info("share group begins", group=group_id)
        return ShareGroup(group_id)

    def existing(self, group_id: str) -> ShareGroup:
        """Raises Refused."""
        found = self._groups.get(group_id)
        if isinstance(found, ShareGroup):
            return found
        reason = "is not a share group" if found is not None else "not found"
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")

    def _advance(
        self, group: ShareGroup, member: ShareMember, updated: ShareMember, request: ShareGroupHeartbeatRequest
    ) -> Beat:
        records: list[CoordinatorRecord] = []
        group_id = group.group_id
        is_new = member.member_id not in group.members
        members = group.members
        if is_new or updated is not member:
            members = {**members, updated.member_id: updated}
            records.append(member_record(group_id, updated))
        changed = updated.topics != member.topics
        epoch = group.epoch
        bump = changed or (group.assignment_epoch >= epoch and group.has_unassigned)
        if bump or group.topics_changed:
            found = metadata_hash(subscribed(members), self._topics)
            if bump or found != group.metadata_hash:
                epoch += 1
                records.append(epoch_record(group_id, epoch, found))
        target_epoch, target = self._target(group, epoch, updated, members, records)
        moved = self._moved(group_id, updated, target_epoch, target, changed, records)
        wanted = self._wanted(group, epoch, subscribed(members), records)
        self._sessions.watch(group_id, moved.member_id, self._times.session_timeout_ms(group_id))
        response = ShareGroupHeartbeatResponse(
            member_id=moved.member_id,
            member_epoch=moved.epoch,
            heartbeat_interval_ms=self._times.heartbeat_interval_ms(group_id),
        )
        is_full = request.subscribed_topic_names is not None
        if request.member_epoch == JOINING_EPOCH or is_full or moved.assigned != member.assigned:
            response.assignment = assignment_of(moved)
        had_changed, group.topics_changed = group.topics_changed, False

        def done(error: ErrorCode) -> None:
            if error:
                group.topics_changed |= had_changed  # the epoch that this led to is not there

        return Beat(response, CoordinatorResult(records, done, key=group_id), wanted)

    def _target(
        self,
        group: ShareGroup,
        epoch: int,
        updated: ShareMember,
        members: Mapping[str, ShareMember],
        records: list[CoordinatorRecord],
    ) -> tuple[int, Assigned]:
        """The target assignment's epoch, and what it gives this member."""
        now_ms = self._now_ms()
        interval_ms = self._times.assignment_interval_ms(group.group_id)
        if epoch <= group.assignment_epoch or not has_passed(group.assignment_timestamp, interval_ms, now_ms):
            return group.assignment_epoch, group.target_of(updated.member_id)
        target, changes = assign(group, members, epoch, self._topics, now_ms)
        records += changes
        log.info("target assignment", group=group.group_id, epoch=epoch, members=len(members))
        return epoch, target[updated.member_id]

    def _moved(
        self,
        group_id: str,
        member: ShareMember,
        target_epoch: int,
        target: Assigned,
        subscription_changed: bool,
        records: list[CoordinatorRecord],
    ) -> ShareMember:
        """The member with what the target gives it of the topics that it reads."""
        if member.epoch == target_epoch and not subscription_changed:
            return member
        subscribed_ids = ids_of(member.topics, self._topics)
        given = {topic_id: indexes for topic_id, indexes in target.items() if topic_id in subscribed_ids}
        moved = replace(member, assigned=given)
        if member.epoch != target_epoch:
            moved = replace(moved, epoch=target_epoch, previous_epoch=member.epoch)
        if moved == member:
            return member
        records.append(current_record(group_id, moved))
        return moved

    # --- states ---

    def _wanted(
        self, group: ShareGroup, epoch: int, names: Collection[str], records: list[CoordinatorRecord]
    ) -> Wanted | None:
        """Partitions that have no state yet, and for which nobody has asked lately."""
        state = group.state_partitions
        retry_ms = self._settings.group_share_initialize_retry_interval_ms
        asked_lately = not has_passed(group.asked_at_ms, retry_ms, self._now_ms())
        missing = state.missing(names, self._topics, with_initializing=asked_lately)
        if not missing:
            return None
        records.append(state_record(group.group_id, state.begin(missing)))
        partitions = {topic_id: named.partitions for topic_id, named in missing.items()}
        return Wanted(group.group_id, epoch, partitions)

    # --- leaving ---

    def _leave(self, request: ShareGroupHeartbeatRequest) -> Beat:
        group = self.existing(request.group_id)
        member = group.members.get(request.member_id)
        if member is None:
            raise _unknown(request.member_id, group)
        response = ShareGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=LEAVING_EPOCH, heartbeat_interval_ms=0
        )
        return Beat(response, self._fence(group, member, "it left"))

    def _fence(self, group: ShareGroup, member: ShareMember, reason: str) -> CoordinatorResult:
        log.info("member is gone", group=group.group_id, member=member.member_id, reason=reason)
        left = {each: other for each, other in group.members.items() if each != member.member_id}
        records = member_tombstones(group.group_id, member.member_id)
        found = metadata_hash(subscribed(left), self._topics)
        records.append(epoch_record(group.group_id, group.epoch + 1, found))
        return CoordinatorResult(records, key=group.group_id)

    def session_ended(self, group_id: str, member_id: str, reason: str) -> CoordinatorResult:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ShareGroup) else None
        if not isinstance(group, ShareGroup) or member is None:
            return NOTHING_TO_DO
        return self._fence(group, member, reason)

    # --- time and topics ---

    def forget(self, group: ShareGroup) -> None:
        """A group is gone: cancel its timers."""
        for member_id in group.members:
            self._sessions.forget(group.group_id, member_id)

    def watch_all(self) -> None:
        """Start every member's session timeout now, after the groups were loaded; their topics may have changed."""
        for group in self._all():
            group.topics_changed = True
            for member_id in group.members:
                self._sessions.watch(group.group_id, member_id, self._times.session_timeout_ms(group.group_id))

    def topics_changed(self, names: Collection[str]) -> None:
        """Groups that read these topics are assigned again, if it makes a difference, with their next heartbeat."""
        for group in self._all():
            if any(name in group.subscribed_topics() for name in names):
                group.topics_changed = True

    def topics_deleted(self, topic_ids: Collection[bytes]) -> list[CoordinatorRecord]:
        """Deleted topics have no states."""
        records = []
        for group in self._all():
            left = group.state_partitions.without(topic_ids)
            if left != group.state_partitions:
                records.append(state_record(group.group_id, left))
        return records

    def _all(self) -> list[ShareGroup]:
        return [group for group in self._groups.values() if isinstance(group, ShareGroup)]


def _unknown(member_id: str, group: ShareGroup) -> Refused:
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
