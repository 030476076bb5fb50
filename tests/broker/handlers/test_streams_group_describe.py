"""StreamsGroupDescribe, as seen by a client of a real broker over a socket."""

from types import SimpleNamespace

import pytest

from barnabas.broker.security.authorizer import EVERYTHING, NOT_ASKED
from barnabas.broker.testing.state import group_state
from barnabas.client.requests.streams import streams_group_describe, streams_group_heartbeat, subtopology, topology
from barnabas.protocol.acls import ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import RequestEndpoint
from tests.broker.handlers.group_client import coordinating


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


async def join(client):
    request = streams_group_heartbeat(
        "g",
        "a",
        0,
        topology=topology(subtopology("0", "t"), epoch=7),
        rack_id="r",
        tags=[("zone", "z")],
        user_endpoint=RequestEndpoint(host="here", port=80),
    )
    await client.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, request, 0)


async def ask(client, *groups, operations=False):
    request = streams_group_describe(*groups, operations=operations)
    return (await client.ask(ApiKey.STREAMS_GROUP_DESCRIBE, request, 0)).groups


async def test_a_group_with_its_topology_and_its_member(client):
    await join(client)
    (found,) = await ask(client, "g")
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 2, 2)
    assert (found.topology.epoch, found.authorized_operations) == (7, NOT_ASKED)
    (each,) = found.topology.subtopologies
    assert (each.subtopology_id, each.source_topics) == ("0", ["t"])
    (member,) = found.members
    assert (member.member_id, member.rack_id, member.member_epoch, member.topology_epoch) == ("a", "r", 2, 7)
    assert (member.client_id, member.client_host, member.process_id) == ("test", "/127.0.0.1", "process of a")
    assert (member.user_endpoint.host, member.user_endpoint.port) == ("here", 80)
    assert [(tag.key, tag.value) for tag in member.client_tags] == [("zone", "z")]
    for assignment in (member.assignment, member.target_assignment):
        assert [(task.subtopology_id, task.partitions) for task in assignment.active_tasks] == [("0", [0, 1, 2])]


async def test_groups_that_are_not_there_or_of_another_kind(client):
    await client.stable("classic")
    found = await ask(client, "classic", "unknown", "")
    assert [each.error_code for each in found] == [
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.INVALID_GROUP_ID,
    ]
    assert [each.error_message for each in found[:2]] == [
        "Group classic is not a streams group.",
        "Group unknown not found.",
    ]


async def test_authorized_operations_are_returned_if_asked_for(client):
    await join(client)
    (found,) = await ask(client, "g", operations=True)
    assert found.authorized_operations == EVERYTHING.operations(ResourceType.GROUP)


async def test_the_state_for_tests_has_its_tasks(client):
    await join(client)
    shard = client.broker.groups.shard("g")
    state = group_state(SimpleNamespace(brokers=[client.broker]), shard, shard.groups["g"])
    assert (state["type"], state["state"], state["topology_epoch"], state["topics"]) == ("streams", "Stable", 7, ["t"])
    (member,) = state["members"]
    assert member["assignment"] == {"t": [0, 1, 2]}
    assert member["tasks"] == member["target_tasks"] == {"active": {"0": [0, 1, 2]}, "standby": {}, "warmup": {}}
