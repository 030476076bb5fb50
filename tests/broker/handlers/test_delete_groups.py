"""DeleteGroups, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.client.requests.groups import delete_groups
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating
from tests.support.group_versions import VERSIONS


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


async def ask(client, *groups, version=2):
    answer = await client.ask(ApiKey.DELETE_GROUPS, delete_groups(*groups), version)
    return {result.group_id: result.error_code for result in answer.results}


@pytest.mark.parametrize("version", VERSIONS[ApiKey.DELETE_GROUPS])
async def test_every_version_deletes_a_group_with_its_offsets(client, version):
    await client.commit(("t", 0, 5))
    assert await ask(client, "g", version=version) == {"g": ErrorCode.NONE}
    assert await client.committed() == {}
    assert await ask(client, "g", version=version) == {"g": ErrorCode.GROUP_ID_NOT_FOUND}


async def test_a_group_with_members_stays(client):
    member = await client.stable()
    assert await ask(client, "g") == {"g": ErrorCode.NON_EMPTY_GROUP}
    await client.leave(member)
    assert await ask(client, "g") == {"g": ErrorCode.NONE}


async def test_several_are_deleted_each_by_itself(client):
    await client.commit(("t", 0, 5), group="simple")
    await client.stable()
    assert await ask(client, "simple", "g", "unknown", "simple") == {
        "simple": ErrorCode.NONE,
        "g": ErrorCode.NON_EMPTY_GROUP,
        "unknown": ErrorCode.GROUP_ID_NOT_FOUND,
    }


async def test_without_groups_there_is_nothing_to_do(client):
    assert await ask(client) == {}
