"""Heartbeat, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.client.requests.groups import heartbeat
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating
from tests.support.group_versions import VERSIONS


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


@pytest.mark.parametrize("version", VERSIONS[ApiKey.HEARTBEAT])
async def test_a_member_learns_whether_it_must_rejoin(client, version):
    member = await client.stable()
    for message, error in (
        (heartbeat("g", member, 1), ErrorCode.NONE),
        (heartbeat("g", member, 2), ErrorCode.ILLEGAL_GENERATION),
        (heartbeat("g", "nobody", 1), ErrorCode.UNKNOWN_MEMBER_ID),
        (heartbeat("", member, 1), ErrorCode.INVALID_GROUP_ID),
    ):
        assert (await client.ask(ApiKey.HEARTBEAT, message, version)).error_code == error


@pytest.mark.parametrize("version", range(3, 5))
async def test_the_previous_instance_of_a_static_member_is_fenced(client, version):
    former = await client.stable(group_instance_id="i")
    await client.join(group_instance_id="i")
    message = heartbeat("g", former, 1, group_instance_id="i")
    assert (await client.ask(ApiKey.HEARTBEAT, message, version)).error_code == ErrorCode.FENCED_INSTANCE_ID
