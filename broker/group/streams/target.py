"""The target assignment: what the assignor gives each member, as records of what has changed."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.assignors.hash_order import timeline_order
from barnabas.broker.group.assignors.sticky_tasks import StreamsMemberSpec, SubtopologySpec
from barnabas.broker.group.assignors.sticky_tasks import assign as assign_tasks
from barnabas.broker.group.streams.configuration import ConfiguredTopology
from barnabas.broker.group.streams.group import StreamsGroup
from barnabas.broker.group.streams.member import StreamsMember
from barnabas.broker.group.streams.records import target_epoch_record, target_record
from barnabas.broker.group.streams.settings import NUM_STANDBY_REPLICAS
from barnabas.broker.group.streams.tasks import NO_TASKS, TaskIds, Tasks


def assign(
    group: StreamsGroup,
    members: Mapping[str, StreamsMember],
    epoch: int,
    topology: ConfiguredTopology,
    configs: Mapping[str, str],
    now_ms: int,
) -> tuple[dict[str, Tasks], list[CoordinatorRecord]]:
    """The target of each of these members (the group's, with a change that is not replayed yet) in a new epoch.

    As long as the topology cannot be configured, nobody has anything.
    """
    target = _given(group, members, topology, configs) if topology.is_ready else dict.fromkeys(members, NO_TASKS)
    records = [
        target_record(group.group_id, member_id, given)
        for member_id, given in target.items()
        if group.target.get(member_id) != given
    ]
    return target, [*records, target_epoch_record(group.group_id, epoch, now_ms)]


def _given(
    group: StreamsGroup,
    members: Mapping[str, StreamsMember],
    topology: ConfiguredTopology,
    configs: Mapping[str, str],
) -> dict[str, Tasks]:
    # Who comes first matters to the assignor, and this is Kafka's order.
    order = [*(each for each in timeline_order(list(group.members)) if each in members)]
    order += [each for each in members if each not in group.members]
    specs = {
        member_id: StreamsMemberSpec(
            members[member_id].process_id, group.target_of(member_id).active, group.target_of(member_id).standby
        )
        for member_id in order
    }
    subtopologies = {
        id: SubtopologySpec(each.tasks, each.is_stateful) for id, each in (topology.subtopologies or {}).items()
    }
    given = assign_tasks(specs, subtopologies, int(configs.get(NUM_STANDBY_REPLICAS, "0")))
    return {
        member_id: Tasks(_frozen(given[member_id].active), _frozen(given[member_id].standby), {})
        for member_id in members
    }


def _frozen(tasks: Mapping[str, set[int]]) -> TaskIds:
    return {id: frozenset(indexes) for id, indexes in tasks.items()}
