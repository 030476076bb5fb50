"""LeaveGroup, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.client.requests.groups import leave_group
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating
from tests.support.group_versions import VERSIONS


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


@pytest.mark.parametrize("version", VERSIONS[ApiKey.LEAVE_GROUP])
async def test_a_member_leaves(client, version):
    member = await client.stable()
    answer = await client.ask(ApiKey.LEAVE_GROUP, leave_group(version, "g", member), version)
    assert answer.error_code == ErrorCode.NONE
    if version >= 3:
        assert [(each.member_id, each.error_code) for each in answer.members] == [(member, ErrorCode.NONE)]
    assert client.broker.groups.shard("g").groups["g"].members == {}


@pytest.mark.parametrize("version", VERSIONS[ApiKey.LEAVE_GROUP])
async def test_an_unknown_member_cannot_leave(client, version):
    await client.stable()
    answer = await client.ask(ApiKey.LEAVE_GROUP, leave_group(version, "g", "nobody"), version)
    error = answer.members[0].error_code if version >= 3 else answer.error_code
    assert error == ErrorCode.UNKNOWN_MEMBER_ID
    answer = await client.ask(ApiKey.LEAVE_GROUP, leave_group(version, "", "nobody"), version)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(3, 6))
async def test_a_static_member_is_removed_by_its_instance_id(client, version):
    await client.stable(group_instance_id="i")
    answer = await client.ask(ApiKey.LEAVE_GROUP, leave_group(version, "g", ("", "i"), ("", "j")), version)
    assert [(each.group_instance_id, each.error_code) for each in answer.members] == [
        ("i", ErrorCode.NONE),
        ("j", ErrorCode.UNKNOWN_MEMBER_ID),
    ]
