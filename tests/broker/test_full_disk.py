"""A broker whose disk is full: it answers with errors, continues, and completes what failed once there is space."""

import asyncio

import pytest
from structlog.testing import capture_logs

from barnabas.broker.controller.create_partitions import NewPartitions
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.obstacles import CannotStart
from barnabas.broker.registry.embedded import EmbeddedRegistry
from barnabas.broker.testing.settling import settle
from barnabas.client.requests.admin import (
    BROKER,
    SET,
    TOPIC,
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
    new_topic,
)
from barnabas.client.requests.transactions import init_producer_id
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.filesystem import FileSystem
from tests.broker.controller.cluster import raise_leader_epochs
from tests.broker.server.harness import connected
from tests.support.file_systems import NO_SPACE
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import cluster_of, create_topic, running, term_of

FULL = ErrorCode.KAFKA_STORAGE_ERROR
RETRY = 1


class FullDisk(FileSystem):
    """While it is full, no folders can be created and no files replaced; paths that contain `spared` can."""

    full = False
    spared = "\0"

    def mkdir(self, path):
        self._check(path)
        super().mkdir(path)

    def replace_file(self, path, data, *, sync=True):
        self._check(path)
        super().replace_file(path, data, sync=sync)

    def _check(self, path):
        if self.full and self.spared not in path:
            raise NO_SPACE


def fill_registry(broker, full=True):
    """The registry's own file is written by SQLite, which cannot tell this from a full disk."""
    cluster_of(broker).tree._database.execute(f"PRAGMA query_only = {'ON' if full else 'OFF'}")


def set_aside(broker):
    return [(entry.kind, entry.name) for entry in broker.set_aside.entries()]


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def disk():
    return FullDisk()


@pytest.fixture
async def broker(tmp_path, clock, disk):
    async with running(tmp_path, clock=clock, file_system=disk) as broker:
        yield broker


async def test_a_start_that_cannot_write_the_registry_says_so(tmp_path, monkeypatch):
    async with running(tmp_path):
        pass
    monkeypatch.setattr(EmbeddedRegistry, "_save", no_space)
    with pytest.raises(CannotStart, match=r"cannot use .*registry\.db: .*No space left on device"):
        async with running(tmp_path):
            pass
    monkeypatch.undo()
    async with running(tmp_path) as broker:
        assert broker.replicas.directory.was_clean


async def no_space(self, changes):
    raise NO_SPACE


class TestLogsThatCannotBeMade:
    async def test_a_topic_is_refused_and_comes_when_there_is_space(self, broker, disk, clock):
        disk.full, disk.spared = True, "/t-0"
        async with connected(broker.server) as client:
            answer = await client.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("t", 2), new_topic("u")), 7)
            assert [result.error_code for result in answer.topics] == [FULL, FULL]
            assert all("No space left on device" in result.error_message for result in answer.topics)
            assert all("as soon as possible" in result.error_message for result in answer.topics)
            assert {result.topic_id for result in answer.topics} == {bytes(16)}
            assert set_aside(broker) == [("partition", "t-1"), ("partition", "u-0")]
            disk.full = False
            clock.advance(RETRY)
            assert [each.index for each in broker.replicas.of_topic("t")] == [0, 1]
            assert [each.index for each in broker.replicas.of_topic("u")] == [0]
            answer = await client.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("t", 2)), 7)
            assert [result.error_code for result in answer.topics] == [ErrorCode.TOPIC_ALREADY_EXISTS]

    async def test_partitions_of_a_topic_that_grows_come_when_there_is_space(self, broker, disk, clock):
        await create_topic(broker, "t")
        disk.full, disk.spared = True, "/t-1"
        async with connected(broker.server) as client:
            (result,) = (await client.ask(ApiKey.CREATE_PARTITIONS, create_partitions(("t", 3)), 3)).results
        assert result.error_code == FULL
        assert "No space left on device" in result.error_message
        assert [each.index for each in broker.replicas.of_topic("t")] == [0, 1]
        assert set_aside(broker) == [("partition", "t-2")]
        clock.advance(RETRY)
        assert set_aside(broker) == [("partition", "t-2")]
        disk.full = False
        clock.advance(RETRY)
        assert [each.index for each in broker.replicas.of_topic("t")] == [0, 1, 2]
        assert set_aside(broker) == []
        assert not clock.pending(RETRY)

    async def test_a_failure_that_repeats_itself_is_logged_once(self, broker, disk, clock):
        await create_topic(broker, "t")
        disk.full = True
        with capture_logs() as logs:
            await term_of(broker).create_partitions([NewPartitions("t", 3)])
            clock.advance(10 * RETRY)
        assert [entry["name"] for entry in logs if entry["log_level"] == "error"] == ["t-1"]

    async def test_a_topic_that_is_deleted_is_not_tried_again(self, broker, disk, clock):
        await create_topic(broker, "t")
        disk.full = True
        await term_of(broker).create_partitions([NewPartitions("t", 3)])
        async with connected(broker.server) as client:
            await client.ask(ApiKey.DELETE_TOPICS, delete_topics("t"), 6)
        disk.full = False
        clock.advance(RETRY)
        assert set_aside(broker) == []
        assert broker.replicas.of_topic("t") == ()

    async def test_a_start_creates_what_it_can_and_the_rest_later(self, tmp_path, clock, disk):
        async with running(tmp_path) as broker:
            await create_topic(broker, "t", partitions=3)
        (tmp_path / "t-1" / "partition.metadata").unlink()
        for name in ("t-1", "t-2"):
            for file in (tmp_path / name).iterdir():
                file.unlink()
            (tmp_path / name).rmdir()
        disk.full, disk.spared = True, "checkpoint"
        async with running(tmp_path, clock=clock, file_system=disk) as broker:
            assert [each.index for each in broker.replicas.of_topic("t")] == [0]
            disk.full = False
            clock.advance(RETRY)
            assert [each.index for each in broker.replicas.of_topic("t")] == [0, 1, 2]

    async def test_a_partition_that_cannot_be_led_does_not_keep_others_from_it(self, broker, disk, clock):
        for name in "tuv":
            await create_topic(broker, name)
        disk.full, disk.spared = True, "/v-0/"  # a new leader epoch is written to the partition's folder
        await broker.registry.multi(raise_leader_epochs(broker.cluster, broker.config.node_id, 2))
        assert set_aside(broker) == [("partition", "t-0"), ("partition", "u-0")]
        assert broker.replicas.find("v", 0).leader_epoch == 1
        disk.full = False
        clock.advance(RETRY)
        assert set_aside(broker) == []
        assert [broker.replicas.find(name, 0).leader_epoch for name in "tu"] == [1, 1]

    async def test_a_group_keeps_its_place_while_partitions_of_the_offsets_topic_are_missing(self, broker, disk, clock):
        await create_topic(broker, "__consumer_offsets", partitions=1)
        disk.full = True
        await term_of(broker).create_partitions([NewPartitions("__consumer_offsets", 8)])
        before = [broker.groups.partition_of(f"group-{number}") for number in range(20)]
        disk.full = False
        clock.advance(RETRY)
        assert [broker.groups.partition_of(f"group-{number}") for number in range(20)] == before
        assert len(set(before)) > 1


class TestARegistryThatCannotBeWritten:
    @pytest.fixture
    async def client(self, broker):
        await create_topic(broker, "t")
        fill_registry(broker)
        async with connected(broker.server) as client:
            yield client

    async def test_topics_are_neither_created_nor_grown_nor_deleted(self, client, broker):
        answer = await client.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("u"), new_topic("t")), 7)
        assert [result.error_code for result in answer.topics] == [FULL, FULL]  # nothing was decided
        assert "could not be written" in answer.topics[0].error_message
        (grown,) = (await client.ask(ApiKey.CREATE_PARTITIONS, create_partitions(("t", 3)), 3)).results
        assert grown.error_code == FULL
        (deleted,) = (await client.ask(ApiKey.DELETE_TOPICS, delete_topics("t"), 6)).responses
        assert (deleted.name, deleted.error_code) == ("t", FULL)
        assert [(name, len(topic.partitions)) for name, topic in broker.cluster.topics.items()] == [("t", 1)]

    async def test_settings_are_not_altered(self, client, broker):
        for resource, setting in ((TOPIC, "t"), "flush.ms"), ((BROKER, "0"), "log.flush.interval.ms"):
            request = incremental_alter_configs((*resource, [(SET, setting, "5")]))
            (altered,) = (await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)).responses
            (replaced,) = (
                await client.ask(ApiKey.ALTER_CONFIGS, alter_configs((*resource, [(setting, "5")])), 2)
            ).responses
            assert (altered.error_code, replaced.error_code) == (FULL, FULL)
        assert broker.cluster.topics["t"].configs == {}

    @pytest.mark.parametrize("transactional_id", [None, "tx"])
    async def test_producers_get_no_ids_and_ask_again(self, client, broker, transactional_id):
        if transactional_id is not None:
            fill_registry(broker, full=False)
            await create_topic(broker, "__transaction_state", partitions=1)
            await broker.transactions.ensure_topic()
            fill_registry(broker)
        request = init_producer_id(transactional_id)
        answer = await client.ask(ApiKey.INIT_PRODUCER_ID, request, 4)
        assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        fill_registry(broker, full=False)
        answer = await client.ask(ApiKey.INIT_PRODUCER_ID, request, 4)
        assert (answer.error_code, answer.producer_id) == (ErrorCode.NONE, 0)

    async def test_it_is_logged_once_and_works_again_later(self, client, broker):
        with capture_logs() as logs:
            await asyncio.gather(*(term_of(broker).create_topics([NewTopic(f"u{number}")]) for number in range(3)))
            await term_of(broker).create_topics([NewTopic("u")])
        assert len([entry for entry in logs if entry["log_level"] == "error"]) == 1
        fill_registry(broker, full=False)
        (created,) = await term_of(broker).create_topics([NewTopic("u")])
        assert created.error_code == ErrorCode.NONE


async def checkpoint(broker, clock):
    clock.advance(60)
    await settle(cluster_of(broker))


async def test_checkpoints_that_cannot_be_written_are_logged_once(tmp_path, clock, disk):
    with capture_logs() as logs:
        async with running(tmp_path, clock=clock, file_system=disk) as broker:
            disk.full = True
            for _ in range(3):
                await checkpoint(broker, clock)
            assert set_aside(broker) == [("checkpoints", str(tmp_path))]
            disk.full = False
            await checkpoint(broker, clock)
            assert set_aside(broker) == []
            disk.full = True  # also at the end, so the stop is not a clean one
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert [(entry["event"], entry.get("exc_info")) for entry in errors] == [
        ("set aside", None),
        ("the data directory could not be shut down cleanly", None),
    ]
