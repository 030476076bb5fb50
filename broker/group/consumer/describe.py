"""A consumer group as ConsumerGroupDescribe shows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.group.consumer.member import ConsumerMember
from barnabas.broker.group.topics import Topics
from barnabas.protocol.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

# What a member speaks.
_CLASSIC_TYPE: Final = 0
_CONSUMER_TYPE: Final = 1


def described(group: ConsumerGroup, topics: Topics, default_assignor: str) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(group.members.values(), default_assignor),
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(_held(member), topics),
        target_assignment=_assignment(group.target_of(member), topics),
        member_type=_CONSUMER_TYPE if member.classic is None else _CLASSIC_TYPE,
    )


def _held(member: ConsumerMember) -> dict[bytes, list[int]]:
    """What it has, and what it has not let go of yet."""
    return {
        topic_id: [*member.assigned.get(topic_id, ()), *member.revoking.get(topic_id, ())]
        for topic_id in dict.fromkeys([*member.assigned, *member.revoking])
    }


def _assignment(assigned: Mapping[bytes, Collection[int]], topics: Topics) -> Assignment:
    """Topics that were deleted are left out."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(indexes))
            for topic_id, indexes in assigned.items()
            if (name := topics.name_of(topic_id)) is not None
        ]
    )
