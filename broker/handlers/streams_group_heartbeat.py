"""StreamsGroupHeartbeat (key 88): join a streams group, stay in it, or leave it.

The member's epoch says which: 0 joins, -1 leaves. Topics that the application needs for itself are created if the
client may do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.controller.topic_names import is_internal, problem_with_name
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.streams.configuration import InternalTopic
from barnabas.broker.group.streams.group import STREAMS
from barnabas.broker.group.streams.requests import heartbeat_error
from barnabas.broker.group.streams.statuses import StatusCode
from barnabas.broker.group.streams.topology import topics_named_by
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_DISABLED: Final = "Streams groups are not among group.coordinator.rebalance.protocols, or there are older brokers."
_MOST_ERRORS: Final = 3


def is_enabled(broker: Broker) -> bool:
    return bool(broker.understood.streams_version) and STREAMS in broker.config.group_coordinator_rebalance_protocols


def handle(
    broker: Broker, request: Request, message: StreamsGroupHeartbeatRequest
) -> Steps[StreamsGroupHeartbeatResponse | None]:
    if not is_enabled(broker):
        return heartbeat_error(ErrorCode.UNSUPPORTED_VERSION, _DISABLED)
    if not request.access.group(AclOperation.READ, message.group_id):
        return heartbeat_error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if message.topology is not None:
        refusal = yield from _refusal(broker, request, message.topology)
        if refusal is not None:
            return refusal

    def answer(response: StreamsGroupHeartbeatResponse, missing: Sequence[InternalTopic]) -> None:
        if missing:
            _create(broker, request, response, missing)
        request.answer(response)

    client = ClientInfo(request.client_id or "", f"/{request.connection.peer[0]}", request.version)
    broker.groups.streams_heartbeat(message, client, answer)
    return None


def _refusal(broker: Broker, request: Request, topology: Topology) -> Steps[StreamsGroupHeartbeatResponse | None]:
    """Why a topology is refused, whatever group it is for."""
    topics: dict[str, None] = {}
    left = broker.config.message_max_bytes
    for subtopology in topology.subtopologies:
        left -= len(subtopology.subtopology_id) + 1
        if left < 0:
            return heartbeat_error(ErrorCode.UNKNOWN_SERVER_ERROR)
        yield
        for topic, size in topics_named_by(subtopology):
            topics[topic] = None
            left -= size
            if left < 0:  # no record can hold it, and nobody has to wait until that is found out in earnest
                return heartbeat_error(ErrorCode.UNKNOWN_SERVER_ERROR)
            yield
    internal, invalid, hidden = [], [], False
    for topic in topics:
        if is_internal(topic):
            internal.append(topic)
        elif problem_with_name(topic) is not None:
            invalid.append(topic)
        elif not request.access.topic(AclOperation.DESCRIBE, topic):
            hidden = True
        yield
    if internal:
        text = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        return heartbeat_error(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    if invalid:
        text = f"Topic names {','.join(invalid)} are not valid topic names."
        return heartbeat_error(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    return heartbeat_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED) if hidden else None


def _create(
    broker: Broker, request: Request, response: StreamsGroupHeartbeatResponse, missing: Sequence[InternalTopic]
) -> None:
    """Have missing topics created, and tell what stands in the way of that."""
    access, names = request.access, [topic.name for topic in missing]
    is_allowed = access.cluster(AclOperation.CREATE)
    denied = [] if is_allowed else [name for name in names if not access.topic(AclOperation.CREATE, name)]
    if denied:
        _add(response, f"; Unauthorized to CREATE on topics {', '.join(denied)}.")
        return
    broker.streams_topics.create(missing, 2 * response.heartbeat_interval_ms)
    failed = [f"{name} ({error})" for name, error in broker.streams_topics.errors(names).items()]
    if failed:
        more = f" and {len(failed) - _MOST_ERRORS} more" if len(failed) > _MOST_ERRORS else ""
        _add(response, f"; Creation failed: {', '.join(failed[:_MOST_ERRORS])}{more}.")


def _add(response: StreamsGroupHeartbeatResponse, text: str) -> None:
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            status.status_detail += text
