"""Online migration: a classic group becomes a consumer group while it has members, and the reverse.

Members move one by one, as their clients are restarted with another `group.protocol`. The first of the consumer
protocol makes a classic group a consumer group, in which the others go on as members of the classic protocol. When the
last of the consumer protocol is gone, the rest is a classic group again.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.member import Member
from barnabas.broker.group.classic.states import GroupState
from barnabas.broker.group.consumer.group import CONSUMER, ConsumerGroup
from barnabas.broker.group.consumer.member import Assigned, ClassicProtocols, ConsumerMember
from barnabas.broker.group.consumer.reconciliation import Target
from barnabas.broker.group.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from barnabas.broker.group.consumer.settings import ConsumerSettings, may_upgrade
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.topics import Topics, metadata_hash
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_with_version,
    with_version,
)
from barnabas.protocol.errors import ErrorCode, ProtocolError


def check_upgrade(group: Group, settings: ConsumerSettings) -> None:
    """Raises Refused if a group may not become a consumer group now."""
    if not may_upgrade(settings):
        reason = "group.consumer.migration.policy does not allow it"
    elif group.protocol_type != CONSUMER:
        reason = "its members are not consumers"
    elif len(group.members) > settings.group_consumer_max_size:
        reason = "it has too many members"
    else:
        return
    raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} cannot become a consumer group: {reason}.")


def upgraded(group: Group, topics: Topics) -> list[CoordinatorRecord]:
    """The records of a consumer group with the members of a classic one, which keep what they have."""
    try:
        members = [_consumer_member(group, member, topics) for member in group.members.values()]
    except ProtocolError as error:
        raise Refused(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} cannot become a consumer group: {error}."
        ) from None
    group_id = group.group_id
    names = {name for member in members for name in member.topics}
    return [
        *(member_record(group_id, member) for member in members),
        epoch_record(group_id, group.generation, metadata_hash(names, topics)),
        *(target_record(group_id, member.member_id, _target(member)) for member in members),
        target_epoch_record(group_id, group.generation, 0),
        *(current_record(group_id, member) for member in members),
    ]


def _target(member: ConsumerMember) -> Target:
    return {topic_id: frozenset(indexes) for topic_id, indexes in member.assigned.items()}


def _consumer_member(group: Group, member: Member, topics: Topics) -> ConsumerMember:
    subscription = read_with_version(ConsumerProtocolSubscription, member.protocols[0][1])
    assigned: dict[bytes, dict[int, int]] = {}
    if member.assignment:
        assignment = read_with_version(ConsumerProtocolAssignment, member.assignment)
        if subscription.user_data or assignment.user_data:
            raise ProtocolError("its assignor keeps data of its own, which the broker's assignors would not know")
        for each in assignment.assigned_partitions:
            image = topics.topic(each.topic)
            if image is not None:
                # Its leader may have given it others, of a topic that has been replaced by a smaller one, for example.
                existing = [index for index in each.partitions if 0 <= index < len(image.partitions)]
                assigned[image.topic_id] = dict.fromkeys(existing, group.generation)
    return ConsumerMember(
        member.member_id,
        epoch=group.generation,
        previous_epoch=group.generation,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicProtocols(member.session_timeout_ms, tuple(member.protocols)),
        assigned=assigned,
    )


def downgraded(
    group: ConsumerGroup, members: Collection[ConsumerMember], epoch: int, topics: Topics, now_ms: int
) -> Group:
    """A stable classic group of these members, who all speak the classic protocol and keep what they have."""
    classic = Group(group.group_id, now_ms)
    classic.generation = epoch
    for member in members:
        if member.classic is not None:
            classic.add(
                Member(
                    member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.classic.session_timeout_ms,
                    protocol_type=CONSUMER,
                    protocols=member.classic.protocols,
                    assignment=classic_assignment(member.classic, member.assigned, topics),
                )
            )
    classic.protocol = classic.vote()
    classic.state = GroupState.STABLE
    return classic


def classic_assignment(classic: ClassicProtocols, assigned: Assigned, topics: Topics) -> bytes:
    """What SyncGroup gives a member, in the version in which it subscribes."""
    partitions = [
        TopicPartition(topic=name, partitions=sorted(indexes))
        for topic_id, indexes in assigned.items()
        if (name := topics.name_of(topic_id)) is not None
    ]
    version = int.from_bytes(classic.protocols[0][1][:2], "big", signed=True)
    known = ConsumerProtocolAssignment.versions
    version = min(max(version, known.lowest), known.highest)
    return with_version(ConsumerProtocolAssignment(assigned_partitions=partitions), version)
