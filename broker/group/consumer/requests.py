"""Heartbeats of consumer groups, and the shapes of their answers."""

from __future__ import annotations

from dataclasses import replace

from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.consumer.member import ConsumerMember, MemberState
from barnabas.broker.group.consumer.reconciliation import Owned
from barnabas.broker.group.refused import Refused
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)


def heartbeat_error(error: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=error, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )


def updated_member(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: ClientInfo
) -> ConsumerMember:
    """The member with what its heartbeat says; what it leaves out is as it was."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout = request.rebalance_timeout_ms
    if (
        names is None
        and regex is None
        and timeout == -1
        and request.instance_id is None
        and request.rack_id is None
        and request.server_assignor is None
        and member.classic is None
        and member.client_id == client.client_id
        and member.client_host == client.host
    ):
        return member  # nearly all heartbeats leave out everything
    updated = replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.host,
        classic=None,
    )
    return member if updated == member else updated


def owned_partitions(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    owned: dict[bytes, frozenset[int]] = {}
    for each in request.topic_partitions:
        owned[each.topic_id] = owned.get(each.topic_id, frozenset()) | frozenset(each.partitions)
    return owned


def check_state(member: ConsumerMember, owned: Owned) -> None:
    if member.state is MemberState.UNKNOWN and (owned is None or any(owned.values())):
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH, "The member's state is unknown. It must abandon its partitions and rejoin."
        )


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """A member says everything after an error, and is then told everything."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None


def has_other_partitions(updated: ConsumerMember, member: ConsumerMember) -> bool:
    now, before = updated.assigned, member.assigned
    return now is not before and {t: set(now[t]) for t in now} != {t: set(before[t]) for t in before}


def assignment_of(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            ResponseTopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in member.assigned.items()
        ]
    )
