"""ListOffsets, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.client.requests.data import EARLIEST, LATEST, list_offsets, produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.builder import frame_batch
from barnabas.protocol.records.compression import CompressionType, compress
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.protocol.records.record import write_record
from tests.broker.server.harness import connected, frame
from tests.support.batches import batch
from tests.support.running_broker import create_topic, partition, running

VERSION = 11
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
READ_COMMITTED = 1
NOTHING = (ErrorCode.NONE, -1, -1, -1)
NOW = 1_000_000


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


async def test_readers_of_committed_data_do_not_see_what_is_not_committed(broker, client):
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
    partition(broker).lead(4)
    await append(client, batch(b"b", timestamp=2000))
    assert await ask(client, ("t", 0, EARLIEST)) == [(ErrorCode.NONE, 0, -1, 0)]
    assert await ask(client, ("t", 0, 1000)) == [(ErrorCode.NONE, 0, 1000, 0)]
    assert await ask(client, ("t", 0, 2000)) == [(ErrorCode.NONE, 1, 2000, 4)]
    assert await ask(client, ("t", 0, LATEST)) == [(ErrorCode.NONE, 2, -1, 4)]


async def test_a_client_may_expect_another_leader_epoch(broker, client):
    partition(broker).lead(3)
    for epoch, expected in (
        (-1, ErrorCode.NONE),
        (3, ErrorCode.NONE),
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        ((error, *_),) = await ask(client, ("t", 0, LATEST), current_leader_epoch=epoch)
        assert error == expected


async def test_only_the_leader_answers(broker, client):
    partition(broker).follow(9, 3)
    not_here = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1, -1)
    assert await ask(client, ("t", 0, LATEST)) == [not_here]
    assert await ask(client, ("t", 0, EARLIEST), current_leader_epoch=2) == [
        (ErrorCode.FENCED_LEADER_EPOCH, -1, -1, -1)
    ]
    ((error, *_),) = await ask(client, ("t", 0, LATEST), replica_id=-2)  # a tool that looks at any replica
    assert error == ErrorCode.NONE


async def test_followers_ask_for_the_end_of_the_log(broker, client):
    partition(broker).lead(1, 1, (broker.config.node_id, 9), (broker.config.node_id, 9))
    partition(broker).append_now(memoryview(bytearray(batch(b"a"))), 0)
    assert await find(client, LATEST) == (0, -1)
    assert await find(client, LATEST, replica_id=9) == (1, -1)


async def test_a_new_leader_does_not_know_yet_what_is_committed(broker, client):
    await append(client, batch(b"a", timestamp=1000))
    found = partition(broker)
    found.log.high_watermark = 0  # as on a follower that has not learned about it
    found.lead(1, 1, (broker.config.node_id, 9), (broker.config.node_id, 9))
    not_yet = [(ErrorCode.OFFSET_NOT_AVAILABLE, -1, -1, -1)]
    assert await ask(client, ("t", 0, LATEST)) == not_yet
    assert await ask(client, ("t", 0, LATEST), version=4) == [(ErrorCode.LEADER_NOT_AVAILABLE, -1, -1, -1)]
    assert await ask(client, ("t", 0, 1000)) == not_yet
    assert await find(client, EARLIEST) == (0, -1)
    found.follower_fetched(9, 1, 0, 1)
    assert await find(client, LATEST) == (1, -1)
    assert await find(client, 1000) == (0, 1000)


async def test_partitions_that_do_not_exist(client):
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
    parts = [("unknown", 0, LATEST), ("t", 9, LATEST), ("t", -1, LATEST), ("t", 1, LATEST)]
    assert await ask(client, *parts) == [unknown, unknown, unknown, (ErrorCode.NONE, 0, -1, 0)]


async def test_a_partition_that_is_asked_for_twice_is_refused_once(client):
    refused = (ErrorCode.INVALID_REQUEST, -1, -1, -1)
    parts = [("t", 0, LATEST), ("t", 1, LATEST), ("t", 0, EARLIEST)]
    assert await ask(client, *parts) == [refused, (ErrorCode.NONE, 0, -1, 0)]


async def test_an_unknown_isolation_level_finds_nothing(broker, client):
    assert await ask(client, ("t", 0, LATEST), isolation_level=2) == [(ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1, -1)]


class TestHostileBatches:
    """A log may contain a batch whose header does not match its records."""

    @staticmethod
    def put(broker, data, count=1, *, codec=CompressionType.NONE, base_timestamp=NOW, max_timestamp=NOW):
        fields = (codec, count - 1, base_timestamp, max_timestamp, -1, -1, -1, count)
        partition(broker).append_now(memoryview(frame_batch(compress(codec, data), fields)), NOW)

    @staticmethod
    def records(*records):
        """Encoded records with these offset deltas and timestamp deltas."""
        data = bytearray()
        for offset_delta, timestamp_delta in records:
            write_record(data, offset_delta, timestamp_delta, b"k", b"v")
        return data

    async def both(self, client):
        """What a search by time and one for the latest time find."""
        return await ask(client, ("t", 0, NOW - 10)), await ask(client, ("t", 0, MAX_TIMESTAMP))

    async def test_a_base_timestamp_at_the_end_of_time(self, broker, client):
        self.put(broker, self.records((0, 0)), base_timestamp=2**63 - 1)
        found = [(ErrorCode.NONE, 0, 2**63 - 1, 0)]
        assert await self.both(client) == (found, found)

    @pytest.mark.parametrize("delta", [2**63 - 1, 2**63 - 1 - NOW + 1])
    async def test_a_sum_beyond_64_bits(self, broker, client, delta):
        self.put(broker, self.records((0, delta), (1, 0)), 2)
        found = [(ErrorCode.NONE, 1, NOW, 0)]
        assert await self.both(client) == (found, found)

    @pytest.mark.parametrize("delta", [2**62, 2**63 - 1, 1])
    async def test_an_offset_that_is_not_in_the_batch(self, broker, client, delta):
        self.put(broker, self.records((delta, 0)))
        refused = [(ErrorCode.INVALID_RECORD, -1, -1, -1)]
        assert await self.both(client) == (refused, refused)

    async def test_a_time_that_no_record_has(self, broker, client):
        self.put(broker, self.records((0, 0)), base_timestamp=NOW - 100)
        self.put(broker, self.records((0, 0)), base_timestamp=NOW - 5, max_timestamp=NOW - 5)
        assert await self.both(client) == ([(ErrorCode.NONE, 1, NOW - 5, 0)], [NOTHING])

    @pytest.mark.parametrize("codec", CompressionType)
    async def test_records_of_zeros(self, broker, client, codec):
        self.put(broker, bytes(1_000_000), 1000, codec=codec)
        refused = [(ErrorCode.INVALID_RECORD, -1, -1, -1)]
        assert await self.both(client) == (refused, refused)

    async def test_what_does_not_decompress(self, broker, client):
        batch = frame_batch(b"garbage", (CompressionType.ZSTD, 0, NOW, NOW, -1, -1, -1, 1))
        partition(broker).append_now(memoryview(batch), NOW)
        refused = [(ErrorCode.CORRUPT_MESSAGE, -1, -1, -1)]
        assert await self.both(client) == (refused, refused)

    async def test_a_long_search_does_not_keep_others_waiting(self, broker, client):
        records = self.records(*((number, 0) for number in range(100_000)))
        self.put(broker, records, 100_000, codec=CompressionType.ZSTD, base_timestamp=NOW - 100)
        self.put(broker, self.records((0, 0)))
        client.send(frame(ApiKey.LIST_OFFSETS, list_offsets(("t", 0, NOW)), VERSION))
        async with connected(broker.server) as other:
            assert await ask(other, ("t", 0, LATEST)) == [(ErrorCode.NONE, 100_001, -1, 0)]
            assert broker.worker.under_way
        _, answer = await client.answer(ApiKey.LIST_OFFSETS, VERSION)
        assert answer.topics[0].partitions[0].offset == 100_000


async def test_many_partitions_in_one_request(broker, client):
    await append(client, batch(timestamp=5))
    answers = await ask(client, *((topic, 0, 5) for topic in ["t", *(f"unknown{n}" for n in range(2000))]))
    assert answers[0] == (ErrorCode.NONE, 0, 5, 0)
    assert {error for error, *_ in answers[1:]} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
