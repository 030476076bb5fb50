"""The group that ConsumerGroupDescribe, ShareGroupDescribe or StreamsGroupDescribe asks for, or why it is not shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.group.share.group import ShareGroup
from barnabas.broker.group.streams.group import StreamsGroup
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

Group = TypeVar("Group", ConsumerGroup, ShareGroup, StreamsGroup)


class Refusal(NamedTuple):
    error: ErrorCode
    message: str | None = None


HIDDEN: Final = Refusal(
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "The described group uses topics that the client is not authorized to describe.",
)


def group_of_kind(broker: Broker, request: Request, of_kind: type[Group], group_id: str) -> Group | Refusal:
    if not request.access.group(AclOperation.DESCRIBE, group_id):
        return Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    error = broker.groups.objection(group_id) if group_id else ErrorCode.INVALID_GROUP_ID
    if error:
        return Refusal(error)
    group = broker.groups.shard(group_id).groups.get(group_id)
    if isinstance(group, of_kind):
        return group
    reason = "not found" if group is None else f"is not a {of_kind.kind.value} group"
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
