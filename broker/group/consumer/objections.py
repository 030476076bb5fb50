"""Why a heartbeat is refused: Kafka's error for each reason, in Kafka's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.broker.group.consumer.member import AWAY_EPOCH, JOINING_EPOCH, LEAVING_EPOCH, ConsumerMember
from barnabas.broker.group.consumer.reconciliation import Owned
from barnabas.broker.group.refused import Refused
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_CLIENT_GIVES_ID_FROM: Final = 1  # in this version of the request


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """What can be wrong with a request, whatever group it is for."""
    epoch = request.member_epoch
    if (version >= _CLIENT_GIVES_ID_FROM or epoch > 0 or epoch == LEAVING_EPOCH) and not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        raise _invalid("InstanceId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId can't be empty.")
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("SubscribedTopicNames or SubscribedTopicRegex must be given when (re-)joining.")
    elif epoch == AWAY_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < AWAY_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported; these are: {', '.join(assignors)}.",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned) -> None:
    """A member may come with its previous epoch, if the answer that told it the next was lost."""
    if epoch in (JOINING_EPOCH, member.epoch):
        return
    is_late = epoch < member.epoch and epoch == member.previous_epoch and owned is not None and member.owns(owned)
    if not is_late:
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member has epoch {epoch}, and the coordinator knows it with {member.epoch}. "
            "It must abandon all its partitions and rejoin.",
        )


def check_static(member: ConsumerMember | None, member_id: str, instance_id: str) -> ConsumerMember:
    """The member that has this instance id, if it is this one."""
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise Refused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
