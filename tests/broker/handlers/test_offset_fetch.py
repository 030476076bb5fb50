"""OffsetFetch, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.client.requests.groups import offset_fetch
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.handlers.group_client import coordinating
from tests.support.group_versions import VERSIONS

UNKNOWN_ID = bytes(range(16))


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        await client.commit(("t", 0, 5), ("t", 2, 7), metadata="words", leader_epoch=3)
        yield client


async def ask(client, version, groups, **fields):
    """Of each group its error and, by topic and partition, what was found."""
    answer = await client.ask(ApiKey.OFFSET_FETCH, offset_fetch(version, groups, **fields), version)
    groups = answer.groups if version >= 8 else [answer]
    return [
        (
            group.error_code,
            {
                (topic.topic_id if version >= 10 else topic.name, each.partition_index): (
                    each.error_code,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.metadata,
                )
                for topic in group.topics
                for each in topic.partitions
            },
        )
        for group in groups
    ]


def named(client, version):
    return client.broker.cluster.topic("t").topic_id if version >= 10 else "t"


@pytest.mark.parametrize("version", VERSIONS[ApiKey.OFFSET_FETCH])
async def test_every_version_finds_what_was_committed(client, version):
    topic, epoch = named(client, version), 3 if version >= 5 else -1
    ((error, found),) = await ask(client, version, {"g": [(topic, [0, 1])]})
    assert error == ErrorCode.NONE
    assert found == {(topic, 0): (ErrorCode.NONE, 5, epoch, "words"), (topic, 1): (ErrorCode.NONE, -1, -1, "")}


@pytest.mark.parametrize("version", VERSIONS[ApiKey.OFFSET_FETCH][1:])
async def test_without_topics_all_are_described(client, version):
    ((_, found),) = await ask(client, version, {"g": None})
    assert {key: offset for key, (_, offset, _, _) in found.items()} == {
        (named(client, version), 0): 5,
        (named(client, version), 2): 7,
    }


@pytest.mark.parametrize("version", range(8, 11))
async def test_several_groups_are_asked_for_at_once(client, version):
    await client.commit(("t", 1, 9), group="other")
    topic = named(client, version)
    first, second, unknown = await ask(client, version, {"g": [(topic, [0])], "other": None, "unknown": None})
    assert first[1][topic, 0][1] == 5
    assert second[1][topic, 1][1] == 9
    assert unknown == (ErrorCode.NONE, {})


async def test_an_unknown_topic_id_is_an_error(client):
    ((_, found),) = await ask(client, 10, {"g": [(UNKNOWN_ID, [0, 1])]})
    assert found == {(UNKNOWN_ID, index): (ErrorCode.UNKNOWN_TOPIC_ID, -1, -1, "") for index in (0, 1)}


@pytest.mark.parametrize("version", range(7, 11))
async def test_what_is_committed_is_stable_without_transactions(client, version):
    ((error, found),) = await ask(client, version, {"g": None}, require_stable=True)
    assert (error, len(found)) == (ErrorCode.NONE, 2)


async def test_what_was_committed_for_an_earlier_topic_of_the_same_name_is_not_found_by_id(client):
    topic_id = client.broker.cluster.topic("t").topic_id
    offsets = client.broker.groups.shard("g").offsets
    committed = offsets.of_group("g")["t", 0]
    offsets.replay("g", TopicPartition("t", 0), committed._replace(topic_id=UNKNOWN_ID))
    ((_, found),) = await ask(client, 10, {"g": [(topic_id, [0, 2])]})
    assert found == {(topic_id, 0): (ErrorCode.NONE, -1, -1, ""), (topic_id, 2): (ErrorCode.NONE, 7, 3, "words")}
