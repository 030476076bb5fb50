"""Heartbeats of share groups: what can be wrong with them, and the shapes of their answers."""

from __future__ import annotations

from dataclasses import replace

from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.share.member import JOINING_EPOCH, LEAVING_EPOCH, ShareMember
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)


def heartbeat_error(error: ErrorCode, message: str | None = None) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=error, error_message=message, member_epoch=0, heartbeat_interval_ms=0)


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """What can be wrong with a request, whatever group it is for; in Kafka's order."""
    if not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId can't be empty.")
    if request.member_epoch == JOINING_EPOCH:
        if not request.subscribed_topic_names:
            raise _invalid("SubscribedTopicNames must be given when (re-)joining.")
    elif request.member_epoch < LEAVING_EPOCH:
        raise _invalid("MemberEpoch is invalid.")


def check_epoch(member: ShareMember, epoch: int) -> None:
    """A member may come with its previous epoch, if the answer that told it the next was lost."""
    if epoch not in (JOINING_EPOCH, member.epoch) and (epoch > member.epoch or epoch != member.previous_epoch):
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member is in epoch {member.epoch}, and not in {epoch}. It must abandon its partitions and rejoin.",
        )


def updated_member(member: ShareMember, request: ShareGroupHeartbeatRequest, client: ClientInfo) -> ShareMember:
    """The member with what its heartbeat says; what it leaves out is as it was."""
    names = request.subscribed_topic_names
    updated = replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        topics=member.topics if names is None else frozenset(names),
        client_id=client.client_id,
        client_host=client.host,
    )
    return member if updated == member else updated


def assignment_of(member: ShareMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in member.assigned.items()
        ]
    )


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
