"""Why a heartbeat is refused: Kafka's error for each reason, in Kafka's order."""

from __future__ import annotations

from barnabas.broker.group.refused import Refused
from barnabas.broker.group.streams.configuration import ConfiguredTopology
from barnabas.broker.group.streams.member import AWAY_EPOCH, JOINING_EPOCH, StreamsMember
from barnabas.broker.group.streams.tasks import Tasks
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """What can be wrong with a request, whatever group it is for."""
    _check_features(request)
    epoch = request.member_epoch
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    owned = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if not all(tasks is not None and not tasks for tasks in owned):
            raise _invalid("A member that joins must say that it has no tasks.")
        if request.topology is None:
            raise _invalid("A member that joins must describe its topology.")
        for subtopology in request.topology.subtopologies:
            for topic in subtopology.state_changelog_topics:
                if topic.partitions != 0:
                    raise Refused(
                        ErrorCode.STREAMS_INVALID_TOPOLOGY,
                        f"The partitions of changelog topic {topic.name} are not for the client to choose.",
                    )
    elif epoch == AWAY_EPOCH:
        raise _invalid("InstanceId can't be null.")
    elif epoch < AWAY_EPOCH:
        raise _invalid(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    if any(tasks is not None for tasks in owned) and any(tasks is None for tasks in owned):
        raise _invalid("A member that tells its tasks of one kind must tell all.")
    if epoch != JOINING_EPOCH and request.topology is not None:
        raise _invalid("Only a member that joins may describe its topology.")


def _check_features(request: StreamsGroupHeartbeatRequest) -> None:
    """What Apache Kafka 4.3 has a place for in the request, and nothing else."""
    topology = request.topology
    for name, is_used in (
        ("Static membership is", request.instance_id is not None),
        ("TaskOffsets are", request.task_offsets is not None),
        ("TaskEndOffsets are", request.task_end_offsets is not None),
        ("WarmupTasks are", bool(request.warmup_tasks)),
        (
            "Regular expressions for source topics are",
            topology is not None and any(each.source_topic_regex for each in topology.subtopologies),
        ),
    ):
        if is_used:
            raise _invalid(f"{name} not supported yet.")


def check_epoch(member: StreamsMember, epoch: int, owned: Tasks | None) -> None:
    """A member may come with its previous epoch, if the answer that told it the next was lost."""
    if epoch in (JOINING_EPOCH, member.epoch):
        return
    is_late = epoch < member.epoch and epoch == member.previous_epoch
    if not (is_late and owned is not None and member.assigned.contains(owned)):
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member has epoch {epoch}, and the coordinator knows it with {member.epoch}. "
            "It must abandon all its tasks and rejoin.",
        )


def check_owned(owned: Tasks | None, topology: ConfiguredTopology) -> None:
    """A member can only have tasks that there are."""
    subtopologies = topology.subtopologies
    if owned is None or subtopologies is None:
        return
    for tasks in owned:
        for id, indexes in tasks.items():
            if id not in subtopologies:
                raise _invalid(f"Subtopology {id} does not exist in the topology.")
            for index in sorted(indexes):
                if not 0 <= index < subtopologies[id].tasks:
                    raise _invalid(f"Subtopology {id} has {subtopologies[id].tasks} tasks, and {index} is not one.")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
