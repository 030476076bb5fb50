"""WriteTxnMarkers, as an administrator or another broker sends it."""

import asyncio

import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.server.harness import connected
from tests.broker.transaction.client import coordinating
from tests.support.running_broker import create_topic, partition, running
from tests.support.slow_replicas import SlowReplicas


@pytest.fixture
async def broker(tmp_path):
    async with running(tmp_path) as broker:
        await create_topic(broker, "t", partitions=3)
        yield broker


@pytest.fixture
async def client(broker):
    async with connected(broker.server) as client:
        yield client


def marker(*topics, producer_id=7, epoch=0, coordinator_epoch=0, commit=True, **fields):
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        topics=[WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics],
        **fields,
    )


async def write(client, *markers, version=1):
    """For each marker its producer, and for each of its partitions an error."""
    answer = await client.ask(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=list(markers)), version)
    return [
        (
            result.producer_id,
            {(topic.name, p.partition_index): p.error_code for topic in result.topics for p in topic.partitions},
        )
        for result in answer.markers
    ]


@pytest.mark.parametrize("version", [1, 2])
async def test_every_version_ends_transactions(broker, client, version):
    assert await write(
        client, marker(("t", [0, 2])), marker(("t", [0]), producer_id=8, commit=False), version=version
    ) == [
        (7, {("t", 0): ErrorCode.NONE, ("t", 2): ErrorCode.NONE}),
        (8, {("t", 0): ErrorCode.NONE}),
    ]
    assert [partition(broker, "t", index).log.end_offset for index in range(3)] == [2, 0, 1]


async def test_partitions_that_do_not_exist(client):
    assert await write(client, marker(("t", [0, 3]), ("unknown", [0]))) == [
        (
            7,
            {
                ("t", 0): ErrorCode.NONE,
                ("t", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("unknown", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            },
        )
    ]
    assert await write(client, marker(("unknown", [0]))) == [
        (7, {("unknown", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    ]


async def test_partitions_that_are_led_elsewhere(broker, client):
    partition(broker).follow(9, 1)
    assert await write(client, marker(("t", [0, 1]))) == [
        (7, {("t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER, ("t", 1): ErrorCode.NONE})
    ]


async def test_the_answer_waits_for_replicas(broker, client):
    slow = SlowReplicas(partition(broker))
    request = WriteTxnMarkersRequest(markers=[marker(("t", [0]))])
    asking = asyncio.get_running_loop().create_task(client.ask(ApiKey.WRITE_TXN_MARKERS, request, 1))
    assert not (await asyncio.wait([asking], timeout=0.05))[0]
    assert partition(broker).log.end_offset == 1
    slow.commit(partition(broker))
    assert (await asking).markers[0].topics[0].partitions[0].error_code == ErrorCode.NONE


async def test_a_marker_that_may_be_truncated_is_not_acknowledged(broker, client):
    slow = SlowReplicas(partition(broker))
    request = WriteTxnMarkersRequest(markers=[marker(("t", [0]))])
    asking = asyncio.get_running_loop().create_task(client.ask(ApiKey.WRITE_TXN_MARKERS, request, 1))
    await asyncio.wait([asking], timeout=0.05)
    slow.lose(partition(broker))
    assert (await asking).markers[0].topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_markers_of_outdated_epochs(client):
    await write(client, marker(("t", [0]), epoch=2, coordinator_epoch=3))
    stale_epoch = marker(("t", [0]), epoch=1, coordinator_epoch=3)
    stale_coordinator = marker(("t", [0]), epoch=2, coordinator_epoch=2)
    assert [errors["t", 0] for _, errors in await write(client, stale_epoch, stale_coordinator)] == [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ]


async def test_from_version_2_on_a_marker_of_an_epoch_that_is_known_may_only_be_a_repetition(client):
    assert await write(client, marker(("t", [0]), epoch=2, transaction_version=2), version=2) == [
        (7, {("t", 0): ErrorCode.NONE})
    ]
    assert await write(client, marker(("t", [0]), epoch=2, transaction_version=2), version=2) == [
        (7, {("t", 0): ErrorCode.NONE})
    ]


async def test_what_no_producer_can_have_sent(broker, client):
    for nonsense in (marker(("t", [0]), producer_id=-1), marker(("t", [0]), epoch=-1)):
        ((_, errors),) = await write(client, nonsense)
        assert errors == {("t", 0): ErrorCode.UNKNOWN_SERVER_ERROR}
    assert partition(broker).log.end_offset == 0


async def test_an_empty_request_is_answered(client):
    assert await write(client) == []
    assert await write(client, marker()) == [(7, {})]


async def test_the_transaction_log_accepts_no_marker(tmp_path):
    """Kafka writes it, and after the next start loses what follows it in that partition."""
    async with coordinating(tmp_path) as client:
        await client.init("known")
        end = partition(client.broker, "__transaction_state").log.end_offset
        assert await write(client, marker(("t", [0]), ("__transaction_state", [0, 1]))) == [
            (
                7,
                {
                    ("t", 0): ErrorCode.NONE,
                    ("__transaction_state", 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
                    ("__transaction_state", 1): ErrorCode.INVALID_TOPIC_EXCEPTION,
                },
            )
        ]
        assert partition(client.broker, "__transaction_state").log.end_offset == end
