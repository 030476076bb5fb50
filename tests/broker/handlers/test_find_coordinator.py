"""FindCoordinator, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.broker.controller.images import BrokerImage, Endpoint
from barnabas.client.requests.lookup import find_coordinator
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating
from tests.broker.transaction.cluster import Cluster
from tests.support.group_versions import VERSIONS

GROUP, TRANSACTION, SHARE = 0, 1, 2


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


async def ask(client, version, *keys, key_type=GROUP):
    return await client.ask(ApiKey.FIND_COORDINATOR, find_coordinator(version, *keys, key_type=key_type), version)


@pytest.mark.parametrize("version", range(4))
async def test_a_group_is_coordinated_by_this_broker(client, version):
    answer = await ask(client, version, "g")
    listener = client.broker.server.listeners[0]
    assert answer.error_code == ErrorCode.NONE
    assert (answer.node_id, answer.host, answer.port) == (client.broker.config.node_id, "127.0.0.1", listener.port)


@pytest.mark.parametrize("version", range(4, 7))
async def test_several_groups_are_asked_for_at_once(client, version):
    found = (await ask(client, version, "a", "b")).coordinators
    assert [(each.key, each.error_code, each.port) for each in found] == [
        (key, ErrorCode.NONE, client.broker.server.listeners[0].port) for key in "ab"
    ]
    assert (await ask(client, version)).coordinators == []


@pytest.mark.parametrize("version", VERSIONS[ApiKey.FIND_COORDINATOR][1:])
async def test_a_transactional_id_is_coordinated_by_this_broker_and_its_topic_is_created(tmp_path, version):
    async with coordinating(tmp_path, transaction_state_log_num_partitions=2) as client:
        answer = await ask(client, version, "t", key_type=TRANSACTION)
        found = answer.coordinators[0] if version >= 4 else answer
        assert (found.error_code, found.node_id) == (ErrorCode.NONE, client.broker.config.node_id)
        assert len(client.broker.replicas.of_topic("__transaction_state")) == 2


@pytest.mark.parametrize("version", VERSIONS[ApiKey.FIND_COORDINATOR][1:])
@pytest.mark.parametrize(
    ("key_type", "error"),
    [
        (SHARE, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.INVALID_REQUEST),
        (-1, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_other_things_have_no_coordinator(client, version, key_type, error):
    answer = await ask(client, version, "k", key_type=key_type)
    found = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.node_id, found.host, found.port) == (error, -1, "", -1)


class TestInACluster:
    @pytest.fixture
    async def cluster(self, client, monkeypatch):
        """Another broker, and topics of which both lead some partitions."""
        await client.broker.transactions.ensure_topic()
        broker, me = client.broker, client.broker.config.node_id
        cluster = Cluster(__consumer_offsets=[me, 2, -1], __transaction_state=[2])
        listener = broker.server.listeners[0].name
        other = BrokerImage(2, (Endpoint(listener, "PLAINTEXT", "elsewhere", 9093),))
        cluster.brokers = {**broker.cluster.brokers, 2: other}
        monkeypatch.setattr(broker, "cluster", cluster)
        return cluster

    async def test_it_is_the_leader_of_the_keys_partition(self, client, cluster):
        """The hash codes of a, b and c are 97, 98 and 99."""
        found = {each.key: each for each in (await ask(client, 4, "a", "b", "c")).coordinators}
        assert {key: each.node_id for key, each in found.items()} == {
            "a": 2,
            "b": -1,
            "c": client.broker.config.node_id,
        }
        assert (found["a"].host, found["a"].port) == ("elsewhere", 9093)
        assert found["b"].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        answer = await ask(client, 3, "any", key_type=TRANSACTION)
        assert (answer.node_id, answer.host) == (2, "elsewhere")

    async def test_there_is_none_on_a_broker_that_is_down(self, client, cluster):
        del cluster.brokers[2]
        assert (await ask(client, 3, "a")).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    async def test_there_is_none_before_this_broker_knows_the_topic(self, client, cluster):
        cluster.delete("__consumer_offsets")
        assert (await ask(client, 3, "a")).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_topic_that_cannot_be_created_yet_is_asked_for_again(client, monkeypatch):
    async def refuse(name):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE

    monkeypatch.setattr(client.broker.transactions, "_create_internal_topic", refuse)
    assert (await ask(client, 3, "a", key_type=TRANSACTION)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
