"""JoinGroup, as seen by a client of a real broker over a socket."""

import asyncio

import pytest

from barnabas.client.requests.groups import join_group
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating, group_client
from tests.support.group_versions import VERSIONS


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


@pytest.mark.parametrize("version", VERSIONS[ApiKey.JOIN_GROUP])
async def test_every_version_joins_a_group_of_its_own(client, version):
    answer = await client.ask(ApiKey.JOIN_GROUP, join_group("g"), version)
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        answer = await client.ask(ApiKey.JOIN_GROUP, join_group("g", answer.member_id), version)
    assert answer.error_code == ErrorCode.NONE
    assert (answer.generation_id, answer.protocol_name, answer.leader) == (1, "range", answer.member_id)
    assert [member.member_id for member in answer.members] == [answer.member_id]


@pytest.mark.parametrize("version", VERSIONS[ApiKey.JOIN_GROUP])
async def test_a_refusal_has_no_protocol(client, version):
    answer = await client.ask(ApiKey.JOIN_GROUP, join_group(""), version)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID
    assert answer.protocol_name == (None if version >= 7 else "")
    assert (answer.generation_id, answer.leader, answer.members) == (-1, "", [])


async def test_an_id_begins_with_the_clients_own(client):
    assert (await client.join()).member_id.startswith("test-")
    assert (await client.join(group="static", group_instance_id="i")).member_id.startswith("i-")


async def test_the_answer_waits_for_the_others(client):
    member = await client.stable()
    async with group_client(client.broker) as other:
        joining = asyncio.ensure_future(other.join())
        group = client.broker.groups.shard("g").groups["g"]
        while group.state.value != "PreparingRebalance":  # noqa: ASYNC110, only asking tells
            await asyncio.sleep(0)
        assert not joining.done()
        answer = await client.join(member)
        assert (answer.generation_id, len(answer.members)) == (2, 2)
        assert (await joining).leader == member


async def test_a_client_that_hangs_up_while_it_waits_does_no_harm(client):
    member = await client.stable()
    async with group_client(client.broker) as other:
        other.send(ApiKey.JOIN_GROUP, join_group("g"), 3)
        group = client.broker.groups.shard("g").groups["g"]
        while len(group.members) < 2:  # noqa: ASYNC110, only asking tells
            await asyncio.sleep(0)
    assert (await client.join(member)).generation_id == 2
