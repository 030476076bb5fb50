"""Heartbeats of streams groups, and the shapes of their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.streams.member import Endpoint, StreamsMember
from barnabas.broker.group.streams.tasks import TaskEpochs, TaskIds, Tasks
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import (
    RequestTaskIds,
    ResponseTaskIds,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)


def heartbeat_error(error: ErrorCode, message: str | None = None) -> StreamsGroupHeartbeatResponse:
    return answer(error_code=error, error_message=message)


def answer(
    *,
    error_code: ErrorCode = ErrorCode.NONE,
    error_message: str | None = None,
    member_id: str = "",
    member_epoch: int = 0,
    heartbeat_interval_ms: int = 0,
) -> StreamsGroupHeartbeatResponse:
    """Apache Kafka 4.3 has no recovery lag and no interval of task offsets to tell: warm-up tasks would need them."""
    return StreamsGroupHeartbeatResponse(
        error_code=error_code,
        error_message=error_message,
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
        acceptable_recovery_lag=0,
        task_offset_interval_ms=0,
        status=[],
        endpoint_information_epoch=0,
    )


def updated_member(member: StreamsMember, request: StreamsGroupHeartbeatRequest, client: ClientInfo) -> StreamsMember:
    """The member with what its heartbeat says; what it leaves out is as it was."""
    timeout, endpoint, topology = request.rebalance_timeout_ms, request.user_endpoint, request.topology
    updated = replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=member.endpoint if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=member.client_tags if request.client_tags is None else _tags(request),
        client_id=client.client_id,
        client_host=client.host,
    )
    return member if updated == member else updated


def _tags(request: StreamsGroupHeartbeatRequest) -> Mapping[str, str]:
    given = request.client_tags or ()
    tags = {each.key: each.value for each in given}
    if len(tags) != len(given):
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "A client tag is given twice.")
    return tags


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return Tasks(_tasks(request.active_tasks), _tasks(request.standby_tasks), _tasks(request.warmup_tasks))


def _tasks(given: Sequence[RequestTaskIds]) -> TaskIds:
    tasks: dict[str, frozenset[int]] = {}
    for each in given:
        tasks[each.subtopology_id] = tasks.get(each.subtopology_id, frozenset()) | frozenset(each.partitions)
    return tasks


def told_tasks(tasks: TaskIds | TaskEpochs) -> list[ResponseTaskIds]:
    return [ResponseTaskIds(subtopology_id=id, partitions=sorted(tasks[id])) for id in sorted(tasks)]
