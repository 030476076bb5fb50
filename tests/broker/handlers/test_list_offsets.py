"""ListOffsets, as a client sees it that speaks to a real broker over a socket."""

import pytest

from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType, build_end_transaction_marker
from tests.broker.server.harness import connected
from tests.support.requests import EARLIEST, LATEST, batch, list_offsets, produce
from tests.support.running_broker import create_topic, partition, running

VERSION = 11
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
READ_COMMITTED = 1
NOTHING = (ErrorCode.NONE, -1, -1, -1)


@pytest.fixture
async def broker(tmp_path):
    async with running(tmp_path, log_retention_ms=-1) as broker:
        await create_topic(broker, "t", partitions=2)
        yield broker


@pytest.fixture
async def client(broker):
    async with connected(broker.server) as client:
        yield client


async def append(client, *record_sets):
    for records in record_sets:
        response = await client.ask(ApiKey.PRODUCE, produce(("t", 0, records)), 12)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


async def ask(client, *parts, version=VERSION, **fields):
    """For each part its error, offset, timestamp and leader epoch."""
    response = await client.ask(ApiKey.LIST_OFFSETS, list_offsets(*parts, **fields), version)
    return [
        (answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch)
        for topic in response.topics
        for answer in topic.partitions
    ]


async def find(client, timestamp, **fields):
    """The offset and the timestamp that are found, in the partition that has records."""
    ((error, offset, found, _),) = await ask(client, ("t", 0, timestamp), **fields)
    assert error == ErrorCode.NONE
    return offset, found


async def test_every_version_knows_the_first_and_the_last(broker, client):
    await append(client, batch(b"a", b"b"), batch(b"c"), batch(b"d"))
    partition(broker).log.increment_log_start_offset(2)
    for version in range(1, 12):
        epoch = 0 if version >= 4 else -1
        assert await ask(client, ("t", 0, EARLIEST), ("t", 1, EARLIEST), version=version) == [
            (ErrorCode.NONE, 2, -1, epoch),
            (ErrorCode.NONE, 0, -1, epoch),
        ]
        assert await ask(client, ("t", 0, LATEST), ("t", 1, LATEST), version=version) == [
            (ErrorCode.NONE, 4, -1, epoch),
            (ErrorCode.NONE, 0, -1, epoch),
        ]


async def test_a_time_finds_the_first_record_that_is_not_earlier(client):
    await append(client, batch(b"a", timestamp=1000), batch(b"b", b"c", timestamp=2000), batch(b"d", timestamp=3000))
    for timestamp, expected in (
        (0, (0, 1000)),
        (1000, (0, 1000)),
        (1001, (1, 2000)),
        (2001, (3, 3000)),
        (3000, (3, 3000)),
        (3001, (-1, -1)),
    ):
        assert await find(client, timestamp) == expected


async def test_time_may_run_backwards(client):
    await append(client, batch(b"a", timestamp=2000), batch(b"b", timestamp=1000), batch(b"c", timestamp=3000))
    assert await find(client, 1500) == (0, 2000)
    assert await find(client, 2500) == (2, 3000)


@pytest.mark.parametrize("compression", CompressionType)
async def test_a_record_is_found_within_its_batch(client, compression):
    await append(client, batch(b"a", timestamp=1000), batch(b"b", b"c", timestamp=2000, compression=compression))
    assert await find(client, 1500) == (1, 2000)


async def test_deleted_records_are_not_found(broker, client):
    await append(client, batch(b"a", b"b", b"c", timestamp=1000))
    partition(broker).log.increment_log_start_offset(2)
    assert await find(client, 0) == (2, 1000)


async def test_the_latest_time(client):
    assert await ask(client, ("t", 0, MAX_TIMESTAMP)) == [NOTHING]
    await append(client, batch(b"a", timestamp=1000), batch(b"b", timestamp=3000), batch(b"c", timestamp=2000))
    assert await find(client, MAX_TIMESTAMP) == (1, 3000)


async def test_nothing_is_tiered(client):
    await append(client, batch(b"a"))
    assert await find(client, EARLIEST_LOCAL) == (0, -1)
    assert await ask(client, ("t", 0, LATEST_TIERED)) == [NOTHING]
    assert await ask(client, ("t", 0, EARLIEST_PENDING_UPLOAD)) == [NOTHING]


async def test_newer_questions_are_for_newer_versions(client):
    since = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11, -7: 99, -(2**63): 99}
    for version in range(1, 12):
        for timestamp, first in since.items():
            ((error, *_),) = await ask(client, ("t", 0, timestamp), version=version)
            assert error == (ErrorCode.NONE if version >= first else ErrorCode.UNSUPPORTED_VERSION)


async def test_what_is_not_committed_is_not_told_to_those_who_read_committed(broker, client):
    def append_now(records):
        assert not isinstance(partition(broker).append_now(memoryview(records), 0), Exception)

    await append(client, batch(b"a", timestamp=1000))
    transactional = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    append_now(bytearray(batch(b"b", timestamp=2000, **transactional)))
    assert await find(client, LATEST) == (2, -1)
    assert await find(client, LATEST, isolation_level=READ_COMMITTED) == (1, -1)
    for timestamp in (2000, MAX_TIMESTAMP):
        assert await find(client, timestamp) == (1, 2000)
        assert await find(client, timestamp, isolation_level=READ_COMMITTED) == (-1, -1)
    append_now(
        build_end_transaction_marker(
            ControlType.COMMIT, timestamp=2000, producer_id=7, producer_epoch=0, coordinator_epoch=0
        )
    )
    assert await find(client, LATEST, isolation_level=READ_COMMITTED) == (3, -1)
    assert await find(client, 2000, isolation_level=READ_COMMITTED) == (1, 2000)


async def test_the_epoch_is_that_of_the_record(broker, client):
    await append(client, batch(b"a", timestamp=1000))
    partition(broker).lead(4, 1, 1)
    await append(client, batch(b"b", timestamp=2000))
    assert await ask(client, ("t", 0, EARLIEST)) == [(ErrorCode.NONE, 0, -1, 0)]
    assert await ask(client, ("t", 0, 1000)) == [(ErrorCode.NONE, 0, 1000, 0)]
    assert await ask(client, ("t", 0, 2000)) == [(ErrorCode.NONE, 1, 2000, 4)]
    assert await ask(client, ("t", 0, LATEST)) == [(ErrorCode.NONE, 2, -1, 4)]


async def test_a_client_may_believe_in_another_leader_epoch(broker, client):
    partition(broker).lead(3, 1, 1)
    for epoch, expected in (
        (-1, ErrorCode.NONE),
        (3, ErrorCode.NONE),
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        ((error, *_),) = await ask(client, ("t", 0, LATEST), current_leader_epoch=epoch)
        assert error == expected


async def test_what_is_not_there(client):
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
    parts = [("unknown", 0, LATEST), ("t", 9, LATEST), ("t", -1, LATEST), ("t", 1, LATEST)]
    assert await ask(client, *parts) == [unknown, unknown, unknown, (ErrorCode.NONE, 0, -1, 0)]


async def test_a_partition_that_is_asked_for_twice_is_refused_once(client):
    refused = (ErrorCode.INVALID_REQUEST, -1, -1, -1)
    parts = [("t", 0, LATEST), ("t", 1, LATEST), ("t", 0, EARLIEST)]
    assert await ask(client, *parts) == [refused, (ErrorCode.NONE, 0, -1, 0)]


async def test_an_isolation_level_that_nobody_knows_finds_nothing(broker, client):
    assert await ask(client, ("t", 0, LATEST), isolation_level=2) == [(ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1, -1)]
