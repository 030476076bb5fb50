import pytest

from barnabas.client.requests.admin import delete_topics
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import ZERO_UUID
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, running

UNKNOWN_ID = bytes(range(16))


def outcomes(answer):
    return [(result.name, result.topic_id, result.error_code) for result in answer.responses]


async def test_every_version_deletes_topics_by_name(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        for version in range(1, 7):
            topic_id = await create_topic(broker, "t", partitions=2)
            answer = await client.ask(ApiKey.DELETE_TOPICS, delete_topics("t", "unknown"), version)
            unknown, deleted = answer.responses
            assert (deleted.name, deleted.error_code) == ("t", ErrorCode.NONE)
            assert deleted.topic_id == (topic_id if version >= 6 else ZERO_UUID)
            assert (unknown.name, unknown.error_code) == ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            assert (unknown.error_message is not None) == (version >= 5)
            assert not broker.cluster.topics
            assert broker.replicas.find("t", 0) is None
            assert not (tmp_path / "t-0").exists()


async def test_topics_are_deleted_by_id(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        topic_id = await create_topic(broker, "t")
        answer = await client.ask(ApiKey.DELETE_TOPICS, delete_topics(topic_id, UNKNOWN_ID, None), 6)
        assert outcomes(answer) == [
            (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID),
            (None, ZERO_UUID, ErrorCode.INVALID_REQUEST),
            ("t", topic_id, ErrorCode.NONE),
        ]


async def test_a_topic_that_is_named_twice_stays(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        topic_id = await create_topic(broker, "t")
        for request in (delete_topics("t", "t"), delete_topics(topic_id, topic_id), delete_topics("t", topic_id)):
            (result,) = (await client.ask(ApiKey.DELETE_TOPICS, request, 6)).responses
            assert result.error_code == ErrorCode.INVALID_REQUEST
        answer = await client.ask(ApiKey.DELETE_TOPICS, delete_topics(("t", topic_id)), 6)
        assert outcomes(answer) == [("t", topic_id, ErrorCode.INVALID_REQUEST)]
        assert list(broker.cluster.topics) == ["t"]


@pytest.mark.parametrize("version", range(1, 7))
async def test_where_nothing_may_be_deleted(tmp_path, version):
    async with running(tmp_path, delete_topic_enable=False) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        answer = await client.ask(ApiKey.DELETE_TOPICS, delete_topics("t", "unknown"), version)
        error = ErrorCode.INVALID_REQUEST if version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        assert outcomes(answer) == [("t", ZERO_UUID, error), ("unknown", ZERO_UUID, error)]
        assert list(broker.cluster.topics) == ["t"]


async def test_without_time_nothing_is_deleted(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        answer = await client.ask(ApiKey.DELETE_TOPICS, delete_topics("t", timeout_ms=0), 6)
        assert outcomes(answer) == [("t", ZERO_UUID, ErrorCode.REQUEST_TIMED_OUT)]
        assert list(broker.cluster.topics) == ["t"]


async def test_a_topic_that_is_created_again_is_another_one(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        first = await create_topic(broker, "t", partitions=40)
        await client.ask(ApiKey.DELETE_TOPICS, delete_topics("t"), 6)
        second = await create_topic(broker, "t", partitions=2)
        await broker.replicas.made("t")
        assert first != second
        assert broker.replicas.find(first, 0) is None
        assert broker.replicas.find(second, 0) is broker.replicas.find("t", 0)
        assert broker.replicas.find("t", 2) is None
        assert broker.replicas.find("t", 0).log.topic_id.bytes == second
