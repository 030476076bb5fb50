"""ListGroups, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from tests.broker.handlers.group_client import coordinating
from tests.support.group_versions import VERSIONS


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path, offsets_topic_num_partitions=3) as client:
        await client.stable("stable")
        await client.leave(await client.stable("empty"), "empty")
        await client.stable("connect", protocol_type="connect")
        await client.commit(("t", 0, 1), group="simple")
        yield client


async def ask(client, version=5, states=(), types=()):
    message = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    return (await client.ask(ApiKey.LIST_GROUPS, message, version)).groups


async def names(client, **fields):
    return sorted(group.group_id for group in await ask(client, **fields))


@pytest.mark.parametrize("version", VERSIONS[ApiKey.LIST_GROUPS])
async def test_every_version_lists_all_groups(client, version):
    found = {group.group_id: group for group in await ask(client, version)}
    assert {name: group.protocol_type for name, group in found.items()} == {
        "stable": "consumer",
        "empty": "consumer",
        "connect": "connect",
        "simple": "",
    }
    if version >= 4:
        states = {"stable": "Stable", "empty": "Empty", "connect": "Stable", "simple": "Empty"}
        assert {name: group.group_state for name, group in found.items()} == states
    if version >= 5:
        assert {group.group_type for group in found.values()} == {"classic"}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["Stable"], ["connect", "stable"]),
        (["stable", "EMPTY"], ["connect", "empty", "simple", "stable"]),
        (["Dead"], []),
        (["nonsense"], []),
    ],
)
async def test_groups_are_listed_by_state(client, states, expected):
    assert await names(client, states=states) == expected


@pytest.mark.parametrize(
    ("types", "count"), [(["classic"], 4), (["Classic", "consumer"], 4), (["consumer"], 0), (["nonsense"], 0)]
)
async def test_groups_are_listed_by_type(client, types, count):
    assert len(await names(client, types=types)) == count


async def test_state_and_type_must_both_match(client):
    assert await names(client, states=["Empty"], types=["classic"]) == ["empty", "simple"]
    assert await names(client, states=["Empty"], types=["share"]) == []
