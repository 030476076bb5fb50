from barnabas.broker.controller import znodes
from barnabas.broker.testing.settling import settle
from barnabas.client.requests.admin import elect_leaders
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.running_broker import cluster_of, create_topic, partition, running

PREFERRED, UNCLEAN = 0, 1


def outcomes(answer):
    return [
        (topic.topic, [(result.partition_id, result.error_code) for result in topic.partition_result])
        for topic in answer.replica_election_results
    ]


async def test_every_version_says_that_no_election_is_needed(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", partitions=2)
        for version in range(3):
            answer = await client.ask(
                ApiKey.ELECT_LEADERS, elect_leaders(("t", [1, 0, 2]), ("u", [0]), ("t", [0])), version
            )
            assert answer.error_code == ErrorCode.NONE
            not_needed, unknown = ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert outcomes(answer) == [
                ("t", [(1, not_needed), (0, not_needed), (2, unknown)]),
                ("u", [(0, unknown)]),
                ("t", [(0, not_needed)]),
            ]
            answer = await client.ask(ApiKey.ELECT_LEADERS, elect_leaders(every=True), version)
            assert outcomes(answer) == [("t", [])]


async def test_a_partition_without_a_leader_gets_one_before_anybody_asks(tmp_path):
    async with running(tmp_path) as broker:
        await create_topic(broker, "t", partitions=2)
        led = broker.cluster.partition("t", 1)
        state = znodes.write_state(led._replace(leader_id=-1), broker.cluster.controller_epoch)
        await broker.registry.set(znodes.state_path("t", 1), state)
        await settle(cluster_of(broker))
        elected = broker.cluster.partition("t", 1)
        assert (elected.leader_id, elected.leader_epoch) == (0, led.leader_epoch + 1)
        assert partition(broker, "t", 1).leader_epoch == led.leader_epoch + 1


async def test_requests_that_are_refused_as_a_whole(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        for request, error in (
            (elect_leaders(("t", [0]), election_type=2), ErrorCode.INVALID_REQUEST),
            (elect_leaders(("t", [0]), timeout_ms=0), ErrorCode.REQUEST_TIMED_OUT),
        ):
            answer = await client.ask(ApiKey.ELECT_LEADERS, request, 2)
            assert answer.error_code == error
            assert outcomes(answer) == [("t", [(0, error)])]
        answer = await client.ask(ApiKey.ELECT_LEADERS, elect_leaders(every=True, election_type=2), 2)
        assert (answer.error_code, outcomes(answer)) == (ErrorCode.INVALID_REQUEST, [])
        answer = await client.ask(ApiKey.ELECT_LEADERS, elect_leaders(election_type=2), 2)
        assert (answer.error_code, outcomes(answer)) == (ErrorCode.NONE, [])
