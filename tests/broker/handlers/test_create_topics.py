import pytest

from barnabas.client.requests.admin import create_topics, new_topic
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import ZERO_UUID
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, partition, running

STATIC_BROKER, DYNAMIC_TOPIC, DEFAULT = 4, 1, 5


def codes(answer):
    return {topic.name: topic.error_code for topic in answer.topics}


async def test_every_version_creates_a_topic(tmp_path):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        for version in range(2, 8):
            name = f"topic-{version}"
            answer = await client.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic(name, 3)), version)
            (topic,) = answer.topics
            assert (topic.name, topic.error_code, topic.error_message) == (name, ErrorCode.NONE, None)
            assert (topic.num_partitions, topic.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
            assert bool(topic.configs) == (version >= 5)
            assert topic.topic_id == (broker.cluster.topics[name].topic_id if version >= 7 else ZERO_UUID)
            assert [broker.replicas.find(name, index) is not None for index in range(4)] == [True] * 3 + [False]
            assert (tmp_path / f"{name}-2").is_dir()


async def test_the_answer_tells_all_settings_in_order(tmp_path):
    async with running(tmp_path, log_retention_hours=24) as broker, connected(broker.server) as client:
        topic = new_topic("t", configs=[("flush.ms", " 5000 "), ("cleanup.policy", "compact")])
        (created,) = (await client.ask(ApiKey.CREATE_TOPICS, create_topics(topic), 7)).topics
        assert [config.name for config in created.configs] == sorted(config.name for config in created.configs)
        told = {config.name: (config.value, config.config_source) for config in created.configs}
        assert told["flush.ms"] == (" 5000 ", DYNAMIC_TOPIC)
        assert told["cleanup.policy"] == ("compact", DYNAMIC_TOPIC)
        assert told["retention.ms"] == ("86400000", STATIC_BROKER)
        assert told["segment.bytes"] == ("1073741824", DEFAULT)
        assert partition(broker, "t").log.config.flush_ms == 5000


async def test_a_manual_assignment(tmp_path):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        topic = new_topic("t", -1, -1, assignments=[(1, [7]), (0, [7])])
        (created,) = (await client.ask(ApiKey.CREATE_TOPICS, create_topics(topic), 7)).topics
        assert (created.error_code, created.num_partitions) == (ErrorCode.NONE, 2)
        refused = new_topic("u", -1, -1, assignments=[(0, [8])])
        answer = await client.ask(ApiKey.CREATE_TOPICS, create_topics(refused), 7)
        assert codes(answer) == {"u": ErrorCode.INVALID_REPLICA_ASSIGNMENT}


async def test_each_topic_has_an_outcome_of_its_own(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "there")
        answer = await client.ask(
            ApiKey.CREATE_TOPICS,
            create_topics(
                new_topic("new"),
                new_topic("there"),
                new_topic("a b"),
                new_topic("none", 0),
                new_topic("many", 1, 2),
                new_topic("odd", configs=[("bogus", "1")]),
                new_topic("twice"),
                new_topic("twice"),
            ),
            7,
        )
        assert codes(answer) == {
            "new": ErrorCode.NONE,
            "there": ErrorCode.TOPIC_ALREADY_EXISTS,
            "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "none": ErrorCode.INVALID_PARTITIONS,
            "many": ErrorCode.INVALID_REPLICATION_FACTOR,
            "odd": ErrorCode.INVALID_CONFIG,
            "twice": ErrorCode.INVALID_REQUEST,
        }
        refused = [topic for topic in answer.topics if topic.error_code]
        assert all(topic.error_message and not topic.configs and topic.topic_id == ZERO_UUID for topic in refused)
        assert sorted(broker.cluster.topics) == ["new", "there"]


async def test_validating_creates_nothing(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        request = create_topics(new_topic("t", 3), new_topic("u", 0), validate_only=True)
        answer = await client.ask(ApiKey.CREATE_TOPICS, request, 7)
        assert codes(answer) == {"t": ErrorCode.NONE, "u": ErrorCode.INVALID_PARTITIONS}
        assert answer.topics[0].num_partitions == 3
        assert not broker.cluster.topics
        assert not list(tmp_path.glob("t-*"))


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_without_time_nothing_is_created(tmp_path, timeout_ms):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        answer = await client.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("t"), timeout_ms=timeout_ms), 7)
        assert codes(answer) == {"t": ErrorCode.REQUEST_TIMED_OUT}
        assert not broker.cluster.topics


async def test_a_large_topic_is_there_when_the_answer_comes(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await client.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("t", 100)), 7)
        assert broker.replicas.find("t", 99) is not None
