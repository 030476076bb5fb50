from barnabas.client.requests.admin import alter_partition_reassignments
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, running


def outcomes(answer):
    return [
        (topic.name, result.partition_index, result.error_code)
        for topic in answer.responses
        for result in topic.partitions
    ]


async def test_every_version_answers_each_partition(tmp_path):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", partitions=3)
        before = broker.cluster.topics["t"]
        request = alter_partition_reassignments(
            ("t", 0, [7]), ("t", 1, [8]), ("t", 2, []), ("t", 3, [7]), ("t", 0, None), ("u", 0, [7])
        )
        for version in range(2):
            answer = await client.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, version)
            assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
            assert outcomes(answer) == [
                ("t", 0, ErrorCode.NONE),
                ("t", 1, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
                ("t", 2, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
                ("t", 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                ("t", 0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
                ("u", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ]
        assert broker.cluster.topics["t"] is before


async def test_a_request_that_forbids_other_numbers_of_replicas_is_answered_so(tmp_path):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        answer = await client.ask(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS, alter_partition_reassignments(("t", 0, [7]), allow_change=False), 1
        )
        assert answer.allow_replication_factor_change is False
        assert outcomes(answer) == [("t", 0, ErrorCode.NONE)]


async def test_without_time_nothing_moves(tmp_path):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        answer = await client.ask(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS, alter_partition_reassignments(("t", 0, [7]), timeout_ms=0), 1
        )
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert outcomes(answer) == [("t", 0, ErrorCode.REQUEST_TIMED_OUT)]
