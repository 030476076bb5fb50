from barnabas.client.requests.admin import create_partitions
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, partition, running


def codes(answer):
    return {result.name: result.error_code for result in answer.results}


async def test_every_version_gives_a_topic_more_partitions(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        topic_id = await create_topic(broker, "t", partitions=1, retention_ms=1000)
        first = partition(broker, "t")
        for version in range(4):
            answer = await client.ask(ApiKey.CREATE_PARTITIONS, create_partitions(("t", version + 2, None)), version)
            assert codes(answer) == {"t": ErrorCode.NONE}
            assert len(broker.cluster.topics["t"].partitions) == version + 2
            assert partition(broker, "t", version + 1).log.config.retention_ms == 1000
            assert broker.replicas.find("t", version + 2) is None
        assert broker.cluster.topics["t"].topic_id == topic_id
        assert partition(broker, "t") is first


async def test_requests_that_are_refused(tmp_path):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        for name in ("same", "less", "odd", "twice", "good"):
            await create_topic(broker, name, partitions=2)
        answer = await client.ask(
            ApiKey.CREATE_PARTITIONS,
            create_partitions(
                ("same", 2, None),
                ("less", 1, None),
                ("odd", 3, [[8]]),
                ("twice", 3, None),
                ("twice", 4, None),
                ("unknown", 3, None),
                ("good", 3, [[7]]),
            ),
            3,
        )
        assert codes(answer) == {
            "same": ErrorCode.INVALID_PARTITIONS,
            "less": ErrorCode.INVALID_PARTITIONS,
            "odd": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "twice": ErrorCode.INVALID_REQUEST,
            "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "good": ErrorCode.NONE,
        }
        assert {name: len(topic.partitions) for name, topic in broker.cluster.topics.items()} == {
            **dict.fromkeys(("same", "less", "odd", "twice"), 2),
            "good": 3,
        }


async def test_validating_and_no_time_change_nothing(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        answer = await client.ask(ApiKey.CREATE_PARTITIONS, create_partitions(("t", 3, None), validate_only=True), 3)
        assert codes(answer) == {"t": ErrorCode.NONE}
        answer = await client.ask(ApiKey.CREATE_PARTITIONS, create_partitions(("t", 3, None), timeout_ms=0), 3)
        assert codes(answer) == {"t": ErrorCode.REQUEST_TIMED_OUT}
        assert len(broker.cluster.topics["t"].partitions) == 1


async def test_many_new_partitions_are_there_when_the_answer_comes(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        await client.ask(ApiKey.CREATE_PARTITIONS, create_partitions(("t", 100, None)), 3)
        assert broker.replicas.find("t", 99) is not None
