"""Groups as an administrator sees them: list, describe, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from barnabas.client.client import Client
from barnabas.client.errors import BrokerError, check
from barnabas.client.requests.groups import CONSUMERS, delete_groups
from barnabas.protocol.api import ApiKey
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment, read_with_version
from barnabas.protocol.errors import ErrorCode, ProtocolError
from barnabas.protocol.messages import consumer_group_describe, describe_groups, share_group_describe
from barnabas.protocol.messages.delete_groups import DeleteGroupsResponse
from barnabas.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.schema import Message
from barnabas.protocol.topic_partition import TopicPartition

SHARE: Final = "share"


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[TopicPartition]


@dataclass(frozen=True, slots=True)
class Group:
    group_id: str
    group_type: str
    state: str
    assignor: str
    coordinator: str
    coordinator_id: int
    members: list[Member]


def list_groups(client: Client) -> list[ListedGroup]:
    """The groups of all brokers, sorted by name."""

    def attempt() -> list[ListedGroup]:
        groups: dict[str, ListedGroup] = {}
        for node in client.brokers():
            answer = client.broker(node).ask(ListGroupsRequest(), ListGroupsResponse)
            check(answer.error_code, f"the groups of broker {node}")
            groups.update((group.group_id, group) for group in answer.groups)
        return [groups[name] for name in sorted(groups)]

    return client.settled(attempt)


def describe_group(client: Client, group: str) -> Group:
    """A group of any kind. BrokerError with GROUP_ID_NOT_FOUND if it does not exist."""

    def attempt() -> Group:
        node = client.coordinator_of(group)
        return (
            _describe_consumer_group(client, node, group)
            or _describe_share_group(client, node, group)
            or _describe_classic_group(client, node, group)
        )

    return client.settled(attempt)


def delete_group(client: Client, group: str) -> None:
    def attempt() -> None:
        answer = client.coordinator(group).ask(delete_groups(group), DeleteGroupsResponse)
        check(answer.results[0].error_code, f"group '{group}'")

    client.settled(attempt)


def _describe_classic_group(client: Client, node: int, group: str) -> Group:
    connection = client.broker(node)
    request = describe_groups.DescribeGroupsRequest(groups=[group])
    (found,) = connection.ask(request, describe_groups.DescribeGroupsResponse).groups
    if found.group_state == "Dead" and not found.error_code:  # how versions before 6 say that it does not exist
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"group '{group}'")
    # Without the broker's own text, which repeats the group's name.
    check(found.error_code, f"group '{group}'")
    of_consumers = found.protocol_type in ("", CONSUMERS)
    return Group(
        group_id=group,
        group_type="classic",
        state=found.group_state,
        assignor=found.protocol_data,
        coordinator=str(connection.address),
        coordinator_id=node,
        members=[
            Member(
                each.member_id,
                each.group_instance_id,
                each.client_id,
                each.client_host,
                _assignment(each.member_assignment) if of_consumers else [],
            )
            for each in found.members
        ],
    )


def _describe_consumer_group(client: Client, node: int, group: str) -> Group | None:
    """A group of the consumer protocol, or None if it is of another kind."""
    request = consumer_group_describe.ConsumerGroupDescribeRequest(
        group_ids=[group], include_authorized_operations=False
    )
    answer = consumer_group_describe.ConsumerGroupDescribeResponse
    return _described(client, node, group, CONSUMERS, ApiKey.CONSUMER_GROUP_DESCRIBE, request, answer)


def _describe_share_group(client: Client, node: int, group: str) -> Group | None:
    """A share group, or None if it is of another kind."""
    request = share_group_describe.ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    answer = share_group_describe.ShareGroupDescribeResponse
    return _described(client, node, group, SHARE, ApiKey.SHARE_GROUP_DESCRIBE, request, answer)


def _described(
    client: Client, node: int, group: str, group_type: str, key: ApiKey, request: Message, answer: type[Any]
) -> Group | None:
    connection = client.broker(node)
    if not connection.serves(key):
        return None
    (found,) = connection.ask(request, answer).groups
    if found.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check(found.error_code, f"group '{group}'", found.error_message)
    return Group(
        group_id=group,
        group_type=group_type,
        state=found.group_state,
        assignor=found.assignor_name,
        coordinator=str(connection.address),
        coordinator_id=node,
        members=[
            Member(
                each.member_id,
                getattr(each, "instance_id", None),  # share groups have no static members
                each.client_id,
                each.client_host,
                [
                    TopicPartition(topic.topic_name, index)
                    for topic in each.assignment.topic_partitions
                    for index in topic.partitions
                ],
            )
            for each in found.members
        ],
    )


def _assignment(data: bytes) -> list[TopicPartition]:
    """Empty while a group rebalances, and for protocols other than the consumers'."""
    if not data:
        return []
    try:
        assignment = read_with_version(ConsumerProtocolAssignment, data)
    except ProtocolError:
        return []
    return [
        TopicPartition(topic.topic, index) for topic in assignment.assigned_partitions for index in topic.partitions
    ]
