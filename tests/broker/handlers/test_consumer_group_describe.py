"""ConsumerGroupDescribe, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.broker.security.authorizer import EVERYTHING, NOT_ASKED
from barnabas.client.requests.groups import consumer_group_heartbeat
from barnabas.protocol.acls import ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tests.broker.handlers.group_client import coordinating


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


async def ask(client, version, *groups, operations=False):
    message = ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)
    return (await client.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, message, version)).groups


@pytest.mark.parametrize("version", [0, 1])
async def test_a_group_with_its_member(client, version):
    request = consumer_group_heartbeat("g", "a", 0, topics=["t"], instance_id="i", rack_id="r")
    await client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request)
    (found,) = await ask(client, version, "g")
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 2, 2)
    assert (found.assignor_name, found.authorized_operations) == ("uniform", NOT_ASKED)
    (member,) = found.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("a", "i", "r", 2)
    assert (member.client_id, member.client_host) == ("test", "/127.0.0.1")
    assert member.subscribed_topic_names == ["t"]
    for assignment in (member.assignment, member.target_assignment):
        assert [(each.topic_name, each.partitions) for each in assignment.topic_partitions] == [("t", [0, 1, 2])]
    assert member.member_type == (1 if version else -1)


async def test_groups_that_are_not_there_or_of_another_kind(client):
    await client.stable("classic")
    found = await ask(client, 1, "classic", "unknown")
    assert [each.error_code for each in found] == [ErrorCode.GROUP_ID_NOT_FOUND] * 2
    assert [each.error_message for each in found] == [
        "Group classic is not a consumer group.",
        "Group unknown not found.",
    ]


async def test_authorized_operations_are_returned_if_asked_for(client):
    await client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, consumer_group_heartbeat("g", "a", 0, topics=["t"]))
    (found,) = await ask(client, 1, "g", operations=True)
    assert found.authorized_operations == EVERYTHING.operations(ResourceType.GROUP)
