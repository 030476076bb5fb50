import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.broker.server.harness import connected
from tests.support.running_broker import running

NOT_ASKED = -(2**31)
# Create, Alter, Describe, ClusterAction, DescribeConfigs, AlterConfigs, IdempotentWrite
ALL_CLUSTER_OPERATIONS = 0b1111110100000


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_this_one_broker(tmp_path, version):
    async with running(tmp_path, node_id=7, broker_rack="r1") as broker, connected(broker.server) as client:
        request = DescribeClusterRequest(include_cluster_authorized_operations=False)
        answer = await client.ask(ApiKey.DESCRIBE_CLUSTER, request, version)
        assert (answer.error_code, answer.error_message, answer.endpoint_type) == (ErrorCode.NONE, None, 1)
        assert answer.cluster_id == broker.cluster.cluster_id
        assert answer.controller_id == 7
        (found,) = answer.brokers
        assert (found.broker_id, found.host, found.rack, found.is_fenced) == (7, "127.0.0.1", "r1", False)
        assert found.port == broker.server.listeners[0].port
        assert answer.cluster_authorized_operations == NOT_ASKED


async def test_without_an_authorizer_everything_is_allowed(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        answer = await client.ask(ApiKey.DESCRIBE_CLUSTER, request, 0)
        assert answer.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (1, ErrorCode.NONE),
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
async def test_a_request_for_controllers_is_refused(tmp_path, endpoint_type, error):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=endpoint_type)
        answer = await client.ask(ApiKey.DESCRIBE_CLUSTER, request, 1)
        assert answer.error_code == error
        assert (answer.error_message is None) == (error == ErrorCode.NONE)
        assert bool(answer.brokers) == (error == ErrorCode.NONE)
        assert answer.endpoint_type == 1


async def test_the_cluster_keeps_its_id(tmp_path):
    ids = []
    for _ in range(2):
        async with running(tmp_path) as broker, connected(broker.server) as client:
            request = DescribeClusterRequest(include_cluster_authorized_operations=False)
            ids.append((await client.ask(ApiKey.DESCRIBE_CLUSTER, request, 0)).cluster_id)
    assert ids[0]
    assert ids[0] == ids[1]
