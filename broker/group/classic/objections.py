"""Why a group refuses a request: Kafka's error for each reason, or NONE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.broker.group.classic.responses import protocols_of
from barnabas.broker.group.classic.states import GroupState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from barnabas.broker.group.classic.group import Group


class GroupSettings(Protocol):
    @property
    def group_initial_rebalance_delay_ms(self) -> int: ...
    @property
    def group_max_size(self) -> int: ...
    @property
    def group_min_session_timeout_ms(self) -> int: ...
    @property
    def group_max_session_timeout_ms(self) -> int: ...


def objection_to_member(group: Group, member_id: str, instance_id: str | None) -> ErrorCode:
    if group.is_in(GroupState.DEAD):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if instance_id is not None:
        known = group.static_members.get(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def objection_to_generation(group: Group, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    error = objection_to_member(group, member_id, instance_id)
    if not error and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def objection_to_joining_any(request: JoinGroupRequest, settings: GroupSettings) -> ErrorCode:
    """Checks that do not depend on the group."""
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if len({protocol.name for protocol in request.protocols}) < len(request.protocols):
        # Kafka lets it in, and then counts this member twice among those that know the protocol: no group comes of it.
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    in_bounds = shortest <= request.session_timeout_ms <= longest
    return ErrorCode.NONE if in_bounds else ErrorCode.INVALID_SESSION_TIMEOUT


def objection_to_joining(group: Group, request: JoinGroupRequest, settings: GroupSettings) -> ErrorCode:
    if group.is_in(GroupState.DEAD):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not group.supports(request.protocol_type, protocols_of(request)):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.GROUP_MAX_SIZE_REACHED if _is_full(group, request, settings) else ErrorCode.NONE


def _is_full(group: Group, request: JoinGroupRequest, settings: GroupSettings) -> bool:
    """Existing members may stay, even after the limit was lowered."""
    limit = settings.group_max_size
    member = group.members.get(request.member_id)
    if group.is_in(GroupState.PREPARING_REBALANCE):
        # Kafka counts members that have joined: one that rejoins too late makes room for others.
        if member is not None and member.answer_join is not None:
            return False
        return sum(1 for m in group.members.values() if m.answer_join) >= limit
    if member is not None or request.group_instance_id in group.static_members:
        return False
    return len(group.members) >= limit


def objection_to_sync(group: Group | None, request: SyncGroupRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = objection_to_generation(group, request.member_id, request.group_instance_id, request.generation_id)
    if error:
        return error
    types, names = (None, group.protocol_type), (None, group.protocol)
    if request.protocol_type not in types or request.protocol_name not in names:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.is_in(GroupState.PREPARING_REBALANCE) else ErrorCode.NONE


def objection_to_commit(group: Group, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    """Why a group's offsets may not be committed by this client.

    Without a member it is an administrator or a consumer that assigns its own partitions: it may commit as
    long as the group has no members.
    """
    if group.is_in(GroupState.DEAD):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation < 0 and group.is_in(GroupState.EMPTY):
        return ErrorCode.NONE
    if generation >= 0 or member_id or instance_id is not None:
        error = objection_to_generation(group, member_id, instance_id, generation)
    else:
        error = objection_to_member(group, member_id, instance_id)
    if error:
        return error
    return ErrorCode.REBALANCE_IN_PROGRESS if group.is_in(GroupState.COMPLETING_REBALANCE) else ErrorCode.NONE


def objection_to_transactional_commit(
    group: Group, member_id: str, instance_id: str | None, generation: int
) -> ErrorCode:
    """Producers that do not name a member are accepted: older ones cannot."""
    if group.is_in(GroupState.DEAD):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation < 0 and group.is_in(GroupState.EMPTY):
        return ErrorCode.NONE
    if generation >= 0 or member_id or instance_id is not None:
        return objection_to_generation(group, member_id, instance_id, generation)
    return ErrorCode.NONE
