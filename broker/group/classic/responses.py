"""Requests about membership, and the shapes of their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.group.classic.member import Member
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.group.classic.group import Group


def protocols_of(request: JoinGroupRequest) -> list[tuple[str, bytes]]:
    return [(protocol.name, protocol.metadata) for protocol in request.protocols]


def rebalance_timeout(request: JoinGroupRequest) -> int:
    """Version 0 has none of its own."""
    return request.session_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms


def assignments(group: Group) -> Mapping[str, bytes]:
    return {member.member_id: member.assignment for member in group.members.values()}


def because(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def join_error(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, protocol_name=None, leader="", member_id=member_id, members=[])


def sync_error(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error, assignment=b"")


def sync_answer(group: Group, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )


def refuse_waiting(group: Group, error: ErrorCode) -> None:
    """Answer everyone who waits in a group."""
    for member in group.members.values():
        if member.answer_join is not None:
            answer_join, member.answer_join = member.answer_join, None
            answer_join(join_error(error, member.member_id))
        if member.answer_sync is not None:
            answer_sync, member.answer_sync = member.answer_sync, None
            answer_sync(sync_error(error))


def identities_of(request: LeaveGroupRequest, version: int) -> Sequence[MemberIdentity]:
    """Who leaves. Before version 3 it is one member."""
    return [MemberIdentity(member_id=request.member_id)] if version < 3 else request.members


def leave_answer(identities: Sequence[MemberIdentity], errors: Sequence[ErrorCode], version: int) -> LeaveGroupResponse:
    if version < 3:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error)
            for each, error in zip(identities, errors, strict=True)
        ]
    )
