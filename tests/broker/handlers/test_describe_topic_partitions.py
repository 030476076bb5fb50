import pytest

from barnabas.client.requests.admin import describe_topic_partitions
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, running

# Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs
ALL_TOPIC_OPERATIONS = 0b110111111000


def told(answer):
    return [(topic.name, [p.partition_index for p in topic.partitions]) for topic in answer.topics]


def cursor(answer):
    return answer.next_cursor and (answer.next_cursor.topic_name, answer.next_cursor.partition_index)


async def ask(client, *topics, **options):
    return await client.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, describe_topic_partitions(*topics, **options), 0)


async def test_topics_come_in_order_with_all_their_fields(tmp_path):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        topic_id = await create_topic(broker, "b", partitions=2)
        await create_topic(broker, "a")
        answer = await ask(client, "b", "a", "b")
        assert told(answer) == [("a", [0]), ("b", [0, 1])]
        assert answer.next_cursor is None
        topic = answer.topics[1]
        assert (topic.error_code, topic.topic_id, topic.is_internal) == (ErrorCode.NONE, topic_id, False)
        assert topic.topic_authorized_operations == ALL_TOPIC_OPERATIONS
        partition = topic.partitions[1]
        assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (ErrorCode.NONE, 7, 0)
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([7], [7], [])
        assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


async def test_page_by_page(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "a", partitions=2)
        await create_topic(broker, "b", partitions=4)
        pages = []
        start = None
        while not pages or start:
            answer = await ask(client, limit=3, cursor=start)
            pages.append(told(answer))
            start = cursor(answer)
        assert pages == [[("a", [0, 1]), ("b", [0])], [("b", [1, 2, 3])]]


@pytest.mark.parametrize(
    ("limit", "start", "partitions", "following"),
    [
        (2, None, [("a", [0, 1])], ("b", 0)),
        (1, ("a", 1), [("a", [1])], ("b", 0)),
        (1, ("b", 1), [("b", [1])], None),
        (9, ("b", 2), [("b", [])], None),
        (0, None, [("a", [0])], ("a", 1)),
        (-1, None, [("a", [0])], ("a", 1)),
    ],
)
async def test_where_a_page_ends(tmp_path, limit, start, partitions, following):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "a", partitions=2)
        await create_topic(broker, "b", partitions=2)
        answer = await ask(client, "a", "b", limit=limit, cursor=start)
        assert (told(answer), cursor(answer)) == (partitions, following)


async def test_the_broker_limits_a_page_too(tmp_path):
    async with running(tmp_path, max_request_partition_size_limit=2) as broker, connected(broker.server) as client:
        await create_topic(broker, "a", partitions=3)
        answer = await ask(client, "a")
        assert (told(answer), cursor(answer)) == ([("a", [0, 1])], ("a", 2))


async def test_topics_that_do_not_exist(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        answer = await ask(client, "t", "unknown", "a b")
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("t", ErrorCode.NONE),
            ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        answer = await ask(client, "t", "unknown", limit=1)
        assert (told(answer), cursor(answer)) == ([("t", [0])], ("unknown", 0))


@pytest.mark.parametrize("start", [("t", -1), ("other", 0)])
async def test_invalid_cursors(tmp_path, start):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        (topic,) = (await ask(client, "t", cursor=start)).topics
        assert (topic.name, topic.error_code, topic.partitions) == ("t", ErrorCode.INVALID_REQUEST, [])
