"""DescribeGroups, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.broker.security.authorizer import EVERYTHING, NOT_ASKED
from barnabas.client.requests.groups import subscription
from barnabas.protocol.acls import ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.broker.handlers.group_client import coordinating
from tests.support.group_versions import VERSIONS


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


async def ask(client, version, *groups, operations=False):
    message = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)
    return (await client.ask(ApiKey.DESCRIBE_GROUPS, message, version)).groups


@pytest.mark.parametrize("version", VERSIONS[ApiKey.DESCRIBE_GROUPS])
async def test_every_version_describes_a_stable_group(client, version):
    member_id = await client.stable(group_instance_id="i")
    (found,) = await ask(client, version, "g")
    assert (found.error_code, found.group_id, found.group_state) == (ErrorCode.NONE, "g", "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    (member,) = found.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "test", "/127.0.0.1")
    assert member.group_instance_id == ("i" if version >= 4 else None)
    assert (member.member_metadata, member.member_assignment) == (subscription("t"), b"everything")


@pytest.mark.parametrize("version", VERSIONS[ApiKey.DESCRIBE_GROUPS])
async def test_a_group_that_does_not_exist_is_dead(client, version):
    (found,) = await ask(client, version, "unknown")
    assert found.group_state == "Dead"
    assert found.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)
    assert found.error_message == ("Group unknown not found." if version >= 6 else None)


async def test_several_are_described_each_by_itself(client):
    await client.commit(("t", 0, 1), group="simple")
    await client.stable()
    found = await ask(client, 5, "simple", "g", "unknown")
    assert [(each.group_id, each.group_state) for each in found] == [
        ("simple", "Empty"),
        ("g", "Stable"),
        ("unknown", "Dead"),
    ]


@pytest.mark.parametrize("version", range(3, 7))
async def test_authorized_operations_are_returned_if_asked_for(client, version):
    await client.commit(("t", 0, 1))
    assert (await ask(client, version, "g", operations=True))[0].authorized_operations == EVERYTHING.operations(
        ResourceType.GROUP
    )
    assert (await ask(client, version, "g"))[0].authorized_operations == NOT_ASKED
