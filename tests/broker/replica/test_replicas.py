"""The partitions of a broker: what happens to them as topics are created, changed and deleted."""

import shutil
import uuid

import pytest
from structlog.testing import capture_logs

from barnabas.broker.cluster.deletions import deletions
from barnabas.broker.controller.create_partitions import NewPartitions
from barnabas.broker.controller.znodes import deletion_path
from barnabas.broker.testing.settling import settle
from barnabas.client.requests.data import produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.config import LogConfig
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.log_directory import LogDirectory
from tests.broker.server.harness import connected
from tests.storage.support import batch, read_all, values_of
from tests.support.running_broker import cluster_of, create_topic, delete_topic, partition, running, term_of


@pytest.fixture
async def broker(tmp_path):
    async with running(tmp_path) as broker:
        yield broker


def names(broker):
    return sorted(f"{each.topic}-{each.index}" for each in broker.replicas)


def folders(data):
    return sorted(path.name for path in data.iterdir() if path.is_dir())


def append(broker, *values, topic="t", index=0):
    assert not isinstance(partition(broker, topic, index).append_now(batch(*values), 0), Exception)


def values(broker, topic="t", index=0):
    return values_of(read_all(partition(broker, topic, index).log))


class TestFinding:
    async def test_by_name_and_by_id(self, broker):
        topic_id = await create_topic(broker, "t", partitions=2)
        for index in range(2):
            found = broker.replicas.find("t", index)
            assert found is broker.replicas.find(topic_id, index)
            assert (found.topic, found.topic_id, found.index) == ("t", topic_id, index)

    async def test_what_is_not_there_is_not_found(self, broker):
        topic_id = await create_topic(broker)
        for topic, index in (("t", 1), ("t", -1), (topic_id, 1), ("unknown", 0), (bytes(16), 0), ("", 0)):
            assert broker.replicas.find(topic, index) is None

    async def test_each_is_named_once(self, broker):
        await create_topic(broker, "t", partitions=2)
        await create_topic(broker, "u")
        assert names(broker) == ["t-0", "t-1", "u-0"]


class TestTopics:
    async def test_a_new_topic_has_a_log_for_each_partition(self, broker, tmp_path):
        await create_topic(broker, "t", partitions=3)
        assert folders(tmp_path) == ["t-0", "t-1", "t-2"]

    async def test_a_large_topic_too(self, broker):
        await create_topic(broker, "t", partitions=200)
        assert len(names(broker)) == 200

    async def test_one_that_grows_keeps_what_it_has(self, broker):
        await create_topic(broker)
        append(broker, b"a")
        before = partition(broker)
        await term_of(broker).create_partitions([NewPartitions("t", 3)])
        assert names(broker) == ["t-0", "t-1", "t-2"]
        assert partition(broker) is before
        assert values(broker) == [b"a"]

    async def test_a_deleted_one_is_gone_at_once_and_its_folder_later(self, tmp_path):
        async with running(tmp_path) as broker:
            topic_id = await create_topic(broker, "t", partitions=2)
            await create_topic(broker, "kept")
            await delete_topic(broker)
            assert broker.replicas.find("t", 0) is broker.replicas.find(topic_id, 0) is None
            assert names(broker) == ["kept-0"]
            assert "t-0" not in folders(tmp_path)
        async with running(tmp_path):  # what could not be deleted before the stop is deleted now
            assert folders(tmp_path) == ["kept-0"]

    async def test_a_recreated_topic_starts_empty(self, tmp_path):
        async with running(tmp_path) as broker:
            old_id = await create_topic(broker)
            append(broker, b"old")
            await delete_topic(broker)
            new_id = await create_topic(broker)
            assert values(broker) == []
            assert broker.replicas.find(old_id, 0) is None
            append(broker, b"new")
        async with running(tmp_path) as broker:
            assert partition(broker).topic_id == new_id
            assert values(broker) == [b"new"]

    async def test_a_partition_that_cannot_be_created_does_not_affect_others(self, tmp_path):
        class Full(FileSystem):
            def mkdir(self, path):
                if path.endswith("t-1"):
                    raise OSError("no room")
                super().mkdir(path)

        async with running(tmp_path, file_system=Full()) as broker:
            await create_topic(broker, "t")
            with capture_logs() as logs:
                await term_of(broker).create_partitions([NewPartitions("t", 2)])
            assert [(entry["kind"], entry["name"]) for entry in logs if entry["log_level"] == "error"] == [
                ("partition", "t-1")
            ]
            append(broker, b"a")
            assert broker.replicas.find("t", 1) is None
        async with running(tmp_path) as broker:  # the next start makes up for it
            assert names(broker) == ["t-0", "t-1"]
            assert values(broker) == [b"a"]


class TestSettings:
    async def test_of_a_topic_reach_its_logs_at_once(self, broker):
        await create_topic(broker, "t", partitions=2, retention_ms=1000)
        assert partition(broker).log.config.retention_ms == 1000
        await broker.config_follower.alter_topic("t", lambda present: {**present, "retention.ms": "2000"})
        assert [partition(broker, "t", index).log.config.retention_ms for index in range(2)] == [2000, 2000]

    async def test_of_the_broker_are_those_of_topics_without_their_own(self, tmp_path):
        async with running(tmp_path, log_retention_ms=5000) as broker:
            await create_topic(broker, "follows")
            await create_topic(broker, "its-own", retention_ms=1000)
            found = [partition(broker, topic).log.config.retention_ms for topic in ("follows", "its-own")]
            assert found == [5000, 1000]


class TestStarting:
    async def test_topics_are_there_with_their_records(self, tmp_path):
        async with running(tmp_path) as broker:
            topic_id = await create_topic(broker, "t", partitions=2, retention_ms=-1)
            append(broker, b"a", index=1)
        async with running(tmp_path) as broker:
            assert names(broker) == ["t-0", "t-1"]
            found = partition(broker, "t", 1)
            assert (found.topic_id, found.log.high_watermark, found.log.config.retention_ms) == (topic_id, 1, -1)
            assert values(broker, "t", 1) == [b"a"]

    async def test_a_deletion_that_a_crash_interrupted_is_finished(self, tmp_path):
        data, saved = tmp_path / "data", tmp_path / "saved"
        async with running(data) as broker:
            topic_id = await create_topic(broker, "t", partitions=2)
            shutil.copytree(data / "t-1", saved)
            await delete_topic(broker)
            await settle(cluster_of(broker))
            assert not deletions(broker.registry)
            await broker.registry.create(deletion_path(topic_id))  # as it was before the folders were gone
        shutil.copytree(saved, data / "t-1")
        async with running(data) as broker:
            await settle(cluster_of(broker))
            assert folders(data) == []
            assert not deletions(broker.registry)

    async def test_the_topics_of_a_deletion_are_noted_with_it(self, broker):
        topic_ids = [await create_topic(broker, name) for name in ("t", "u")]
        notes = []
        broker.cluster.subscribe(lambda change: notes.append(deletions(broker.registry)))
        await delete_topic(broker, "t")
        assert list(notes[0]) == [topic_ids[0]]
        await settle(cluster_of(broker))
        assert not deletions(broker.registry)

    async def test_what_the_registry_does_not_know_is_kept_and_not_used(self, tmp_path):
        async with running(tmp_path) as broker:
            await create_topic(broker)
            append(broker, b"a")
        directory = LogDirectory(
            str(tmp_path), node_id=broker.config.node_id, config_of=lambda _: LogConfig(), now_ms=0
        )
        for stray in (TopicPartition("unknown", 0), TopicPartition("t", 1)):
            directory.create_log(stray, uuid.uuid4(), LogConfig(), 0)
        directory.close()
        with capture_logs() as logs:
            async with running(tmp_path) as broker:
                assert names(broker) == ["t-0"]
                assert values(broker) == [b"a"]
        strays = [entry["partition"] for entry in logs if entry["event"] == "stray partition set aside"]
        assert sorted(strays) == ["t-1", "unknown-0"]
        assert sorted(name.partition(".")[0] for name in folders(tmp_path)) == ["t-0", "t-1", "unknown-0"]

    async def test_a_folder_with_another_topics_id_is_not_that_topic(self, tmp_path):
        async with running(tmp_path) as broker:
            await create_topic(broker)
            append(broker, b"a")
        metadata = tmp_path / "t-0" / "partition.metadata"
        lines = metadata.read_text().splitlines()
        metadata.write_text("\n".join([lines[0], "topic_id: AAAAAAAAAAAAAAAAAAAABQ"]) + "\n")
        with capture_logs():
            async with running(tmp_path) as broker:
                assert values(broker) == []


async def test_an_append_that_fails_unexpectedly_does_not_affect_other_partitions(tmp_path):
    class Disk(FileSystem):
        def pwritev(self, fd, buffers, position):
            if any(b"bad" in bytes(buffer) for buffer in buffers):
                raise RuntimeError("nobody foresaw this")
            return FileSystem.pwritev(fd, buffers, position)

    async with running(tmp_path, file_system=Disk()) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", partitions=3)
        records = [(0, bytes(batch(b"a"))), (1, bytes(batch(b"bad"))), (2, bytes(batch(b"c")))]
        answer = await client.ask(ApiKey.PRODUCE, produce(*(("t", index, data) for index, data in records)), 9)
        codes = [part.error_code for topic in answer.responses for part in topic.partition_responses]
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
        assert [(entry.kind, entry.name) for entry in broker.set_aside.entries()] == [("append", "t-1")]
        assert [values(broker, "t", index) for index in range(3)] == [[b"a"], [], [b"c"]]
