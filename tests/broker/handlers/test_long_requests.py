"""Requests with very many elements: other clients are answered meanwhile, and every element gets its answer."""

import asyncio
from functools import partial

import pytest

from barnabas.broker.config import OperationKind
from barnabas.broker.config.resources import ResourceType
from barnabas.broker.config_resources import MOST_SETTINGS
from barnabas.broker.controller.results import MAX_PARTITIONS_PER_REQUEST
from barnabas.broker.group.topics import MOST_NAMES
from barnabas.broker.server import pieces
from barnabas.client.requests import admin, data, groups, lookup, transactions
from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.broker.server.harness import connected, frame
from tests.support.running_broker import create_topic, running

MANY = 3000
NAMES = [f"name-{number}" for number in range(MANY)]
PARTS = [(name, 0) for name in NAMES]


def quotas(kinds, keys=()):
    entity = [RequestEntityData(entity_type=kind, entity_name=None) for kind in kinds]
    entry = RequestEntryData(entity=entity, ops=[OpData(key=key, value=1.0, remove=False) for key in keys])
    return AlterClientQuotasRequest(entries=[entry], validate_only=False)


LONG = {
    ApiKey.METADATA: lookup.metadata(NAMES),
    ApiKey.FIND_COORDINATOR: lookup.find_coordinator(6, *NAMES),
    ApiKey.DESCRIBE_GROUPS: DescribeGroupsRequest(groups=NAMES),
    ApiKey.DELETE_GROUPS: groups.delete_groups(*NAMES),
    ApiKey.LEAVE_GROUP: groups.leave_group(5, "g", *NAMES),
    ApiKey.OFFSET_FETCH: groups.offset_fetch(9, {"g": [(name, [0]) for name in NAMES]}),
    ApiKey.OFFSET_COMMIT: groups.offset_commit("g", *[("t", index, 0) for index in range(MANY)]),
    ApiKey.OFFSET_DELETE: groups.offset_delete("g", *PARTS),
    ApiKey.DESCRIBE_TRANSACTIONS: DescribeTransactionsRequest(transactional_ids=NAMES),
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn(3, "tx", 0, 0, *PARTS),
    ApiKey.TXN_OFFSET_COMMIT: transactions.txn_offset_commit("tx", "g", 0, 0, *[(name, 0, 0) for name in NAMES]),
    ApiKey.WRITE_TXN_MARKERS: transactions.write_txn_markers(0, 0, *PARTS),
    ApiKey.LIST_OFFSETS: data.list_offsets(*[(name, 0, -1) for name in NAMES]),
    ApiKey.FETCH: data.fetch(*[(name, 0, 0) for name in NAMES]),
    ApiKey.CREATE_TOPICS: admin.create_topics(*map(admin.new_topic, [*NAMES, *NAMES])),
    ApiKey.DELETE_TOPICS: admin.delete_topics(*NAMES),
    ApiKey.CREATE_PARTITIONS: admin.create_partitions(*[(name, 3) for name in NAMES]),
    ApiKey.DELETE_RECORDS: admin.delete_records(*[(name, 0, 0) for name in NAMES]),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: admin.describe_topic_partitions(*NAMES),
    ApiKey.DESCRIBE_LOG_DIRS: admin.describe_log_dirs(*[(name, [0]) for name in NAMES]),
    ApiKey.DESCRIBE_PRODUCERS: admin.describe_producers(*[(name, [0]) for name in NAMES]),
    ApiKey.ELECT_LEADERS: admin.elect_leaders(*[(name, [0]) for name in NAMES]),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: DescribeUserScramCredentialsRequest(
        users=[UserName(name=n) for n in NAMES]
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=name, mechanism=1) for name in NAMES], upsertions=[]
    ),
    ApiKey.LIST_TRANSACTIONS: ListTransactionsRequest(state_filters=NAMES, producer_id_filters=[]),
    ApiKey.LIST_GROUPS: ListGroupsRequest(states_filter=NAMES, types_filter=[]),
    ApiKey.DESCRIBE_CONFIGS: admin.describe_configs((ResourceType.TOPIC, "t", NAMES)),
    ApiKey.ALTER_CLIENT_QUOTAS: quotas(NAMES),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: admin.alter_partition_reassignments(*[(name, 0, [0]) for name in NAMES]),
}
BY_NAME = {ApiKey.OFFSET_FETCH: 9, ApiKey.OFFSET_COMMIT: 9, ApiKey.FETCH: 12, ApiKey.ADD_PARTITIONS_TO_TXN: 3}


def version_of(key):
    return BY_NAME.get(key, request_type(key).versions.highest)


@pytest.fixture
async def broker(tmp_path):
    few = {"transaction_state_log_num_partitions": 1, "offsets_topic_num_partitions": 1}
    async with running(tmp_path, auto_create_topics_enable=False, **few) as broker:
        await create_topic(broker, "t")
        await broker.groups.ensure_topic()
        await broker.transactions.ensure_topic()
        yield broker


@pytest.mark.parametrize("key", LONG, ids=lambda key: key.api_name)
async def test_others_are_answered_meanwhile(broker, key, monkeypatch):
    monkeypatch.setattr(pieces, "_SECONDS_PER_PIECE", 0)  # a step at a time, however fast this machine is
    monkeypatch.setattr(pieces, "_SECONDS_PER_TURN", 0)
    async with connected(broker.server) as client, connected(broker.server) as other:
        client.send(frame(key, LONG[key], version_of(key)))
        answer = asyncio.ensure_future(client.answer(key, version_of(key)))
        answered = 0
        while not answer.done() and answered < 6:
            await other.ask(ApiKey.API_VERSIONS, ApiVersionsRequest())
            answered += 1
        await answer
    assert answered == 6


@pytest.mark.parametrize(
    ("key", "heartbeat"),
    [
        (
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            partial(ConsumerGroupHeartbeatRequest, rebalance_timeout_ms=1000, topic_partitions=[]),
        ),
        (ApiKey.SHARE_GROUP_HEARTBEAT, ShareGroupHeartbeatRequest),
    ],
    ids=["consumer", "share"],
)
async def test_a_member_subscribes_to_a_bounded_number_of_names(broker, key, heartbeat):
    """The group examines them all at once."""
    errors = []
    async with connected(broker.server) as client:
        for count in (MOST_NAMES, MOST_NAMES + 1):
            names = [f"{number:x}" for number in range(count)]
            member = heartbeat(group_id=key.api_name, member_id="m", member_epoch=0, subscribed_topic_names=names)
            errors.append((await client.ask(key, member, version_of(key))).error_code)
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


async def test_one_request_creates_a_bounded_number_of_topics(broker):
    topics = [admin.new_topic(f"new-{number}") for number in range(MAX_PARTITIONS_PER_REQUEST + 1)]
    async with connected(broker.server) as client:
        answer = await client.ask(ApiKey.CREATE_TOPICS, admin.create_topics(*topics), version_of(ApiKey.CREATE_TOPICS))
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.POLICY_VIOLATION}
    assert len(answer.topics) == len(topics)


@pytest.mark.parametrize("alter", ["all", "some"])
async def test_one_request_names_a_bounded_number_of_settings_of_a_resource(broker, alter):
    names = [f"setting-{number}" for number in range(MOST_SETTINGS + 1)]
    if alter == "all":
        key, message = ApiKey.ALTER_CONFIGS, admin.alter_configs((ResourceType.TOPIC, "t", [(n, "1") for n in names]))
    else:
        operations = [(OperationKind.SET, name, "1") for name in names]
        key = ApiKey.INCREMENTAL_ALTER_CONFIGS
        message = admin.incremental_alter_configs((ResourceType.TOPIC, "t", operations))
    async with connected(broker.server) as client:
        answer = await client.ask(key, message, version_of(key))
    assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("message", [quotas(NAMES), quotas(["user"], NAMES)], ids=["parts", "quotas"])
async def test_one_entity_has_a_bounded_number_of_parts_and_quotas(broker, message):
    async with connected(broker.server) as client:
        answer = await client.ask(ApiKey.ALTER_CLIENT_QUOTAS, message, version_of(ApiKey.ALTER_CLIENT_QUOTAS))
    assert [entry.error_code for entry in answer.entries] == [ErrorCode.INVALID_REQUEST]
    asked = [part.entity_type for part in message.entries[0].entity]
    assert [part.entity_type for part in answer.entries[0].entity] == asked


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            AlterShareGroupOffsetsRequest(
                group_id="g",
                topics=[
                    AlterShareGroupOffsetsRequestTopic(topic_name=f"{number:x}", partitions=[])
                    for number in range(MOST_NAMES + 1)
                ],
            ),
        ),
        (
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
            DeleteShareGroupOffsetsRequest(
                group_id="g",
                topics=[
                    DeleteShareGroupOffsetsRequestTopic(topic_name=f"{number:x}") for number in range(MOST_NAMES + 1)
                ],
            ),
        ),
    ],
    ids=["alter", "delete"],
)
async def test_one_request_moves_a_share_group_in_a_bounded_number_of_topics(broker, key, message):
    async with connected(broker.server) as client:
        answer = await client.ask(key, message, version_of(key))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


async def test_a_new_topic_has_a_bounded_number_of_settings(broker):
    new = admin.new_topic("new", configs=[(f"setting-{number}", "1") for number in range(MOST_SETTINGS + 1)])
    async with connected(broker.server) as client:
        message = admin.create_topics(new, admin.new_topic("other"))
        answer = await client.ask(ApiKey.CREATE_TOPICS, message, version_of(ApiKey.CREATE_TOPICS))
    errors = {topic.name: topic.error_code for topic in answer.topics}
    assert errors == {"new": ErrorCode.INVALID_CONFIG, "other": ErrorCode.NONE}
