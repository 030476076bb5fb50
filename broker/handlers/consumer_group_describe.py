"""ConsumerGroupDescribe (key 69): groups of the consumer protocol, with their members. Version 1 adds the members'
types."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.group.consumer.describe import described
from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.handlers.described_group import HIDDEN, Refusal, group_of_kind
from barnabas.broker.handlers.settled import when_committed
from barnabas.broker.security.authorizer import NOT_ASKED
from barnabas.broker.server.pieces import Steps, each, once
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: ConsumerGroupDescribeRequest
) -> Steps[ConsumerGroupDescribeResponse | None]:
    describe = once(partial(_describe, broker, request, message.include_authorized_operations))
    response = ConsumerGroupDescribeResponse(groups=(yield from each(describe, message.group_ids)))
    again = partial(handle, broker, request, message)
    return when_committed(broker, request, broker.groups, message.group_ids, response, again)


def _describe(broker: Broker, request: Request, with_operations: bool, group_id: str) -> DescribedGroup:
    access = request.access
    group = group_of_kind(broker, request, ConsumerGroup, group_id)
    if isinstance(group, Refusal):
        return _refused(group_id, group)
    answer = described(group, broker.cluster, broker.config.group_consumer_assignors[0])
    answer.authorized_operations = access.operations(ResourceType.GROUP, group_id) if with_operations else NOT_ASKED
    seen = {
        each.topic_name
        for member in answer.members
        for assignment in (member.assignment, member.target_assignment)
        for each in assignment.topic_partitions
    }
    seen.update(name for member in answer.members for name in member.subscribed_topic_names)
    if not all(access.topic(AclOperation.DESCRIBE, name) for name in seen):
        answer.error_code, answer.error_message = HIDDEN
        answer.members = []
    return answer


def _refused(group_id: str, refusal: Refusal) -> DescribedGroup:
    return DescribedGroup(
        error_code=refusal.error,
        error_message=refusal.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )
