"""StreamsGroupDescribe (key 89): streams groups, with their topologies and members."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.group.streams.describe import described
from barnabas.broker.group.streams.group import StreamsGroup
from barnabas.broker.handlers.described_group import HIDDEN, Refusal, group_of_kind
from barnabas.broker.handlers.settled import when_committed
from barnabas.broker.handlers.streams_group_heartbeat import is_enabled
from barnabas.broker.security.authorizer import NOT_ASKED
from barnabas.broker.server.pieces import Steps, each, once
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: StreamsGroupDescribeRequest
) -> Steps[StreamsGroupDescribeResponse | None]:
    describe = once(partial(_describe, broker, request, message.include_authorized_operations))
    response = StreamsGroupDescribeResponse(groups=(yield from each(describe, message.group_ids)))
    again = partial(handle, broker, request, message)
    return when_committed(broker, request, broker.groups, message.group_ids, response, again)


def _describe(broker: Broker, request: Request, with_operations: bool, group_id: str) -> DescribedGroup:
    access = request.access
    if not is_enabled(broker):
        return _refused(group_id, Refusal(ErrorCode.UNSUPPORTED_VERSION))
    group = group_of_kind(broker, request, StreamsGroup, group_id)
    if isinstance(group, Refusal):
        return _refused(group_id, group)
    answer = described(group)
    answer.authorized_operations = access.operations(ResourceType.GROUP, group_id) if with_operations else NOT_ASKED
    if not all(access.topic(AclOperation.DESCRIBE, topic) for topic in _topics(answer)):
        return _refused(group_id, HIDDEN)
    return answer


def _topics(group: DescribedGroup) -> dict[str, None]:
    """The topics that an answer names."""
    found: dict[str, None] = {}
    for subtopology in (group.topology.subtopologies or ()) if group.topology is not None else ():
        found.update(dict.fromkeys((*subtopology.source_topics, *subtopology.repartition_sink_topics)))
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            found[topic.name] = None
    return found


def _refused(group_id: str, refusal: Refusal) -> DescribedGroup:
    return DescribedGroup(
        error_code=refusal.error,
        error_message=refusal.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=[],
    )
