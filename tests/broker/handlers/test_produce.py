"""Produce, as seen by a client of a real broker over a socket."""

import asyncio
from collections import Counter

import pytest
from structlog.testing import capture_logs

from barnabas.client.requests.data import produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.records.compression import CompressionType
from tests.broker.server.harness import connected, frame
from tests.storage.support import read_all, values_of
from tests.support.batches import batch
from tests.support.file_systems import HeldFileSystem, WatchedFileSystem
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import create_topic, delete_topic, partition, running

VERSION = 12
VERSIONS = range(3, 14)
UNKNOWN_ID = bytes(range(16))
CORRUPT = batch(b"x")[:-1] + b"\1"


@pytest.fixture
async def disk():
    return WatchedFileSystem()


@pytest.fixture
async def broker(tmp_path, disk):
    async with running(tmp_path, file_system=disk) as broker:
        yield broker


@pytest.fixture
async def client(broker):
    async with connected(broker.server) as client:
        yield client


def partitions_of(response):
    return [each for topic in response.responses for each in topic.partition_responses]


async def ask(client, *parts, version=VERSION, **fields):
    """What one request gets for each of its partitions."""
    return partitions_of(await client.ask(ApiKey.PRODUCE, produce(*parts, **fields), version))


async def errors(client, *parts, **fields):
    return [answer.error_code for answer in await ask(client, *parts, **fields)]


def values(broker, topic="t", index=0):
    """What consumers can read of a partition."""
    log = partition(broker, topic, index).log
    return values_of(read_all(log, upper_bound=log.high_watermark))


def idempotent(sequence, *values, epoch=0):
    return batch(*values, producer_id=7, producer_epoch=epoch, base_sequence=sequence)


async def ask_first(client):
    """The first request of a version waits until its codecs are made, and does not go out with those behind it."""
    client.send(frame(ApiKey.PRODUCE, produce(("nowhere", 0, batch())), VERSION))
    await client.answer(ApiKey.PRODUCE, VERSION)


class TestAppending:
    async def test_every_version_appends_and_returns_the_offset(self, broker, client):
        topic_id = await create_topic(broker)
        for number, version in enumerate(VERSIONS):
            name = topic_id if version >= 13 else "t"
            (answer,) = await ask(client, (name, 0, batch(b"a", b"b")), version=version)
            assert (answer.index, answer.error_code, answer.base_offset) == (0, ErrorCode.NONE, 2 * number)
            assert answer.log_append_time_ms == -1
            assert answer.log_start_offset == (0 if version >= 5 else -1)
        assert values(broker) == [b"a", b"b"] * len(VERSIONS)

    async def test_several_topics_and_partitions_in_one_request(self, broker, client):
        await create_topic(broker, "t", partitions=2)
        await create_topic(broker, "u")
        request = produce(("t", 1, batch(b"a")), ("u", 0, batch(b"b")), ("t", 0, batch(b"c")), ("t", 1, batch(b"d")))
        response = await client.ask(ApiKey.PRODUCE, request, VERSION)
        assert [topic.name for topic in response.responses] == ["t", "u", "t"]
        assert [(each.index, each.base_offset) for each in partitions_of(response)] == [(1, 0), (0, 0), (0, 0), (1, 1)]
        assert [values(broker, "t", 0), values(broker, "t", 1), values(broker, "u")] == [[b"c"], [b"a", b"d"], [b"b"]]

    async def test_a_request_for_nothing_is_answered(self, client):
        assert await ask(client) == []

    async def test_requests_that_arrive_together_go_out_in_one_write(self, broker, client, disk):
        await create_topic(broker, "t", partitions=2)
        await ask_first(client)
        frames = [
            frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"%d" % n)), ("t", 1, batch())), VERSION, correlation_id=n)
            for n in range(5)
        ]
        client.send(b"".join(frames))
        for n in range(5):
            correlation_id, response = await client.answer(ApiKey.PRODUCE, VERSION)
            assert correlation_id == n
            assert [answer.base_offset for answer in partitions_of(response)] == [n, n]
        assert disk.writes_to(".log") == [5, 5]

    async def test_requests_of_several_clients_go_out_in_one_write(self, broker, disk):
        await create_topic(broker)
        async with connected(broker.server) as one, connected(broker.server) as other:
            await ask_first(one)
            for client in (one, other):  # both are sent before the loop reads either
                client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch())), VERSION))
            answers = [await client.answer(ApiKey.PRODUCE, VERSION) for client in (one, other)]
            assert sorted(partitions_of(answer)[0].base_offset for _, answer in answers) == [0, 1]
        assert disk.writes_to(".log") == [2]

    async def test_answers_come_in_the_order_of_requests(self, broker, client):
        await create_topic(broker, "t", partitions=2)
        requests = [
            produce(("t", 0, CORRUPT)),
            produce(("t", 1, batch())),
            produce(("unknown", 0, batch())),
            produce(("t", 0, batch())),
        ]
        frames = [frame(ApiKey.PRODUCE, request, VERSION, correlation_id=n) for n, request in enumerate(requests)]
        heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        client.send(b"".join(frames) + frame(ApiKey.HEARTBEAT, heartbeat, correlation_id=4))
        answers = [await client.answer(ApiKey.PRODUCE, VERSION) for _ in requests]
        assert [correlation_id for correlation_id, _ in answers] == [0, 1, 2, 3]
        assert [partitions_of(response)[0].error_code for _, response in answers] == [
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NONE,
        ]
        assert (await client.answer(ApiKey.HEARTBEAT))[0] == 4

    async def test_a_client_that_does_not_wait_for_its_answer_has_appended_nevertheless(self, broker):
        await create_topic(broker)
        async with connected(broker.server) as leaving, connected(broker.server) as staying:
            leaving.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), VERSION))
            leaving.close()
            (answer,) = await ask(staying, ("t", 0, batch(b"b")))
            assert answer.error_code == ErrorCode.NONE
        assert Counter(values(broker)) == Counter([b"a", b"b"])

    async def test_a_broker_may_stamp_records(self, tmp_path):
        clock = ManualClock()
        async with running(tmp_path, clock=clock) as broker, connected(broker.server) as client:
            await create_topic(broker, message_timestamp_type="LogAppendTime")
            (answer,) = await ask(client, ("t", 0, batch()))
            assert answer.log_append_time_ms == clock.now_ms()
            assert [record.timestamp for record in read_all(partition(broker).log)] == [clock.now_ms()]


class TestAcks:
    async def test_acks_1_is_answered_like_acks_all(self, broker, client):
        await create_topic(broker)
        assert await errors(client, ("t", 0, batch()), acks=1) == [ErrorCode.NONE]

    async def test_acks_0_has_no_answer(self, broker, client):
        await create_topic(broker)
        client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a")), acks=0), VERSION))
        (answer,) = await ask(client, ("t", 0, batch(b"b")))
        assert answer.base_offset == 1
        assert values(broker) == [b"a", b"b"]

    @pytest.mark.parametrize(
        "parts", [[("t", 0, CORRUPT)], [("unknown", 0, batch())], [("t", 0, batch()), ("t", 0, CORRUPT)]]
    )
    async def test_a_failure_with_acks_0_ends_the_connection(self, broker, client, parts):
        await create_topic(broker)
        with capture_logs() as logs:
            client.send(frame(ApiKey.PRODUCE, produce(*parts, acks=0), VERSION))
            assert await client.closed()
        assert [entry["reason"] for entry in logs] == ["a Produce with acks=0 failed"]

    async def test_other_values_of_acks_are_refused(self, broker, client):
        await create_topic(broker)
        parts = [("t", 0, batch()), ("unknown", 0, batch())]
        for acks in (2, -2, 32767):
            assert await errors(client, *parts, acks=acks) == [
                ErrorCode.INVALID_REQUIRED_ACKS,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ]
        assert values(broker) == []

    async def test_acks_all_needs_enough_replicas_in_sync(self, broker, client):
        await create_topic(broker, min_insync_replicas=2)
        assert await errors(client, ("t", 0, batch(b"a"))) == [ErrorCode.NONE]  # there is only one, as in Kafka
        partition(broker).lead(0, 1, replicas=(broker.config.node_id, 11, 12), isr=(broker.config.node_id,))
        assert await errors(client, ("t", 0, batch(b"b"))) == [ErrorCode.NOT_ENOUGH_REPLICAS]
        assert await errors(client, ("t", 0, batch(b"c")), acks=1) == [ErrorCode.NONE]
        assert values(broker) == [b"a", b"c"]


@pytest.mark.parametrize("version", [8, VERSION], ids=["the general path", "the shortcut"])
class TestWaitingForFollowers:
    """acks=all where there is a follower, broker 11, that must have it too."""

    @pytest.fixture
    async def clock(self):
        return ManualClock()

    @pytest.fixture
    async def broker(self, tmp_path, clock):
        async with running(tmp_path, clock=clock) as broker:
            await create_topic(broker, min_insync_replicas=2)
            self.lead(broker, 1, isr=(broker.config.node_id, 11))
            yield broker

    def lead(self, broker, partition_epoch, isr):
        partition(broker).lead(0, partition_epoch, (broker.config.node_id, 11, 12), isr)

    def fetched(self, broker, offset):
        found = partition(broker)
        found.leadership.followers[11].fetched(offset, 0, found.log.end_offset, 1, broker.clock.now_ms())
        found.advance()

    async def begin(self, client, clock, version):
        """Send a batch, and wait until it is written."""
        client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a")), timeout_ms=7000), version))
        await clock.timer_set(7)

    async def end(self, client, version):
        _, response = await client.answer(ApiKey.PRODUCE, version)
        (answer,) = partitions_of(response)
        return answer.error_code, answer.base_offset

    async def test_it_is_answered_when_it_is_committed(self, broker, client, clock, version):
        await self.begin(client, clock, version)
        assert values(broker) == []
        self.fetched(broker, 1)
        assert await self.end(client, version) == (ErrorCode.NONE, 0)
        assert values(broker) == [b"a"]
        assert not clock.pending(7)

    async def test_it_is_answered_when_its_time_is_up(self, broker, client, clock, version):
        await self.begin(client, clock, version)
        clock.advance(7)
        assert await self.end(client, version) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        self.fetched(broker, 1)  # nobody waits for it any more
        assert values(broker) == [b"a"]

    async def test_it_is_answered_when_another_broker_leads(self, broker, client, clock, version):
        await self.begin(client, clock, version)
        partition(broker).follow(11, 1)
        assert await self.end(client, version) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
        assert await errors(client, ("t", 0, batch(b"b")), version=version) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]

    async def test_it_is_not_safe_if_too_few_are_left_when_it_is_committed(self, broker, client, clock, version):
        await self.begin(client, clock, version)
        clock.advance(6)
        partition(broker).leadership.followers[11].caught_up_ms = 0
        self.lead(broker, 2, isr=(broker.config.node_id,))
        assert await self.end(client, version) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)

    async def test_acks_1_does_not_wait(self, broker, client, version):
        (answer,) = await ask(client, ("t", 0, batch(b"a")), version=version, acks=1)
        assert (answer.error_code, answer.base_offset, values(broker)) == (ErrorCode.NONE, 0, [])

    async def test_a_client_that_disconnects_leaves_nothing_behind(self, broker, client, clock, version):
        await self.begin(client, clock, version)
        client.close()
        while clock.pending(7):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        self.fetched(broker, 1)
        assert values(broker) == [b"a"]

    async def test_of_several_partitions_each_has_its_own_answer(self, broker, client, clock, version):
        await create_topic(broker, "u")
        parts = [("t", 0, batch(b"a")), ("u", 0, batch(b"b")), ("unknown", 0, batch())]
        client.send(frame(ApiKey.PRODUCE, produce(*parts, timeout_ms=7000), version))
        await clock.timer_set(7)
        clock.advance(7)
        _, response = await client.answer(ApiKey.PRODUCE, version)
        assert [answer.error_code for answer in partitions_of(response)] == [
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]


class TestRefusing:
    async def test_partitions_that_do_not_exist(self, broker, client):
        topic_id = await create_topic(broker)
        for number, version in enumerate(VERSIONS):
            known, unknown = (topic_id, UNKNOWN_ID) if version >= 13 else ("t", "unknown")
            no_topic = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            parts = [(unknown, 0, batch()), (known, 1, batch()), (known, -1, batch()), (known, 0, batch())]
            answers = await ask(client, *parts, version=version)
            assert [(answer.error_code, answer.base_offset) for answer in answers] == [
                (no_topic, -1),
                (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
                (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
                (ErrorCode.NONE, number),
            ]

    async def test_internal_topics_are_the_brokers_own(self, broker, client):
        await create_topic(broker, "__consumer_offsets")
        request = produce(("__consumer_offsets", 0, batch()))
        for client_id, error in (("test", ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", ErrorCode.NONE)):
            client.send(frame(ApiKey.PRODUCE, request, VERSION, client_id=client_id))
            _, response = await client.answer(ApiKey.PRODUCE, VERSION)
            assert partitions_of(response)[0].error_code == error

    async def test_a_transactional_batch_without_a_transactional_id(self, broker, client):
        await create_topic(broker)
        records = batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        assert await errors(client, ("t", 0, records)) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
        assert values(broker) == []

    async def test_bad_records_affect_only_their_partition(self, broker, client):
        bad = {
            "null": (None, ErrorCode.INVALID_RECORD),
            "empty": (b"", ErrorCode.INVALID_RECORD),
            "cut": (batch()[:-1], ErrorCode.INVALID_RECORD),
            "two batches": (batch() + batch(), ErrorCode.INVALID_RECORD),
            "a byte more": (batch() + b"\0", ErrorCode.INVALID_RECORD),
            "a base offset": (batch(base_offset=3), ErrorCode.INVALID_RECORD),
            "a control batch": (batch(control=True), ErrorCode.INVALID_RECORD),
            "corrupt": (CORRUPT, ErrorCode.CORRUPT_MESSAGE),
            "too large": (batch(bytes(2_000_000)), ErrorCode.MESSAGE_TOO_LARGE),
        }
        await create_topic(broker, "t", partitions=2)
        for name, (records, error) in bad.items():
            answers = await errors(client, ("t", 0, records), ("t", 1, batch(name.encode())))
            assert (name, answers) == (name, [error, ErrorCode.NONE])
        assert values(broker, "t", 0) == []
        assert values(broker, "t", 1) == [name.encode() for name in bad]

    async def test_bad_input_of_one_client_does_not_affect_another(self, broker, client):
        await create_topic(broker)
        async with connected(broker.server) as bad:
            for n in range(20):
                bad.send(frame(ApiKey.PRODUCE, produce(("t", 0, CORRUPT)), VERSION))
                (answer,) = await ask(client, ("t", 0, batch(b"%d" % n)))
                assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, n)
                _, response = await bad.answer(ApiKey.PRODUCE, VERSION)
                assert partitions_of(response)[0].error_code == ErrorCode.CORRUPT_MESSAGE
            bad.send(b"\x7f\xff\xff\xff" + frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"bad"))), VERSION))
            with capture_logs():
                assert await bad.closed()
        (answer,) = await ask(client, ("t", 0, batch(b"last")))
        assert answer.base_offset == 20
        assert values(broker) == [*(b"%d" % n for n in range(20)), b"last"]

    async def test_the_records_at_fault_are_named(self, broker, client):
        topic_id = await create_topic(broker, cleanup_policy="compact")
        for version in VERSIONS:
            name = topic_id if version >= 13 else "t"
            (answer,) = await ask(client, (name, 0, batch(b"a", b"b", key=None)), version=version)
            assert answer.error_code == ErrorCode.INVALID_RECORD
            assert answer.log_start_offset == (0 if version >= 5 else -1)
            assert [fault.batch_index for fault in answer.record_errors] == ([0, 1] if version >= 8 else [])
            assert bool(answer.error_message) == (version >= 8)

    async def test_zstd_is_for_version_7_and_later(self, broker, client):
        topic_id = await create_topic(broker)
        for version in VERSIONS:
            name = topic_id if version >= 13 else "t"
            error = ErrorCode.NONE if version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            assert await errors(client, (name, 0, batch(compression=CompressionType.ZSTD)), version=version) == [error]


class TestIdempotence:
    async def test_a_batch_sent_again_is_answered_and_not_appended(self, broker, client):
        await create_topic(broker)
        for _ in range(2):
            (answer,) = await ask(client, ("t", 0, idempotent(0, b"a", b"b")))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
        assert values(broker) == [b"a", b"b"]

    async def test_a_gap_and_an_old_epoch_are_refused(self, broker, client):
        await create_topic(broker)
        assert await errors(client, ("t", 0, idempotent(0, b"a", epoch=1))) == [ErrorCode.NONE]
        assert await errors(client, ("t", 0, idempotent(2, epoch=1))) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        assert await errors(client, ("t", 0, idempotent(1, epoch=0))) == [ErrorCode.INVALID_PRODUCER_EPOCH]
        assert values(broker) == [b"a"]

    async def test_a_restart_changes_nothing(self, tmp_path):
        async with running(tmp_path) as broker, connected(broker.server) as client:
            await create_topic(broker)
            await ask(client, ("t", 0, idempotent(0, b"a")))
        async with running(tmp_path) as broker, connected(broker.server) as client:
            (answer,) = await ask(client, ("t", 0, idempotent(0, b"a")))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
            assert await errors(client, ("t", 0, idempotent(2))) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
            (answer,) = await ask(client, ("t", 0, idempotent(1, b"b")))
            assert answer.base_offset == 1
            assert values(broker) == [b"a", b"b"]


class TestTheDisk:
    async def test_a_failure_of_one_partition_does_not_affect_another(self, broker, client, disk):
        await create_topic(broker, "t", partitions=2)
        disk.broken = ["/t-0/"]
        parts = [("t", 0, batch(b"a")), ("t", 1, batch(b"b"))]
        assert await errors(client, *parts) == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
        disk.broken = []
        assert await errors(client, *parts) == [ErrorCode.NONE, ErrorCode.NONE]
        assert [values(broker, "t", 0), values(broker, "t", 1)] == [[b"a"], [b"b", b"b"]]

    async def test_with_flush_messages_the_answer_waits_for_the_sync(self, tmp_path):
        disk = HeldFileSystem()
        settings = {"log_flush_interval_messages": 1}
        async with running(tmp_path, file_system=disk, **settings) as broker, connected(broker.server) as client:
            await create_topic(broker)
            await create_topic(broker, "hasty", flush_messages=1000)
            with disk.held():
                client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), VERSION, correlation_id=1))
                answer = asyncio.create_task(client.answer(ApiKey.PRODUCE, VERSION))
                await disk.reached()
                async with connected(broker.server) as other:  # the loop continues, and so do all others
                    assert await errors(other, ("hasty", 0, batch())) == [ErrorCode.NONE]
                assert not answer.done()
                assert values(broker) == []
            assert partitions_of((await answer)[1])[0].base_offset == 0
            assert values(broker) == [b"a"]

    async def test_a_failed_sync_is_answered(self, tmp_path):
        disk = HeldFileSystem()
        async with running(tmp_path, file_system=disk) as broker, connected(broker.server) as client:
            await create_topic(broker, "t", partitions=2, flush_messages=1)
            with disk.held():
                client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch())), VERSION))
                await disk.reached()
                disk.error = OSError("the disk is gone")
                with capture_logs():
                    disk.release()
                    _, response = await client.answer(ApiKey.PRODUCE, VERSION)
            assert partitions_of(response)[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert values(broker) == []
            disk.error = None
            assert await errors(client, ("t", 1, batch())) == [ErrorCode.NONE]

    async def test_flush_ms_syncs_by_a_timer(self, tmp_path):
        clock = ManualClock()
        disk = HeldFileSystem()
        async with running(tmp_path, clock=clock, file_system=disk) as broker, connected(broker.server) as client:
            await create_topic(broker, flush_ms=3000)
            log = partition(broker).log
            log.last_flush_ms = clock.now_ms()
            assert await errors(client, ("t", 0, batch())) == [ErrorCode.NONE]
            with disk.held():
                clock.advance(2.999)
                assert clock.pending(3) == 1
                clock.advance(0.001)
                await disk.reached()

    async def test_a_topic_may_be_deleted_while_its_records_are_synced(self, tmp_path):
        disk = HeldFileSystem()
        async with running(tmp_path, file_system=disk) as broker, connected(broker.server) as client:
            await create_topic(broker, flush_messages=1)
            with disk.held():
                client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch())), VERSION))
                await disk.reached()
                async with connected(broker.server) as other:
                    other.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch())), VERSION))
                    await delete_topic(broker)
                    answers = [await each.answer(ApiKey.PRODUCE, VERSION) for each in (client, other)]
            assert partitions_of(answers[0][1])[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert partitions_of(answers[1][1])[0].error_code in (
                ErrorCode.KAFKA_STORAGE_ERROR,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )


class TestVeryMuchAtOnce:
    async def test_a_request_with_very_many_parts_is_started_over_several_turns(self, broker, client):
        await create_topic(broker, partitions=2)
        parts = [("t", number % 2, batch(b"%d" % number)) for number in range(2000)]
        # What comes behind it on the same connection does not overtake it.
        client.send(frame(ApiKey.PRODUCE, produce(*parts), VERSION) + frame(ApiKey.PRODUCE, produce(parts[0]), VERSION))
        _, first = await client.answer(ApiKey.PRODUCE, VERSION)
        _, second = await client.answer(ApiKey.PRODUCE, VERSION)
        assert [answer.base_offset for answer in partitions_of(first)] == [number // 2 for number in range(2000)]
        assert partitions_of(second)[0].base_offset == 1000

    async def test_a_long_request_without_an_answer_is_started_over_several_turns(self, broker, client):
        await create_topic(broker)
        parts = [("t", 0, batch(b"a"))] * 1000
        client.send(frame(ApiKey.PRODUCE, produce(*parts, acks=0), VERSION))
        assert [answer.base_offset for answer in await ask(client, ("t", 0, batch(b"b")))] == [1000]

    async def test_very_many_requests(self, broker, client):
        await create_topic(broker)
        client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch())), VERSION) * 3000)
        answers = [(await client.answer(ApiKey.PRODUCE, VERSION))[1] for _ in range(3000)]
        assert [partitions_of(answer)[0].base_offset for answer in answers] == list(range(3000))


class TestLongInspections:
    """Batches that hold so much that the loop cannot wait until all of it has been inspected."""

    async def test_answers_come_in_the_order_of_requests(self, broker, client):
        await create_topic(broker, cleanup_policy="compact")
        long = batch(*[b"long"] * 20_000, compression=CompressionType.ZSTD)
        for number, records in enumerate([long, batch(b"a"), long, batch(b"b")]):
            client.send(frame(ApiKey.PRODUCE, produce(("t", 0, records)), VERSION, correlation_id=number))
        answers = [await client.answer(ApiKey.PRODUCE, VERSION) for _ in range(4)]
        assert [number for number, _ in answers] == [0, 1, 2, 3]
        assert [partitions_of(answer)[0].base_offset for _, answer in answers] == [0, 20_000, 20_001, 40_001]

    async def test_other_partitions_do_not_wait(self, broker, client):
        await create_topic(broker, "slow", cleanup_policy="compact")
        await create_topic(broker, "t")
        long = batch(*[b"long"] * 200_000, compression=CompressionType.ZSTD)
        client.send(frame(ApiKey.PRODUCE, produce(("slow", 0, long)), VERSION))
        async with connected(broker.server) as other:
            assert await errors(other, ("t", 0, batch())) == [ErrorCode.NONE]
            assert partition(broker, "slow").log.end_offset == 0
        _, answer = await client.answer(ApiKey.PRODUCE, VERSION)
        assert partitions_of(answer)[0].error_code == ErrorCode.NONE
        assert partition(broker, "slow").log.end_offset == 200_000

    async def test_a_client_that_leaves_meanwhile(self, broker, client):
        await create_topic(broker, cleanup_policy="compact")
        long = batch(*[b"long"] * 20_000, compression=CompressionType.ZSTD)
        async with connected(broker.server) as leaving:
            leaving.send(frame(ApiKey.PRODUCE, produce(("t", 0, long)), VERSION))
            await leaving.writer.drain()
        (answer,) = await ask(client, ("t", 0, batch()))
        assert answer.base_offset in (0, 20_000)
