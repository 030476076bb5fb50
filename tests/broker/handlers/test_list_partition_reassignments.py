from barnabas.broker.controller import znodes
from barnabas.client.requests.admin import list_partition_reassignments
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, running


async def test_on_one_broker_nothing_is_being_moved(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        for request in (
            list_partition_reassignments(every=True),
            list_partition_reassignments(),
            list_partition_reassignments(("t", [0, 1]), ("u", [0])),
        ):
            answer = await client.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, request, 0)
            assert (answer.error_code, answer.error_message, answer.topics) == (ErrorCode.NONE, None, [])


async def test_a_partition_that_is_being_moved(tmp_path):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        topic_id = await create_topic(broker, "t", partitions=2)
        still, moving = broker.cluster.topics["t"].partitions
        moving = moving._replace(replica_nodes=(8, 7), adding_replicas=(8,), removing_replicas=(7,))
        await broker.registry.set(znodes.topic_path("t"), znodes.write_topic(topic_id, [still, moving]))
        for request in (list_partition_reassignments(every=True), list_partition_reassignments(("t", [0, 1]))):
            (topic,) = (await client.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, request, 0)).topics
            (partition,) = topic.partitions
            assert (topic.name, partition.partition_index, partition.replicas) == ("t", 1, [8, 7])
            assert (partition.adding_replicas, partition.removing_replicas) == ([8], [7])
