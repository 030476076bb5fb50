import errno

import pytest

from barnabas.broker.controller.images import BrokerImage
from barnabas.client.requests.admin import delete_records
from barnabas.client.requests.data import EARLIEST, fetch, list_offsets, produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.checkpoints import LOG_START_OFFSET_CHECKPOINT
from barnabas.storage.filesystem import FileSystem
from tests.broker.server.harness import connected, frame
from tests.support.batches import batch
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import create_topic, partition, running

HIGH_WATERMARK = -1
FIVE = batch(b"1", b"2", b"3", b"4", b"5")


def outcomes(answer):
    return {
        (topic.name, result.partition_index): (result.low_watermark, result.error_code)
        for topic in answer.topics
        for result in topic.partitions
    }


async def test_every_version_raises_the_log_start_offset(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        for version in range(3):
            name = f"t{version}"
            await create_topic(broker, name)
            await client.ask(ApiKey.PRODUCE, produce((name, 0, FIVE)), 9)
            for offset, low_watermark in ((2, 2), (1, 2), (0, 2), (4, 4), (HIGH_WATERMARK, 5), (5, 5)):
                answer = await client.ask(ApiKey.DELETE_RECORDS, delete_records((name, 0, offset)), version)
                assert outcomes(answer) == {(name, 0): (low_watermark, ErrorCode.NONE)}
            assert partition(broker, name).log.log_start_offset == 5


async def test_clients_no_longer_see_what_was_deleted(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        await client.ask(ApiKey.PRODUCE, produce(("t", 0, FIVE)), 9)
        await client.ask(ApiKey.DELETE_RECORDS, delete_records(("t", 0, 3)), 2)
        (topic,) = (await client.ask(ApiKey.LIST_OFFSETS, list_offsets(("t", 0, EARLIEST)), 7)).topics
        assert topic.partitions[0].offset == 3
        (topic,) = (await client.ask(ApiKey.FETCH, fetch(("t", 0, 2)), 11)).responses
        assert topic.partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_what_cannot_be_deleted(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        await create_topic(broker, "compacted", cleanup_policy="compact")
        await create_topic(broker, "__consumer_offsets")
        request = delete_records(
            ("t", 1, 0), ("unknown", 0, 0), ("compacted", 0, 0), ("__consumer_offsets", 0, 0), ("t", 0, 1)
        )
        assert outcomes(await client.ask(ApiKey.DELETE_RECORDS, request, 2)) == {
            ("t", 1): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("unknown", 0): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("compacted", 0): (-1, ErrorCode.POLICY_VIOLATION),
            ("__consumer_offsets", 0): (-1, ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("t", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE),
        }
        answer = await client.ask(ApiKey.DELETE_RECORDS, delete_records(("t", 0, -2)), 2)
        assert outcomes(answer) == {("t", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE)}


async def test_the_last_entry_of_a_partition_that_is_named_twice_counts(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        await client.ask(ApiKey.PRODUCE, produce(("t", 0, FIVE)), 9)
        answer = await client.ask(ApiKey.DELETE_RECORDS, delete_records(("t", 0, 4), ("t", 0, 2)), 2)
        assert outcomes(answer) == {("t", 0): (2, ErrorCode.NONE)}


@pytest.mark.parametrize("crash", [False, True])
async def test_what_was_deleted_does_not_come_back(tmp_path, crash):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        await client.ask(ApiKey.PRODUCE, produce(("t", 0, FIVE)), 9)
        await client.ask(ApiKey.DELETE_RECORDS, delete_records(("t", 0, 3)), 2)
        if crash:  # the disk is now as a crash would leave it
            (tmp_path / LOG_START_OFFSET_CHECKPOINT).rename(tmp_path / "kept")
    if crash:
        (tmp_path / "kept").rename(tmp_path / LOG_START_OFFSET_CHECKPOINT)
        (tmp_path / ".kafka_cleanshutdown").unlink()
    async with running(tmp_path) as broker:
        assert partition(broker).log.log_start_offset == 3


class FullDisk(FileSystem):
    full = False

    def replace_file(self, path, data, *, sync=True):
        if self.full:
            raise OSError(errno.ENOSPC, "no space left")
        super().replace_file(path, data, sync=sync)


async def test_a_deletion_that_could_not_be_written_is_not_confirmed(tmp_path):
    disk = FullDisk()
    async with running(tmp_path, file_system=disk) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        await client.ask(ApiKey.PRODUCE, produce(("t", 0, FIVE)), 9)
        disk.full = True
        answer = await client.ask(ApiKey.DELETE_RECORDS, delete_records(("t", 0, 0)), 2)
        assert outcomes(answer) == {("t", 0): (-1, ErrorCode.KAFKA_STORAGE_ERROR)}
        disk.full = False


class TestFollowers:
    """They delete the records too, before the answer goes out."""

    @pytest.fixture
    async def clock(self):
        return ManualClock()

    @pytest.fixture
    async def broker(self, tmp_path, clock):
        async with running(tmp_path, clock=clock) as broker:
            await create_topic(broker, "t")
            broker.cluster.brokers = {**broker.cluster.brokers, 9: BrokerImage(9, ())}  # the dead are not waited for
            partition(broker).lead(1, 1, (broker.config.node_id, 9), (broker.config.node_id, 9))
            partition(broker).append_now(memoryview(bytearray(FIVE)), 0)
            partition(broker).follower_fetched(9, 5, 0, 1)
            yield broker

    @pytest.fixture
    async def client(self, broker, clock):
        """The request was sent, and the broker waits for the follower."""
        async with connected(broker.server) as client:
            client.send(frame(ApiKey.DELETE_RECORDS, delete_records(("t", 0, 3), timeout_ms=7000), 2))
            await clock.timer_set(7)
            yield client

    async def answer(self, client):
        return outcomes((await client.answer(ApiKey.DELETE_RECORDS, 2))[1])["t", 0]

    async def test_it_waits_for_them(self, broker, client, clock):
        partition(broker).follower_fetched(9, 5, 2, 1)
        assert clock.pending(7)
        partition(broker).follower_fetched(9, 5, 3, 1)
        assert await self.answer(client) == (3, ErrorCode.NONE)

    async def test_it_does_not_wait_for_them_for_ever(self, client, clock):
        clock.advance(7)
        assert await self.answer(client) == (0, ErrorCode.REQUEST_TIMED_OUT)

    async def test_it_stops_waiting_when_another_broker_leads(self, broker, client):
        partition(broker).follow(9, 2)
        assert await self.answer(client) == (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        answer = await client.ask(ApiKey.DELETE_RECORDS, delete_records(("t", 0, 4)), 2)
        assert outcomes(answer)["t", 0] == (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    async def test_those_that_are_down_do_not_count(self, broker):
        broker.replicas.is_alive = lambda broker_id: False
        async with connected(broker.server) as client:
            answer = await client.ask(ApiKey.DELETE_RECORDS, delete_records(("t", 0, 3)), 2)
            assert outcomes(answer)["t", 0] == (3, ErrorCode.NONE)
