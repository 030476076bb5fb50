"""Fetch, as seen by a client of a real broker over a socket, on a clock that the test moves."""

import asyncio
import os

import pytest

from barnabas.broker.testing.settling import settle
from barnabas.client.requests.data import fetch, produce
from barnabas.client.requests.topics import topic_field
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import ForgottenTopic, ReplicaState
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.storage.indexes.transaction_index import AbortedTransaction
from barnabas.storage.producer_state import AppendOrigin
from tests.broker.server.harness import connected, frame
from tests.storage.support import records_in, values_of
from tests.support.batches import batch
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import cluster_of, create_topic, delete_topic, partition, running

VERSION = 12
VERSIONS = range(4, 19)
UNKNOWN_ID = bytes(range(16))
READ_COMMITTED = 1
LONG = 100_000  # milliseconds; nobody waits for them


@pytest.fixture
async def clock():
    return ManualClock()


@pytest.fixture
async def broker(tmp_path, clock):
    async with running(tmp_path, clock=clock) as broker:
        yield broker


@pytest.fixture
async def client(broker):
    async with connected(broker.server) as client:
        yield client


async def append(broker, *record_sets, topic="t", index=0):
    """Append as another client does."""
    async with connected(broker.server) as other:
        for records in record_sets:
            response = await other.ask(ApiKey.PRODUCE, produce((topic, index, records)), 12)
            assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def partitions_of(response):
    return [each for topic in response.responses for each in topic.partitions]


async def ask(client, *parts, version=VERSION, **fields):
    """What one request gets from each of its partitions."""
    return partitions_of(await client.ask(ApiKey.FETCH, fetch(*parts, **fields), version))


async def errors(client, *parts, **fields):
    return [answer.error_code for answer in await ask(client, *parts, **fields)]


def values(answer):
    return values_of(records_in(bytes(answer.records)))


class Waiting:
    """A Fetch that has found too little, and waits for more."""

    def __init__(self, client, version=VERSION):
        self._client = client
        self._version = version

    @classmethod
    async def begin(cls, client, clock, *parts, version=VERSION, **fields):
        client.send(frame(ApiKey.FETCH, fetch(*parts, max_wait_ms=LONG, **fields), version))
        await clock.timer_set(LONG / 1000)
        return cls(client, version)

    async def answer(self):
        return partitions_of((await self._client.answer(ApiKey.FETCH, self._version))[1])


class TestReading:
    async def test_every_version_reads(self, broker, client):
        topic_id = await create_topic(broker)
        await append(broker, batch(b"a", b"b"), batch(b"c"))
        for version in VERSIONS:
            (answer,) = await ask(client, (topic_id if version >= 13 else "t", 0, 0), version=version)
            assert (answer.partition_index, answer.error_code) == (0, ErrorCode.NONE)
            assert (answer.high_watermark, answer.last_stable_offset) == (3, 3)
            assert answer.log_start_offset == (0 if version >= 5 else -1)
            assert answer.aborted_transactions is None
            assert values(answer) == [b"a", b"b", b"c"]

    async def test_an_offset_within_a_batch_returns_the_whole_batch(self, broker, client):
        await create_topic(broker)
        await append(broker, batch(b"a", b"b"), batch(b"c"))
        (answer,) = await ask(client, ("t", 0, 1))
        assert values(answer) == [b"a", b"b", b"c"]

    async def test_several_topics_and_partitions_in_one_request(self, broker, client):
        await create_topic(broker, "t", partitions=2)
        await create_topic(broker, "u")
        await append(broker, batch(b"a"), topic="t", index=1)
        await append(broker, batch(b"b"), topic="u")
        answers = await ask(client, ("t", 1, 0), ("u", 0, 0), ("t", 0, 0))
        assert [values(answer) for answer in answers] == [[b"a"], [b"b"], []]

    async def test_a_request_for_nothing_is_answered_at_once(self, client):
        assert await ask(client, max_wait_ms=LONG) == []

    async def test_batches_are_returned_as_they_were_written(self, broker, client):
        await create_topic(broker, "t", partitions=len(CompressionType))
        for index, compression in enumerate(CompressionType):
            sent = batch(b"a" * 1000, b"b" * 1000, compression=compression)
            await append(broker, sent, index=index)
            (answer,) = await ask(client, ("t", index, 0))
            # All but the leader's epoch, which the leader sets.
            assert bytes(answer.records)[:12] + bytes(answer.records)[16:] == sent[:12] + sent[16:]


class TestDamage:
    async def test_an_index_that_points_nowhere_is_rebuilt(self, broker, client):
        await create_topic(broker)
        await append(broker, batch(b"a", b"b"))
        partition(broker).log.segments.active.offset_index.append(0, -8)
        (answer,) = await ask(client, ("t", 0, 1))
        assert values(answer) == [b"a", b"b"]

    async def test_a_log_that_was_overwritten_affects_only_its_partition(self, broker, client):
        await create_topic(broker, "t", partitions=2)
        await append(broker, batch(b"a", b"b"))
        await append(broker, batch(b"c"), index=1)
        os.pwrite(partition(broker).log.segments.active.handle.fd, bytes(61), 0)
        answers = await ask(client, ("t", 0, 1), ("t", 1, 0))
        assert [answer.error_code for answer in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
        assert values(answers[1]) == [b"c"]

    async def test_an_index_of_aborted_transactions_in_a_format_that_does_not_exist(self, broker, client):
        await create_topic(broker)
        await append(broker, batch(b"a"))
        index = partition(broker).log.segments.active.transaction_index
        index.append(AbortedTransaction(1, 0, 0, 1))
        index._grow()[1] = 9
        (answer,) = await ask(client, ("t", 0, 0), isolation_level=READ_COMMITTED)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


class TestOffsets:
    async def test_outside_of_the_log_are_out_of_range(self, broker, client):
        await create_topic(broker)
        await append(broker, batch(b"a", b"b"), batch(b"c", b"d"))
        partition(broker).log.increment_log_start_offset(2)
        for offset in (-1, 0, 1, 5, 2**63 - 1):
            (answer,) = await ask(client, ("t", 0, offset))
            assert (answer.error_code, answer.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
            assert (answer.last_stable_offset, answer.log_start_offset, answer.records) == (-1, -1, b"")
        (at_the_start,) = await ask(client, ("t", 0, 2))
        assert (at_the_start.log_start_offset, values(at_the_start)) == (2, [b"c", b"d"])
        (at_the_end,) = await ask(client, ("t", 0, 4))
        assert (at_the_end.error_code, at_the_end.high_watermark, at_the_end.records) == (ErrorCode.NONE, 4, b"")

    async def test_of_what_is_not_there(self, broker, client):
        topic_id = await create_topic(broker)
        for version in VERSIONS:
            known, unknown = (topic_id, UNKNOWN_ID) if version >= 13 else ("t", "unknown")
            no_topic = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            parts = [(unknown, 0, 0), (known, 1, 0), (known, -1, 0), (known, 0, 0)]
            assert await errors(client, *parts, version=version, max_wait_ms=LONG) == [
                no_topic,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.NONE,
            ]


class TestSizes:
    @pytest.fixture
    async def size(self, broker):
        """Two partitions with three batches each, of this size."""
        await create_topic(broker, "t", partitions=2)
        for index in range(2):
            await append(broker, *(batch(b"%d" % n) for n in range(3)), index=index)
        return len(batch(b"0"))

    async def sizes(self, client, **fields):
        return [len(answer.records) for answer in await ask(client, ("t", 0, 0), ("t", 1, 0), **fields)]

    async def test_a_partition_gives_no_more_than_its_limit(self, client, size):
        assert await self.sizes(client, partition_max_bytes=2 * size) == [2 * size, 2 * size]

    async def test_a_limit_may_cut_a_batch_that_is_not_the_first(self, client, size):
        assert await self.sizes(client, partition_max_bytes=2 * size + 1) == [2 * size + 1, 2 * size + 1]

    async def test_all_together_give_no_more_than_the_request_allows(self, client, size):
        assert await self.sizes(client, max_bytes=4 * size) == [3 * size, size]

    async def test_the_first_batch_is_always_returned_whole(self, client, size):
        for limits in ({"max_bytes": 1}, {"max_bytes": 0}, {"partition_max_bytes": 1}, {"partition_max_bytes": 0}):
            assert await self.sizes(client, **limits) == [size, 0]

    async def test_it_is_the_first_of_the_partition_that_has_one(self, client, size):
        answers = await ask(client, ("t", 0, 3), ("t", 1, 0), max_bytes=1)
        assert [len(answer.records) for answer in answers] == [0, size]

    async def test_the_broker_has_a_limit_of_its_own(self, tmp_path):
        async with running(tmp_path, fetch_max_bytes=1024) as broker, connected(broker.server) as client:
            await create_topic(broker)
            await append(broker, *[batch(bytes(400))] * 5)
            (answer,) = await ask(client, ("t", 0, 0))
            assert len(answer.records) == 1024

    async def test_negative_limits_are_an_error(self, client, size):
        for limits in ({"max_bytes": -1}, {"partition_max_bytes": -1}):
            assert await errors(client, ("t", 0, 0), **limits) == [ErrorCode.UNKNOWN_SERVER_ERROR]


class TestWaiting:
    async def test_an_append_wakes_it(self, broker, client, clock):
        await create_topic(broker)
        waiting = await Waiting.begin(client, clock, ("t", 0, 0))
        await append(broker, batch(b"a"))
        (answer,) = await waiting.answer()
        assert (answer.high_watermark, values(answer)) == (1, [b"a"])
        assert clock.pending(LONG / 1000) == 0
        assert not partition(broker).waiters

    async def test_only_enough_bytes_wake_it(self, broker, client, clock):
        await create_topic(broker, "t", partitions=2)
        size = len(batch(b"0"))
        waiting = await Waiting.begin(client, clock, ("t", 0, 0), ("t", 1, 0), min_bytes=2 * size + 1)
        await append(broker, batch(b"0"), index=0)
        await append(broker, batch(b"1"), index=1)
        assert partition(broker).waiters
        await append(broker, batch(b"2"), index=0)
        assert [values(answer) for answer in await waiting.answer()] == [[b"0", b"2"], [b"1"]]

    async def test_what_is_there_already_counts(self, broker, client, clock):
        await create_topic(broker)
        await append(broker, batch(b"0"))
        waiting = await Waiting.begin(client, clock, ("t", 0, 0), min_bytes=len(batch(b"0")) + 1)
        await append(broker, batch(b"1"))
        (answer,) = await waiting.answer()
        assert values(answer) == [b"0", b"1"]

    async def test_appends_elsewhere_do_not_wake_it(self, broker, client, clock):
        await create_topic(broker, "t", partitions=2)
        waiting = await Waiting.begin(client, clock, ("t", 0, 0))
        await append(broker, batch(b"elsewhere"), index=1)
        assert partition(broker).waiters
        await append(broker, batch(b"here"))
        (answer,) = await waiting.answer()
        assert values(answer) == [b"here"]

    async def test_time_passes(self, broker, client, clock):
        await create_topic(broker)
        await append(broker, batch(b"a"))
        waiting = await Waiting.begin(client, clock, ("t", 0, 0), min_bytes=1000)
        clock.advance(LONG / 1000 - 0.001)
        assert partition(broker).waiters
        clock.advance(0.001)
        (answer,) = await waiting.answer()
        assert values(answer) == [b"a"]
        assert not partition(broker).waiters

    async def test_there_may_be_nothing_to_wait_for(self, broker, client):
        await create_topic(broker)
        for fields in ({"max_wait_ms": 0}, {"max_wait_ms": -1}, {"max_wait_ms": LONG, "min_bytes": 0}):
            (answer,) = await ask(client, ("t", 0, 0), **fields)
            assert (answer.error_code, answer.records) == (ErrorCode.NONE, b"")

    @pytest.mark.parametrize("isolation_level", [0, READ_COMMITTED])
    async def test_what_is_in_a_later_segment_is_not_waited_for(self, broker, client, isolation_level):
        """A read ends with its segment, and more than it asks for is there already."""
        await create_topic(broker, "t", partitions=2)
        await append(broker, batch(b"0"))
        partition(broker).log.roll(now_ms=0)
        await append(broker, batch(b"1"))
        fields = {"max_wait_ms": LONG, "min_bytes": 1000, "isolation_level": isolation_level}
        answers = await ask(client, ("t", 1, 0), ("t", 0, 0), **fields)
        assert [values(answer) for answer in answers] == [[], [b"0"]]

    async def test_more_than_may_be_sent_is_not_waited_for(self, broker, client):
        await create_topic(broker)
        await append(broker, batch(b"0"), batch(b"1"))
        (answer,) = await ask(client, ("t", 0, 0), max_wait_ms=LONG, min_bytes=1000, max_bytes=len(batch(b"0")))
        assert values(answer) == [b"0"]

    async def test_an_error_is_reported_at_once(self, broker, client):
        await create_topic(broker)
        assert await errors(client, ("t", 0, 0), ("t", 0, 9), max_wait_ms=LONG) == [ErrorCode.OFFSET_OUT_OF_RANGE]
        assert await errors(client, ("t", 0, 0), ("unknown", 0, 0), max_wait_ms=LONG) == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    @pytest.mark.parametrize(
        ("version", "error"), [(12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (13, ErrorCode.UNKNOWN_TOPIC_ID)]
    )
    async def test_the_topic_may_be_deleted_meanwhile(self, broker, client, clock, version, error):
        topic_id = await create_topic(broker)
        name = topic_id if version >= 13 else "t"
        waiting = await Waiting.begin(client, clock, (name, 0, 0), version=version)
        await delete_topic(broker)
        (answer,) = await waiting.answer()
        assert answer.error_code == error
        assert clock.pending(LONG / 1000) == 0

    async def test_a_client_that_goes_away_is_forgotten(self, broker, clock):
        await create_topic(broker)
        async with connected(broker.server) as leaving:
            await Waiting.begin(leaving, clock, ("t", 0, 0))
            (connection,) = broker.server.connections
            gone = asyncio.Event()
            (request,) = connection.requests
            abandon = request.on_abandon
            request.on_abandon = lambda: (abandon(), gone.set())
        await gone.wait()
        assert not partition(broker).waiters
        assert clock.pending(LONG / 1000) == 0
        await append(broker, batch())

    async def test_many_are_woken_by_one_append(self, broker, clock):
        await create_topic(broker)
        async with connected(broker.server) as one, connected(broker.server) as other:
            waiting = [await Waiting.begin(one, clock, ("t", 0, 0))]
            other.send(frame(ApiKey.FETCH, fetch(("t", 0, 0), max_wait_ms=1000), VERSION))
            await clock.timer_set(1)
            waiting.append(Waiting(other))
            await append(broker, batch(b"a"))
            assert [values((await each.answer())[0]) for each in waiting] == [[b"a"], [b"a"]]


class TestLeaderEpochs:
    async def test_of_the_leader(self, broker, client):
        await create_topic(broker)
        partition(broker).lead(3)
        for epoch, error in (
            (-1, ErrorCode.NONE),
            (3, ErrorCode.NONE),
            (2, ErrorCode.FENCED_LEADER_EPOCH),
            (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            assert await errors(client, ("t", 0, 0), partition_fields={"current_leader_epoch": epoch}) == [error]

    async def test_a_client_with_an_older_leader_learns_the_current_one(self, broker, client):
        topic_id = await create_topic(broker)
        partition(broker).lead(2)
        for version in (15, 16, 18):
            request = fetch((topic_id, 0, 0), partition_fields={"current_leader_epoch": 1})
            response = await client.ask(ApiKey.FETCH, request, version)
            (answer,) = partitions_of(response)
            assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
            if version < 16:
                assert (answer.current_leader, response.node_endpoints) == (None, [])
            else:
                assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (0, 2)
                (leader,) = response.node_endpoints
                assert (leader.node_id, leader.port) == (0, broker.server.listeners[0].port)

    async def test_a_client_may_not_fetch_as_a_follower(self, broker, client):
        topic_id = await create_topic(broker)
        for name, version, fields in (
            ("t", 12, {"replica_id": 1}),
            (topic_id, 18, {"replica_state": ReplicaState(replica_id=1)}),
        ):
            assert await errors(client, (name, 0, 0), version=version, **fields) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]

    async def test_an_unknown_isolation_level_reads_nothing(self, broker, client):
        await create_topic(broker)
        assert await errors(client, ("t", 0, 0), isolation_level=2) == [ErrorCode.UNKNOWN_SERVER_ERROR]

    async def test_a_reader_with_a_diverging_log_learns_where_it_diverged(self, broker, client):
        await create_topic(broker)
        await append(broker, batch(b"a", b"b"))
        partition(broker).lead(2)
        await append(broker, batch(b"c"))
        for offset, epoch in ((2, 0), (3, 2), (0, 0)):
            (answer,) = await ask(client, ("t", 0, offset), partition_fields={"last_fetched_epoch": epoch})
            assert (answer.error_code, answer.diverging_epoch) == (ErrorCode.NONE, None)
        for offset, epoch, diverging in ((3, 0, (0, 2)), (1, 1, (0, 2)), (4, 2, (2, 3))):
            (answer,) = await ask(
                client, ("t", 0, offset), partition_fields={"last_fetched_epoch": epoch}, max_wait_ms=LONG
            )
            assert (answer.error_code, answer.records) == (ErrorCode.NONE, b"")
            assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == diverging


class TestIsolation:
    """A producer's transaction, while it is open and when it has ended."""

    def transactional(self, sequence, *values):
        return memoryview(
            bytearray(batch(*values, producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True))
        )

    def append_now(self, broker, records):
        """Append as a coordinator does, who may write markers."""
        result = partition(broker).append_now(records, broker.clock.now_ms())
        assert not isinstance(result, Exception)

    def end(self, broker, outcome):
        marker = build_end_transaction_marker(
            outcome, timestamp=1_000_000, producer_id=7, producer_epoch=0, coordinator_epoch=0
        )
        self.append_now(broker, memoryview(marker))

    async def test_uncommitted_records_are_seen_only_on_request(self, broker, client):
        await create_topic(broker)
        await append(broker, batch(b"before"))
        self.append_now(broker, self.transactional(0, b"in it"))
        await append(broker, batch(b"after"))
        (answer,) = await ask(client, ("t", 0, 0))
        assert values(answer) == [b"before", b"in it", b"after"]
        (answer,) = await ask(client, ("t", 0, 0), isolation_level=READ_COMMITTED)
        assert values(answer) == [b"before"]
        assert (answer.high_watermark, answer.last_stable_offset) == (3, 1)
        assert answer.aborted_transactions == []
        (answer,) = await ask(client, ("t", 0, 2), isolation_level=READ_COMMITTED)
        assert (answer.error_code, values(answer)) == (ErrorCode.NONE, [])
        self.end(broker, ControlType.COMMIT)
        (answer,) = await ask(client, ("t", 0, 0), isolation_level=READ_COMMITTED)
        assert values(answer) == [b"before", b"in it", b"after"]
        assert (answer.high_watermark, answer.last_stable_offset, answer.aborted_transactions) == (4, 4, [])

    async def test_an_aborted_transaction_is_named(self, broker, client):
        await create_topic(broker)
        await append(broker, batch(b"before"))
        self.append_now(broker, self.transactional(0, b"in it"))
        self.end(broker, ControlType.ABORT)
        await append(broker, batch(b"after"))
        (answer,) = await ask(client, ("t", 0, 0), isolation_level=READ_COMMITTED)
        assert [(each.producer_id, each.first_offset) for each in answer.aborted_transactions] == [(7, 1)]
        assert values(answer) == [b"before", b"in it", b"after"]  # the client leaves out what was aborted
        (answer,) = await ask(client, ("t", 0, 3), isolation_level=READ_COMMITTED)
        assert answer.aborted_transactions == []
        (answer,) = await ask(client, ("t", 0, 0))
        assert answer.aborted_transactions is None

    async def test_the_end_of_a_transaction_wakes_its_waiters(self, broker, client, clock):
        await create_topic(broker)
        inside = [self.transactional(n, bytes(100)) for n in range(5)]
        enough = sum(map(len, inside))
        for records in inside[:2]:
            self.append_now(broker, records)
        waiting = await Waiting.begin(client, clock, ("t", 0, 0), min_bytes=enough, isolation_level=READ_COMMITTED)
        for records in inside[2:]:
            self.append_now(broker, records)
        assert partition(broker).waiters
        self.end(broker, ControlType.COMMIT)
        (answer,) = await waiting.answer()
        assert len(answer.records) > enough

    async def test_only_coordinators_write_markers(self, broker):
        await create_topic(broker)
        marker = build_end_transaction_marker(
            ControlType.ABORT, timestamp=0, producer_id=7, producer_epoch=0, coordinator_epoch=0
        )
        (refused,) = partition(broker).log.append(
            [memoryview(marker)], leader_epoch=0, now_ms=0, origin=AppendOrigin.CLIENT
        )
        assert isinstance(refused, Exception)


class TestCompression:
    async def test_a_topic_in_zstd_is_for_version_10_and_later(self, broker, client):
        topic_id = await create_topic(broker, compression_type="zstd")
        for version in VERSIONS:
            error = ErrorCode.NONE if version >= 10 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            assert await errors(client, (topic_id if version >= 13 else "t", 0, 0), version=version) == [error]


class TestSessions:
    """The scenarios of fetch_sessions, as a client sees them."""

    async def ask(self, client, *parts, session_id=0, epoch, version=VERSION, **fields):
        request = fetch(*parts, session_id=session_id, session_epoch=epoch, **fields)
        return await client.ask(ApiKey.FETCH, request, version)

    @pytest.mark.parametrize("version", [7, 12, 13, 18])
    async def test_only_changes_are_reported(self, broker, client, version):
        topic_id = await create_topic(broker, "t", partitions=3)
        name = topic_id if version >= 13 else "t"
        started = await self.ask(client, (name, 0, 0), (name, 1, 0), epoch=0, version=version)
        assert started.session_id > 0
        assert [each.partition_index for each in partitions_of(started)] == [0, 1]

        async def go_on(*parts, epoch, **fields):
            answer = await self.ask(
                client, *parts, session_id=started.session_id, epoch=epoch, version=version, **fields
            )
            assert (answer.error_code, answer.session_id) == (ErrorCode.NONE, started.session_id)
            return {each.partition_index: values(each) for each in partitions_of(answer)}

        assert await go_on(epoch=1) == {}
        await append(broker, batch(b"a"), index=1)
        assert await go_on(epoch=2) == {1: [b"a"]}
        assert await go_on((name, 1, 1), epoch=3) == {}
        await append(broker, batch(b"b"), index=2)
        assert await go_on((name, 2, 0), epoch=4) == {2: [b"b"]}
        forget_2 = [ForgottenTopic(**topic_field("topic", name), partitions=[2])]
        assert await go_on(epoch=5, forgotten_topics_data=forget_2) == {}

    async def test_news_wake_a_session(self, broker, client, clock):
        await create_topic(broker, "t", partitions=2)
        started = await self.ask(client, ("t", 0, 0), ("t", 1, 0), epoch=0)
        waiting = await Waiting.begin(client, clock, session_id=started.session_id, session_epoch=1)
        await append(broker, batch(b"a"), index=1)
        (answer,) = await waiting.answer()
        assert (answer.partition_index, values(answer)) == (1, [b"a"])

    async def test_a_session_that_is_not_there(self, client):
        response = await self.ask(client, session_id=12345, epoch=1)
        assert (response.error_code, response.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
        assert response.responses == []

    async def test_an_epoch_out_of_order(self, broker, client):
        await create_topic(broker)
        started = await self.ask(client, ("t", 0, 0), epoch=0)
        response = await self.ask(client, session_id=started.session_id, epoch=2)
        assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH

    async def test_the_last_request_ends_the_session(self, broker, client):
        await create_topic(broker)
        started = await self.ask(client, ("t", 0, 0), epoch=0)
        assert len(broker.fetch_sessions) == 1
        ended = await self.ask(client, ("t", 0, 0), session_id=started.session_id, epoch=-1)
        assert ended.session_id == 0
        assert len(partitions_of(ended)) == 1
        assert len(broker.fetch_sessions) == 0

    async def test_a_topic_deleted_meanwhile_is_news(self, broker, client):
        await create_topic(broker)
        started = await self.ask(client, ("t", 0, 0), epoch=0)
        await delete_topic(broker)
        (answer,) = partitions_of(await self.ask(client, session_id=started.session_id, epoch=1))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestVeryManyPartitions:
    """So many that they are read over several turns of the loop. Creating them takes a while, so few tests do."""

    COUNT = 510

    def all(self):
        return [("t", index, 0) for index in range(self.COUNT)]

    def waiters(self, broker):
        return sum(len(partition(broker, "t", index).waiters) for index in range(self.COUNT))

    async def test_reading(self, broker, client):
        await create_topic(broker, "t", partitions=self.COUNT)
        for index in (3, 300, 500):
            await append(broker, batch(bytes(1000)), index=index)
        answers = await ask(client, *self.all())
        assert [answer.partition_index for answer in answers] == list(range(self.COUNT))
        assert [answer.partition_index for answer in answers if answer.records] == [3, 300, 500]
        # No more is read than allowed.
        answers = await ask(client, *self.all(), max_bytes=2200)
        assert [answer.partition_index for answer in answers if answer.records] == [3, 300]
        # A session returns only what changed.
        first = await client.ask(ApiKey.FETCH, fetch(*self.all(), session_epoch=0), VERSION)
        assert len(partitions_of(first)) == self.COUNT
        session = {"session_id": first.session_id, "session_epoch": 1}
        second = await client.ask(ApiKey.FETCH, fetch(**session, max_wait_ms=LONG), VERSION)
        assert [answer.partition_index for answer in partitions_of(second)] == [3, 300, 500]

    async def test_waiting(self, broker, client, clock):
        await create_topic(broker, "t", partitions=self.COUNT)
        waiting = await Waiting.begin(client, clock, *self.all(), min_bytes=100)
        assert self.waiters(broker) == self.COUNT
        await append(broker, batch(b"a"), index=1)
        await append(broker, batch(b"b"), index=505)
        assert [answer.partition_index for answer in await waiting.answer() if answer.records] == [1, 505]
        assert self.waiters(broker) == 0
        # In vain.
        waiting = await Waiting.begin(client, clock, *self.all(), min_bytes=1000, isolation_level=READ_COMMITTED)
        clock.advance(LONG / 1000)
        assert len(await waiting.answer()) == self.COUNT
        # For a client that leaves.
        async with connected(broker.server) as leaving:
            await Waiting.begin(leaving, clock, *self.all(), min_bytes=1000)
        await ask(client, ("t", 0, 0))  # by its answer, the end of the other connection has been noticed
        await settle(cluster_of(broker))
        assert self.waiters(broker) == 0
        # For a topic that is deleted.
        waiting = await Waiting.begin(client, clock, *self.all(), min_bytes=1000)
        await delete_topic(broker)
        assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in {answer.error_code for answer in await waiting.answer()}

    async def test_unknown_partitions(self, client):
        answers = await ask(client, *((f"unknown{number}", 0, 0) for number in range(3000)), max_wait_ms=LONG)
        assert [answer.error_code for answer in answers] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3000
