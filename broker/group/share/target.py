"""The target assignment of a share group: what the assignor gives each member, as records of what has changed."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.assignors import simple
from barnabas.broker.group.assignors.hash_order import timeline_order
from barnabas.broker.group.assignors.spec import GroupSpec, MemberSpec, SubscriptionType, known
from barnabas.broker.group.share.group import ShareGroup, subscribed
from barnabas.broker.group.share.member import Assigned, ShareMember
from barnabas.broker.group.share.records import target_epoch_record, target_record
from barnabas.broker.group.topics import Topics, ids_of, partitions_of


def assign(
    group: ShareGroup, members: Mapping[str, ShareMember], epoch: int, topics: Topics, now_ms: int
) -> tuple[dict[str, Assigned], list[CoordinatorRecord]]:
    """The target of each of these members (the group's, with a change that is not replayed yet) in a new epoch."""
    ids: dict[frozenset[str], frozenset[bytes]] = {}  # members mostly read the same
    for member in members.values():
        if member.topics not in ids:
            ids[member.topics] = ids_of(member.topics, topics)
    # Who comes first matters to the assignor, and this is Kafka's order.
    order = [each for each in timeline_order(list(group.members)) if each in members]
    order += [each for each in members if each not in group.members]

    partitions = partitions_of(sorted(subscribed(members)), topics)

    def spec_of(member: ShareMember) -> MemberSpec:
        owned = known(group.target_of(member.member_id), partitions)
        return MemberSpec(ids[member.topics], None, member.rack_id, owned)

    kind = SubscriptionType.HOMOGENEOUS if len(ids) == 1 else SubscriptionType.HETEROGENEOUS
    spec = GroupSpec({each: spec_of(members[each]) for each in order}, kind)
    given = simple.assign(spec, partitions, group.state_partitions.assignable())
    target: dict[str, Assigned] = {
        member_id: {topic_id: frozenset(indexes) for topic_id, indexes in given.get(member_id, {}).items()}
        for member_id in members
    }
    records = [
        target_record(group.group_id, member_id, assigned)
        for member_id, assigned in target.items()
        if group.target.get(member_id) != assigned
    ]
    return target, [*records, target_epoch_record(group.group_id, epoch, now_ms)]
