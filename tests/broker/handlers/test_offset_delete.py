"""OffsetDelete, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.client.requests.groups import offset_delete
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


async def ask(client, *partitions, group="g"):
    """The error of all, or those of single partitions."""
    answer = await client.ask(ApiKey.OFFSET_DELETE, offset_delete(group, *partitions))
    if answer.error_code:
        assert answer.topics == []
        return ErrorCode(answer.error_code)
    return {(topic.name, each.partition_index): each.error_code for topic in answer.topics for each in topic.partitions}


async def test_offsets_are_deleted(client):
    await client.commit(("t", 0, 5), ("t", 1, 6))
    assert await ask(client, ("t", 0), ("t", 2), ("t", 3), ("unknown", 0)) == {
        ("t", 0): ErrorCode.NONE,
        ("t", 2): ErrorCode.NONE,
        ("t", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("unknown", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert await client.committed() == {("t", 1): 6}


async def test_offsets_that_members_need_are_not_deleted(client):
    member = await client.stable()  # reads t
    await client.commit(("t", 0, 5), member=member, generation=1)
    assert await ask(client, ("t", 0)) == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    assert await client.committed() == {("t", 0): 5}


async def test_offsets_of_other_kinds_of_groups_only_without_members(client):
    member = await client.stable(protocol_type="connect")
    assert await ask(client, ("t", 0)) == ErrorCode.NON_EMPTY_GROUP
    await client.leave(member)
    assert await ask(client, ("t", 0)) == {("t", 0): ErrorCode.NONE}


@pytest.mark.parametrize(
    ("group", "error"), [("unknown", ErrorCode.GROUP_ID_NOT_FOUND), ("", ErrorCode.INVALID_GROUP_ID)]
)
async def test_groups_that_do_not_exist(client, group, error):
    assert await ask(client, ("t", 0), group=group) == error
