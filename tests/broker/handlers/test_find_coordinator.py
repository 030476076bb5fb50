"""FindCoordinator, as a client sees it that speaks to a real broker over a socket."""

import pytest

from protocol.api import ApiKey
from protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating
from tests.support.group_requests import VERSIONS, find_coordinator

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
async def test_a_transactional_id_is_coordinated_by_this_broker_and_its_topic_is_made(tmp_path, version):
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
