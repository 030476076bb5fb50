"""The target assignment: what the assignor gives each member, as records of what has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.assignors import ASSIGNORS
from barnabas.broker.group.assignors.hash_order import timeline_order
from barnabas.broker.group.assignors.spec import GroupSpec, MemberSpec, SubscriptionType
from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.group.consumer.member import ConsumerMember
from barnabas.broker.group.consumer.reconciliation import Target
from barnabas.broker.group.consumer.records import target_epoch_record, target_record
from barnabas.broker.group.topics import Topics, ids_of, partitions_of


def assign(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    epoch: int,
    topics: Topics,
    default_assignor: str,
    now_ms: int,
) -> tuple[dict[str, Target], list[CoordinatorRecord]]:
    """The target of each of these members (the group's, with a change that is not replayed yet) in a new epoch."""
    names = sorted({name for member in members.values() for name in group.topics_of(member)})
    ids: dict[frozenset[str], frozenset[bytes]] = {}  # members mostly read the same

    def spec_of(member: ConsumerMember) -> MemberSpec:
        read = group.topics_of(member)
        if read not in ids:
            ids[read] = ids_of(read, topics)
        return MemberSpec(ids[read], member.instance_id, member.rack_id, group.target_of(member))

    # Who comes first matters to the assignors, and this is Kafka's order.
    order = [*(each for each in timeline_order(list(group.members)) if each in members)]
    order += [each for each in members if each not in group.members]
    spec = GroupSpec({each: spec_of(members[each]) for each in order}, subscription_type(members.values(), group))
    assignor = group.preferred_assignor(members.values(), default_assignor)
    assigned = ASSIGNORS[assignor](spec, partitions_of(names, topics))
    target: dict[str, Target] = {
        member_id: {topic_id: frozenset(indexes) for topic_id, indexes in assigned.get(member_id, {}).items()}
        for member_id in members
    }
    records = [
        target_record(group.group_id, member_id, given)
        for member_id, given in target.items()
        if group.target.get(member_id) != given
    ]
    return target, [*records, target_epoch_record(group.group_id, epoch, now_ms)]


def subscription_type(members: Collection[ConsumerMember], group: ConsumerGroup) -> SubscriptionType:
    """Whether all members read the same: the same names and no pattern, or the same pattern and no names."""
    first = next(iter(members))
    same = all(member.topics == first.topics and member.regex == first.regex for member in members)
    if same and not (first.regex and first.topics):
        return SubscriptionType.HOMOGENEOUS
    return SubscriptionType.HETEROGENEOUS
