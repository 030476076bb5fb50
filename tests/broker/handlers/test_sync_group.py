"""SyncGroup, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.client.requests.groups import BY_RANGE, sync_group
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating
from tests.support.group_versions import VERSIONS


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


@pytest.mark.parametrize("version", VERSIONS[ApiKey.SYNC_GROUP])
async def test_the_leader_hands_out_the_assignment(client, version):
    member = (await client.join()).member_id
    answer = await client.ask(ApiKey.SYNC_GROUP, sync_group("g", member, 1, {member: b"all"}, **BY_RANGE), version)
    assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"all")
    if version >= 5:
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
async def test_from_version_5_a_member_names_its_protocol(client, missing):
    member = await client.stable()
    message = sync_group("g", member, 1, **{**BY_RANGE, missing: None})
    assert (await client.ask(ApiKey.SYNC_GROUP, message, 4)).error_code == ErrorCode.NONE
    assert (await client.ask(ApiKey.SYNC_GROUP, message, 5)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", VERSIONS[ApiKey.SYNC_GROUP])
async def test_a_refusal_has_no_assignment(client, version):
    answer = await client.ask(ApiKey.SYNC_GROUP, sync_group("g", "nobody", 1, **BY_RANGE), version)
    assert (answer.error_code, answer.assignment) == (ErrorCode.UNKNOWN_MEMBER_ID, b"")
