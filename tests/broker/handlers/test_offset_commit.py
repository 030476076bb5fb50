"""OffsetCommit, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating
from tests.support.group_versions import VERSIONS

UNKNOWN_ID = bytes(range(16))


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


def named(client, version, topic="t"):
    """As a version names a topic that exists."""
    return client.broker.cluster.topic(topic).topic_id if version >= 10 else topic


@pytest.mark.parametrize("version", VERSIONS[ApiKey.OFFSET_COMMIT])
async def test_every_version_commits(client, version):
    topic = named(client, version)
    errors = await client.commit((topic, 0, 5), (topic, 2, 7), metadata="words", leader_epoch=3, version=version)
    assert errors == [ErrorCode.NONE, ErrorCode.NONE]
    found = client.broker.groups.shard("g").offsets.of_group("g")
    assert {partition: (each.offset, each.metadata) for partition, each in found.items()} == {
        ("t", 0): (5, "words"),
        ("t", 2): (7, "words"),
    }
    assert found["t", 0].leader_epoch == (3 if version >= 6 else -1)
    assert found["t", 0].topic_id == named(client, 10)


@pytest.mark.parametrize("version", VERSIONS[ApiKey.OFFSET_COMMIT])
async def test_what_does_not_exist_fails_alone(client, version):
    topic = named(client, version)
    unknown, error = ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if version >= 10:
        unknown, error = UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID
    errors = await client.commit((topic, 0, 5), (topic, 3, 5), (unknown, 0, 5), version=version)
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error]
    assert await client.committed() == {("t", 0): 5}


@pytest.mark.parametrize(("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
async def test_a_member_of_a_group_that_does_not_exist(client, version, error):
    assert await client.commit(("t", 0, 5), member="m", generation=1, version=version) == [error]


async def test_a_wrong_generation_is_an_error_of_every_partition(client):
    member = await client.stable()
    errors = await client.commit(("t", 0, 5), ("t", 3, 5), member=member, generation=7)
    assert errors == [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_metadata_has_a_maximum_number_of_characters(tmp_path):
    async with coordinating(tmp_path, offset_metadata_max_bytes=4) as client:
        assert await client.commit(("t", 0, 1), metadata="\N{EURO SIGN}" * 4) == [ErrorCode.NONE]
        # A character beyond the basic plane counts as two, as in Java.
        too_long = "\N{GRINNING FACE}" * 2 + "!"
        assert await client.commit(("t", 1, 2), metadata=too_long) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
        assert await client.commit(("t", 0, 3), metadata=None) == [ErrorCode.NONE]
        assert await client.committed() == {("t", 0): 3}


async def test_a_generation_that_is_wrong_counts_more_than_metadata_that_are_too_long(tmp_path):
    async with coordinating(tmp_path, offset_metadata_max_bytes=4) as client:
        member = await client.stable()
        errors = await client.commit(("t", 0, 1), member=member, generation=7, metadata="words")
        assert errors == [ErrorCode.ILLEGAL_GENERATION]


async def test_a_commit_that_is_larger_than_a_batch_may_be_is_refused(tmp_path):
    async with coordinating(tmp_path, message_max_bytes=1000, offset_metadata_max_bytes=4000) as client:
        assert await client.commit(("t", 0, 1), metadata="m" * 2000) == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE]
        assert await client.committed() == {}


async def test_an_old_client_says_how_long_its_offsets_are_kept(client):
    await client.commit(("t", 0, 1), version=4, retention_time_ms=1000)
    found = client.broker.groups.shard("g").offsets.of_group("g")["t", 0]
    assert found.expire_timestamp == found.commit_timestamp + 1000


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_offsets_may_be_kept_forever_or_not_at_all(client, version):
    for retention in (2**63 - 1, -(2**63)):
        assert await client.commit(("t", 0, 5), version=version, retention_time_ms=retention) == [ErrorCode.NONE]
    assert await client.committed() == {("t", 0): 5}
