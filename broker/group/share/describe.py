"""A share group as ShareGroupDescribe shows it."""

from __future__ import annotations

from barnabas.broker.group.share.group import ShareGroup
from barnabas.broker.group.share.member import ShareMember
from barnabas.broker.group.topics import Topics
from barnabas.protocol.messages.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions


def described(group: ShareGroup, topics: Topics, assignor: str) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=[_member(member, topics) for member in group.members.values()],
    )


def _member(member: ShareMember, topics: Topics) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(indexes))
                for topic_id, indexes in member.assigned.items()
                if (name := topics.name_of(topic_id)) is not None
            ]
        ),
    )
