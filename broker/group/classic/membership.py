"""Joining, staying in and leaving a classic group: the rebalance protocol, as Kafka's coordinator plays it.

Members join; when all have joined, or the longest rebalance timeout has passed, a new generation begins, every join is
answered, and the leader learns who the members are. Members then sync; when the leader sends the assignment, it is
appended as a record, and every sync is answered with the member's part. Any change of members or subscriptions starts
this again.

Each method answers through its callbacks, immediately or later, and returns the records to append.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorRecord, CoordinatorResult
from barnabas.broker.coordinator.timers import Timers
from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.member import AnswerJoin, AnswerSync, Member
from barnabas.broker.group.classic.objections import (
    GroupSettings,
    objection_to_generation,
    objection_to_joining,
    objection_to_joining_any,
    objection_to_member,
    objection_to_sync,
)
from barnabas.broker.group.classic.records import group_metadata_record
from barnabas.broker.group.classic.responses import (
    assignments,
    because,
    identities_of,
    join_error,
    leave_answer,
    protocols_of,
    rebalance_timeout,
    refuse_waiting,
    sync_answer,
    sync_error,
)
from barnabas.broker.group.classic.states import GroupState
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.kind import AnyGroup
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest

log = structlog.get_logger()

NO_MEMBER: Final = ""
# How many characters of a client id or an instance id go into a member id.
_LONGEST_PREFIX: Final = 255
# A new member cannot send heartbeats before its join is answered, so its session timeout does not apply until then.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000


class Membership:
    """Decides for the groups of one coordinator partition."""

    def __init__(
        self,
        groups: dict[str, AnyGroup],
        settings: GroupSettings,
        timers: Timers,
        carry_out: Callable[[CoordinatorResult], None],
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        """`carry_out` is for decisions made by timers, which no client waits for."""
        self._groups = groups
        self._settings = settings
        self._timers = timers
        self._carry_out = carry_out
        self._now_ms = now_ms
        self._new_id = new_id
        self._adopting: dict[str, Group] = {}  # groups of another kind until a moment ago

    def _find(self, group_id: str) -> Group | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, Group) else None

    @property
    def _all(self) -> list[Group]:
        return [group for group in self._groups.values() if isinstance(group, Group)]

    # --- join ---

    def join(self, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin) -> CoordinatorResult:
        error = objection_to_joining_any(request, self._settings)
        found = self._groups.get(request.group_id)
        group = found if isinstance(found, Group) else None
        if not error and group is None and request.member_id == NO_MEMBER:
            # Even if it refuses this member: a group begins with the first attempt to join it. An empty one of another
            # kind makes room for it.
            replaced = () if found is None else found.tombstones()
            group = self._groups[request.group_id] = Group(request.group_id, self._now_ms())
            record = group_metadata_record(group, group.state_since_ms, {})
            self._join(group, request, client, answer)
            return CoordinatorResult([*replaced, record], key=group.group_id)
        if error or group is None:
            answer(join_error(error or ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
            return NOTHING_TO_DO
        return self._join(group, request, client, answer)

    def _join(
        self, group: Group, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin
    ) -> CoordinatorResult:
        error = objection_to_joining(group, request, self._settings)
        if error:
            answer(join_error(error, request.member_id))
            return NOTHING_TO_DO
        if request.member_id != NO_MEMBER:
            return self._join_again(group, request, client, answer)
        instance_id = request.group_instance_id
        if instance_id is not None and instance_id in group.static_members:
            return self._replace_static_member(group, request, client, answer)
        member_id = self._new_member_id(instance_id or client.client_id)
        if instance_id is None and client.version >= 4:
            # It gets an id first, so that a client that gives up and retries does not leave members behind.
            group.pending_members.add(member_id)
            self._timers.schedule(
                (group.group_id, member_id), request.session_timeout_ms, lambda: self._pending_expired(group, member_id)
            )
            answer(join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return NOTHING_TO_DO
        return self._add_member(group, member_id, request, client, answer)

    def _join_again(
        self, group: Group, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin
    ) -> CoordinatorResult:
        member_id = request.member_id
        if member_id in group.pending_members:
            self._timers.cancel((group.group_id, member_id))
            return self._add_member(group, member_id, request, client, answer)
        error = objection_to_member(group, member_id, request.group_instance_id)
        if error:
            answer(join_error(error, member_id))
            return NOTHING_TO_DO
        member = group.members[member_id]
        same = member.protocols == protocols_of(request)
        if group.is_in(GroupState.COMPLETING_REBALANCE) and same:
            # It may not have received the answer: its generation is still valid.
            answer(self._join_answer(group, member))
            return NOTHING_TO_DO
        if group.is_in(GroupState.STABLE) and same and group.leader_id != member_id:
            answer(self._join_answer(group, member))
            return NOTHING_TO_DO
        if group.is_in(GroupState.EMPTY):
            answer(join_error(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
            return NOTHING_TO_DO
        self._update(group, member, request, client, answer)
        group.story.note(self._now_ms(), member_id, "joins again")
        reason = "its leader joined again" if group.leader_id == member_id else "a member changed its subscription"
        return self._prepare_or_complete(group, f"{reason}: {member_id}{because(request.reason)}")

    def _add_member(
        self, group: Group, member_id: str, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin
    ) -> CoordinatorResult:
        member = Member(
            member_id,
            group_instance_id=request.group_instance_id,
            client_id=client.client_id,
            client_host=client.host,
            rebalance_timeout_ms=rebalance_timeout(request),
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=protocols_of(request),
        )
        member.is_new = True
        member.answer_join = answer
        if group.is_in(GroupState.PREPARING_REBALANCE) and group.previous_state is GroupState.EMPTY:
            group.new_member_added = True
        group.add(member)
        self._watch(group, member)
        group.story.note(self._now_ms(), member_id, "joins")
        log.info("member joined", group=group.group_id, member=member_id, host=client.host)
        return self._prepare_or_complete(group, f"a member joined: {member_id}{because(request.reason)}")

    def _replace_static_member(
        self, group: Group, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin
    ) -> CoordinatorResult:
        """A static member is back without its old id. If the old id still waits for an answer, it is fenced."""
        instance_id = request.group_instance_id or ""
        member_id = self._new_member_id(instance_id)
        old_member_id = group.static_members[instance_id]
        was_leader = group.leader_id == old_member_id
        member = group.replace_static(instance_id, member_id)
        self._timers.cancel((group.group_id, old_member_id))
        if member.answer_join is not None:
            member.answer_join(join_error(ErrorCode.FENCED_INSTANCE_ID, old_member_id))
        if member.answer_sync is not None:
            member.answer_sync(sync_error(ErrorCode.FENCED_INSTANCE_ID))
            member.answer_sync = None
        log.info("static member is back", group=group.group_id, member=member_id, replaces=old_member_id)
        before = group.protocol
        self._update(group, member, request, client, answer)
        if not group.is_in(GroupState.STABLE) or group.vote() != before:
            return self._prepare_or_complete(group, f"a static member is back: {member_id}")
        # Everything continues under the new id, once that is stored.
        member.answer_join = None
        self._watch(group, member)

        def done(error: ErrorCode) -> None:
            if error:
                answer(join_error(error, member_id))
            else:
                answer(self._static_join_answer(group, member, was_leader, old_member_id, client.version))

        record = group_metadata_record(group, group.state_since_ms, assignments(group))
        return CoordinatorResult([record], done, key=group.group_id)

    def _new_member_id(self, prefix: str) -> str:
        """The prefix may be as long as the longest string, and the id has to fit into a string too."""
        return f"{prefix[:_LONGEST_PREFIX]}-{self._new_id()}"

    def _static_join_answer(
        self, group: Group, member: Member, was_leader: bool, old_member_id: str, version: int
    ) -> JoinGroupResponse:
        response = self._join_answer(group, member)
        if was_leader and version >= 9:
            response.skip_assignment = True
        elif was_leader:
            # An older client that learns that it leads would assign again; it is told that its old id leads.
            response.leader = old_member_id
            response.members = []
        return response

    def _update(
        self, group: Group, member: Member, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin
    ) -> None:
        group.set_protocols(member, protocols_of(request))
        member.rebalance_timeout_ms = rebalance_timeout(request)
        member.session_timeout_ms = request.session_timeout_ms
        member.client_id = client.client_id
        member.client_host = client.host
        member.answer_join = answer

    # --- a rebalance ---

    def _prepare_or_complete(self, group: Group, reason: str) -> CoordinatorResult:
        if group.is_in(GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return self._prepare(group, reason)
        return self._complete_if_all_joined(group)

    def _prepare(self, group: Group, reason: str) -> CoordinatorResult:
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            self._answer_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._timers.cancel((group.group_id, "sync"))
        initial = group.is_in(GroupState.EMPTY)
        group.transition_to(GroupState.PREPARING_REBALANCE, self._now_ms())
        group.story.begin(group.state_since_ms, reason)
        log.info("rebalance begins", group=group.group_id, generation=group.generation, reason=reason)
        if initial:
            delay = self._settings.group_initial_rebalance_delay_ms
            self._delay_initial(group, delay, max(group.rebalance_timeout_ms - delay, 0))
            return NOTHING_TO_DO
        if group.all_have_joined:
            return self._complete(group)
        self._timers.schedule(
            (group.group_id, "join"), group.rebalance_timeout_ms, lambda: self._carry_out(self._complete(group))
        )
        return NOTHING_TO_DO

    def _delay_initial(self, group: Group, delay_ms: int, remaining_ms: int) -> None:
        """Wait for more members before the first generation, as long as some arrive."""

        def elapsed() -> None:
            if group.new_member_added and remaining_ms:
                group.new_member_added = False
                delay = min(self._settings.group_initial_rebalance_delay_ms, remaining_ms)
                self._delay_initial(group, delay, max(remaining_ms - delay, 0))
            else:
                self._carry_out(self._complete(group))

        self._timers.schedule((group.group_id, "join"), delay_ms, elapsed)

    def _complete_if_all_joined(self, group: Group) -> CoordinatorResult:
        """The initial delay always applies."""
        ready = group.is_in(GroupState.PREPARING_REBALANCE) and group.previous_state is not GroupState.EMPTY
        return self._complete(group) if ready and group.all_have_joined else NOTHING_TO_DO

    def _complete(self, group: Group) -> CoordinatorResult:
        """Begin the next generation with the members that have joined."""
        self._timers.cancel((group.group_id, "join"))
        if not group.is_in(GroupState.PREPARING_REBALANCE):
            return NOTHING_TO_DO
        for member in [m for m in group.members.values() if m.answer_join is None and not m.is_static]:
            self._drop(group, member.member_id, "it did not join again in time")
        if group.members and not group.elect_joined_leader():
            # Only static members are left, and none has rejoined: they have until their sessions end.
            self._timers.schedule(
                (group.group_id, "join"), group.rebalance_timeout_ms, lambda: self._carry_out(self._complete(group))
            )
            return NOTHING_TO_DO
        group.begin_generation(self._now_ms())
        group.story.all_joined(
            group.state_since_ms, group.generation, group.leader_id, group.protocol, group.members.values()
        )
        if not group.members:
            log.info("group is empty", group=group.group_id, generation=group.generation)
            return CoordinatorResult([group_metadata_record(group, group.state_since_ms, {})], key=group.group_id)
        log.info(
            "generation begins",
            group=group.group_id,
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader_id,
            members=list(group.members),
        )
        for member in group.members.values():
            self._answer_join(group, member)
        self._timers.schedule((group.group_id, "sync"), group.rebalance_timeout_ms, lambda: self._sync_expired(group))
        return NOTHING_TO_DO

    def _answer_join(self, group: Group, member: Member) -> None:
        member.is_new = False
        group.pending_sync_members.add(member.member_id)
        if member.answer_join is not None:
            answer, member.answer_join = member.answer_join, None
            answer(self._join_answer(group, member))
        self._watch(group, member)

    def _join_answer(self, group: Group, member: Member) -> JoinGroupResponse:
        is_leader = group.leader_id == member.member_id
        return JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=group.leader_id or "",
            member_id=member.member_id,
            members=group.member_list() if is_leader else [],
        )

    def _sync_expired(self, group: Group) -> None:
        """Remove members that have not synced in time."""
        if group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE) and group.pending_sync_members:
            for member_id in sorted(group.pending_sync_members):
                self._drop(group, member_id, "it did not sync in time")
            self._carry_out(self._prepare_or_complete(group, "members did not sync in time"))

    # --- sync ---

    def sync(self, request: SyncGroupRequest, answer: AnswerSync) -> CoordinatorResult:
        group = self._find(request.group_id)
        error = objection_to_sync(group, request)
        if error or group is None:
            answer(sync_error(error))
            return NOTHING_TO_DO
        member = group.members[request.member_id]
        group.pending_sync_members.discard(member.member_id)
        if group.is_in(GroupState.STABLE):
            self._watch(group, member)
            answer(sync_answer(group, member))
            return NOTHING_TO_DO
        member.answer_sync = answer
        group.story.note(self._now_ms(), member.member_id, "asks for its part")
        if group.leader_id != member.member_id:
            return NOTHING_TO_DO
        given = {given.member_id: given.assignment for given in request.assignments}
        assigned = {member_id: given.get(member_id, b"") for member_id in group.members}
        generation = group.generation

        def done(error: ErrorCode) -> None:
            if group.is_in(GroupState.COMPLETING_REBALANCE) and group.generation == generation:
                if error:
                    too_large = error == ErrorCode.MESSAGE_TOO_LARGE
                    self._answer_syncs(group, ErrorCode.UNKNOWN_SERVER_ERROR if too_large else error)
                    self._carry_out(self._prepare_or_complete(group, f"the assignment was not stored: {error.name}"))
                else:
                    group.transition_to(GroupState.STABLE, self._now_ms())
                    group.story.assigned(group.state_since_ms, group.members.values())
                    log.info("group is stable", group=group.group_id, generation=generation)
                    self._answer_syncs(group, ErrorCode.NONE)

        return CoordinatorResult([group_metadata_record(group, self._now_ms(), assigned)], done, key=group.group_id)

    def _answer_syncs(self, group: Group, error: ErrorCode) -> None:
        for member in group.members.values():
            if error:
                member.assignment = b""  # the previous generation's assignment is over, and there is no new one
            if member.answer_sync is not None:
                answer, member.answer_sync = member.answer_sync, None
                answer(sync_error(error) if error else sync_answer(group, member))
                self._watch(group, member)

    # --- staying ---

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self._find(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = objection_to_generation(group, request.member_id, request.group_instance_id, request.generation_id)
        if not error:
            group.heard_from(request.member_id, self._now_ms(), self._timers.elapsed_ms())
            if group.is_in(GroupState.PREPARING_REBALANCE):
                return ErrorCode.REBALANCE_IN_PROGRESS
        return error

    def _watch(self, group: Group, member: Member) -> None:
        """Start a member's session timeout. Its timer looks at when it was heard, instead of being moved."""
        member.heard_at_ms, member.heard_elapsed_ms = self._now_ms(), self._timers.elapsed_ms()
        timeout = NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms
        self._timers.schedule(
            (group.group_id, member.member_id), timeout, lambda: self._session_elapsed(group, member.member_id)
        )

    def watch_all(self) -> None:
        """Start every member's session timeout now, after the groups were loaded."""
        for group in self._all:
            for member in group.members.values():
                self._watch(group, member)

    def _session_elapsed(self, group: Group, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is None:
            return
        remaining = member.heard_elapsed_ms + member.session_timeout_ms - self._timers.elapsed_ms()
        if member.is_waiting and not member.is_new:
            self._watch(group, member)
        elif remaining > 0 and not member.is_new:
            self._timers.schedule(
                (group.group_id, member_id), remaining, lambda: self._session_elapsed(group, member_id)
            )
        else:
            reason = f"its session timed out after {member.session_timeout_ms / 1000:g} s without a heartbeat"
            self._drop(group, member_id, reason)
            self._carry_out(self._prepare_or_complete(group, f"a member is gone: {member_id}, {reason}"))

    def _pending_expired(self, group: Group, member_id: str) -> None:
        group.pending_members.discard(member_id)
        self._carry_out(self._complete_if_all_joined(group))

    # --- leaving ---

    def leave(self, request: LeaveGroupRequest, version: int) -> tuple[LeaveGroupResponse, CoordinatorResult]:
        if not request.group_id:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID), NOTHING_TO_DO
        identities = identities_of(request, version)
        group = self._find(request.group_id)
        if group is None:
            return leave_answer(identities, [ErrorCode.UNKNOWN_MEMBER_ID] * len(identities), version), NOTHING_TO_DO
        if group.is_in(GroupState.DEAD):
            return LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE), NOTHING_TO_DO
        errors = [self._leave(group, identity) for identity in identities]
        gone = [identity.member_id for identity, error in zip(identities, errors, strict=True) if not error]
        decision = NOTHING_TO_DO
        if gone and group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            decision = self._prepare(group, f"members left: {', '.join(gone)}")
        elif gone:
            decision = self._complete_if_all_joined(group)
        return leave_answer(identities, errors, version), decision

    def _leave(self, group: Group, identity: MemberIdentity) -> ErrorCode:
        member_id = identity.member_id
        if identity.group_instance_id is not None and member_id == NO_MEMBER:
            # By its instance id alone, as administrators remove static members.
            member_id = group.static_members.get(identity.group_instance_id, NO_MEMBER)
        if member_id in group.pending_members:
            group.pending_members.discard(member_id)
            self._timers.cancel((group.group_id, member_id))
            return ErrorCode.NONE
        error = objection_to_member(group, member_id, identity.group_instance_id)
        if not error:
            self._drop(group, member_id, f"it left{because(identity.reason)}")
        return error

    def _drop(self, group: Group, member_id: str, reason: str) -> None:
        member = group.members[member_id]
        group.story.note(self._now_ms(), member_id, reason)
        log.info("member is gone", group=group.group_id, member=member_id, reason=reason)
        self._timers.cancel((group.group_id, member_id))
        group.remove(member_id)
        if member.answer_join is not None:
            member.answer_join(join_error(ErrorCode.UNKNOWN_MEMBER_ID, NO_MEMBER))
        if member.answer_sync is not None:
            member.answer_sync(sync_error(ErrorCode.UNKNOWN_MEMBER_ID))

    # --- from one kind to another ---

    def adopt(self, group: Group, before: Sequence[CoordinatorRecord], rebalance: str | None) -> CoordinatorResult:
        """A group of another kind becomes this one, when its record is replayed. `before` removes its former records;
        with a reason, it rebalances."""
        self._adopting[group.group_id] = group
        record = group_metadata_record(group, self._now_ms(), assignments(group))

        def done(error: ErrorCode) -> None:
            self._adopting.pop(group.group_id, None)  # it is still there if this was not written
            if rebalance is not None and self._groups.get(group.group_id) is group and group.is_in(GroupState.STABLE):
                self._prepare(group, rebalance)  # nobody has joined yet, so nothing is decided

        return CoordinatorResult([*before, record], done, key=group.group_id)

    def adopted(self, group_id: str) -> None:
        """The record of a group has been replayed that is not there yet."""
        group = self._adopting.pop(group_id, None)
        if group is not None:
            self._groups[group_id] = group
            for member in group.members.values():
                self._watch(group, member)

    def forget(self, group: Group) -> None:
        """A group was deleted, or has become one of another kind: cancel its timers."""
        group.transition_to(GroupState.DEAD, self._now_ms())
        for key in ("join", "sync", *group.pending_members, *group.members):
            self._timers.cancel((group.group_id, key))

    def abandon(self) -> None:
        """All groups are gone: answer everyone who waits, so that clients look for the coordinator again."""
        for group in self._all:
            refuse_waiting(group, ErrorCode.NOT_COORDINATOR)
