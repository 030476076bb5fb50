"""The target assignment: what the assignor gives each member, as records of what has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.assignors import ASSIGNORS
from barnabas.broker.group.assignors.hash_order import timeline_order
from barnabas.broker.group.assignors.spec import GroupSpec, MemberSpec, SubscriptionType, TopicPartitions, known
from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.group.consumer.member import ConsumerMember
from barnabas.broker.group.consumer.reconciliation import Target
from barnabas.broker.group.consumer.records import target_epoch_record, target_record
from barnabas.broker.group.topics import Topics, ids_of, partitions_of


def assign(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    reads: SubscriptionType,
    epoch: int,
    topics: Topics,
    default_assignor: str,
    now_ms: int,
) -> tuple[Mapping[str, Target], list[CoordinatorRecord]]:
    """The target of each of these members (the group's, with a change that is not replayed yet) in a new epoch."""
    names = sorted(group.topics_of_all(members.values()))
    # Who comes first matters to the assignors, and this is Kafka's order.
    order = [*(each for each in timeline_order(list(group.members)) if each in members)]
    order += [each for each in members if each not in group.members]
    partitions = partitions_of(names, topics)
    spec = GroupSpec(_specs(group, [members[each] for each in order], topics, partitions), reads)
    assignor = group.preferred_assignor(members.values(), default_assignor)
    assigned = ASSIGNORS[assignor](spec, partitions)
    records = [
        target_record(group.group_id, member_id, given)
        for member_id, given in assigned.items()
        if (had := group.target.get(member_id)) is not given and had != given
    ]
    return assigned, [*records, target_epoch_record(group.group_id, epoch, now_ms)]


def _specs(
    group: ConsumerGroup,
    members: Sequence[ConsumerMember],
    topics: Topics,
    partitions: Mapping[bytes, TopicPartitions],
) -> dict[str, MemberSpec]:
    """What the assignor is told of these members: there may be thousands, who mostly read the same."""
    read = list(map(group.topics_of, members)) if group.regexes else [member.topics for member in members]
    ids = {names: ids_of(names, topics) for names in set(read)}
    return {
        member.member_id: MemberSpec(
            ids[names], member.instance_id, member.rack_id, known(group.target_of(member), partitions)
        )
        for member, names in zip(members, read, strict=True)
    }


def subscription_type(members: Collection[ConsumerMember]) -> SubscriptionType:
    """Whether all members read the same: the same names and no pattern, or the same pattern and no names."""
    first = next(iter(members), None)
    if first is None:
        return SubscriptionType.HOMOGENEOUS
    same = len({member.topics for member in members}) == 1 and len({member.regex for member in members}) == 1
    if same and not (first.regex and first.topics):
        return SubscriptionType.HOMOGENEOUS
    return SubscriptionType.HETEROGENEOUS
