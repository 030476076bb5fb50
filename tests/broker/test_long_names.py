"""Names as long as the protocol allows get an answer, whatever request they come in."""

import asyncio

import pytest

from barnabas.client.requests.admin import BROKER, SET, TOPIC, incremental_alter_configs
from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.decoder import LONGEST_STRING
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.broker.server.harness import connected, frame
from tests.support.running_broker import create_topic, running
from tests.support.sample_messages import sample

LONG = "x" * LONGEST_STRING
LONGEST_MESSAGE = 1000
# Any number will do: an answer takes milliseconds.
SECONDS = 60


@pytest.fixture
async def broker(tmp_path):
    settings = {"offsets_topic_num_partitions": 1, "transaction_state_log_num_partitions": 1}
    async with running(tmp_path, **settings) as broker:
        await create_topic(broker, "t")
        await broker.groups.ensure_topic()
        await broker.transactions.ensure_topic()
        yield broker


async def ask(broker, key, version, message):
    async with connected(broker.server) as client:
        client.send(frame(key, message, version, client_id=LONG))
        _, answer = await asyncio.wait_for(client.answer(key, version), SECONDS)
        return answer


async def test_every_request_with_long_names_is_answered(broker):
    for api in broker.server.dispatcher.apis.values():
        for version in {api.served.lowest, api.served.highest}:  # strings are written in one of two forms
            await ask(broker, api.key, version, sample(request_type(api.key), version, LONG))


async def test_settings_with_long_names_and_values_are_refused(broker):
    alterations = incremental_alter_configs(
        *[(TOPIC, "t", [(SET, LONG, LONG), (SET, LONG[1:], "")]), (BROKER, "0", [(SET, LONG, LONG)])],
        *[(BROKER, "", [(SET, "log.retention.ms", LONG)])],
    )
    for version in 0, 1:
        answer = await ask(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, version, alterations)
        refused = [(result.error_code != ErrorCode.NONE, len(result.error_message)) for result in answer.responses]
        assert refused == [(True, LONGEST_MESSAGE)] * 3


@pytest.mark.parametrize("instance_id", [None, LONG])
async def test_a_member_with_a_long_client_id_or_instance_id_joins_its_group(broker, instance_id):
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    for version in range(5 if instance_id else 0, 10):
        request = JoinGroupRequest(
            group_id=f"group-{version}",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[protocol],
        )
        answer = await ask(broker, ApiKey.JOIN_GROUP, version, request)
        if instance_id is None and version >= 4:
            assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
            request.member_id = answer.member_id
            answer = await ask(broker, ApiKey.JOIN_GROUP, version, request)
        assert answer.error_code == ErrorCode.NONE
        assert answer.member_id.startswith("xxx")
