"""A damaged registry: what a start says about it, and what the check finds."""

import shutil
import sqlite3
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.check_registry import check_registry
from barnabas.broker.controller.znodes import write_configs
from barnabas.broker.obstacles import CannotStart
from tests.support.running_broker import create_topic, running

MALFORMED = [
    ("/brokers/topics/t", b"not JSON"),
    ("/brokers/topics/t", b"{}"),
    ("/brokers/topics/t", b'{"topic_id": "x", "partitions": {}, "adding_replicas": {}, "removing_replicas": {}}'),
    ("/brokers/topics/t/partitions/0/state", b'{"leader": "me", "leader_epoch": 0, "isr": []}'),
    ("/brokers/topics/t/partitions/1/state", b"[" * 100_000),
    ("/config/topics/t", b'{"version": 1, "config": {"retention.ms": 5}}'),
    ("/config/brokers/<default>", b"\xff\xfe"),
    ("/cluster/id", b"[]"),
    ("/controller_epoch", b"many"),
    ("/latest_producer_id_block", b"{}"),
]


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data directory that was shut down cleanly, with two topics, some settings and producer ids."""
    path = tmp_path / "data"
    async with running(path) as broker:
        await create_topic(broker, "t", partitions=2, retention_ms=1000)
        await create_topic(broker, "u")
        await broker.config_follower.alter_broker(None, lambda _: {"message.max.bytes": "3000"})
        await broker.producer_ids.next()
    return path


def write(data: Path, sql: str, *values: object) -> None:
    database = sqlite3.connect(data / "registry.db")
    with database:
        database.execute(sql, values)
    database.close()


def put(data: Path, path: str, content: object) -> None:
    write(data, "INSERT OR REPLACE INTO node VALUES (?, ?, 0)", path, content)


def problems(data: Path) -> list[str]:
    return [str(problem) for problem in check_registry(str(data)).problems]


async def start(data: Path) -> str | None:
    """Start and stop; why it does not start."""
    try:
        async with running(data):
            return None
    except CannotStart as error:
        return str(error)


async def test_nothing_is_wrong(data):
    assert problems(data) == []
    assert check_registry(str(data)).topics.keys() == {"t", "u"}
    assert await start(data) is None


def test_a_directory_without_a_registry_is_one_of_apache_kafka(tmp_path):
    assert check_registry(str(tmp_path)) == ([], None)


@pytest.mark.parametrize(("path", "content"), MALFORMED)
async def test_a_node_that_cannot_be_read(data, path, content):
    put(data, path, content)
    (problem,) = problems(data)
    assert problem.startswith(f"{data / 'registry.db'}: {path}")
    reason = await start(data)
    assert reason.startswith(f"{data}/registry.db is damaged: {path}")
    assert "\n" not in reason


def test_rules_that_cannot_be_read(data):
    for path in ("/kafka-acl", "/kafka-acl/Topic"):
        put(data, path, b"")
    put(data, "/kafka-acl/Topic/t", b"nonsense")
    (problem,) = problems(data)
    assert problem.startswith(f"{data / 'registry.db'}: /kafka-acl/Topic/t: ")


@pytest.mark.parametrize(
    ("path", "content"), [("/brokers/ids/me", b"{}"), ("/a//b", b""), ("/nowhere/below", b""), ("/a", "text"), (7, b"")]
)
async def test_an_invalid_node(data, path, content):
    put(data, path, content)
    reason = await start(data)
    assert str(data / "registry.db") in reason


async def test_a_path_that_is_not_text(data):
    write(data, "INSERT INTO node VALUES (CAST(x'2fff' AS TEXT), x'', 0)")
    assert str(data / "registry.db") in await start(data)
    assert str(data / "registry.db") in problems(data)[0]


async def test_any_damage_to_the_file_is_reported_in_a_sentence(data, tmp_path):
    """Or does no harm: a change within a value, such as a number, cannot be detected."""
    refused = 0
    for seed in range(40):
        random = Random(seed)
        copy = tmp_path / f"copy-{seed}"
        shutil.copytree(data, copy)
        content = bytearray((copy / "registry.db").read_bytes())
        begin = random.randrange(len(content))
        length = random.choice([1, 16, 4096])
        content[begin : begin + length] = random.randbytes(len(content[begin : begin + length]))
        (copy / "registry.db").write_bytes(content)
        found = problems(copy)
        reason = await start(copy)
        if reason is not None:
            refused += 1
            assert str(copy) in reason
            assert "\n" not in reason
            assert found or length == 1, reason
    assert refused > 5


class TestSettingsOfATopicThatDoesNotExist:
    async def test_are_found_and_removed_by_the_next_start(self, data):
        put(data, "/config/topics/gone", write_configs({"retention.ms": "5"}))
        assert problems(data) == [
            f"{data / 'registry.db'}: /config/topics/gone: settings of a topic that does not exist"
        ]
        assert await start(data) is None
        assert problems(data) == []

    async def test_that_are_no_longer_valid_are_found_and_left_out(self, data):
        put(data, "/config/topics/t", write_configs({"bogus": "1", "retention.ms": "soon", "flush.ms": "5"}))
        found = problems(data)
        assert [problem.split(": ")[2].split()[0] for problem in found] == ["bogus", "retention.ms"]
        async with running(data) as broker:
            assert broker.replicas.find("t", 0).log.config.flush_ms == 5


class TestFolders:
    async def test_that_are_missing(self, data):
        shutil.rmtree(data / "t-1")
        assert problems(data) == [f"{data}/t-1: the registry has this partition, and its folder is missing"]

    async def test_of_unknown_topics(self, data):
        shutil.copytree(data / "t-0", data / "t-7")
        shutil.copytree(data / "t-0", data / "v-0")
        shutil.rmtree(data / "u-0")
        shutil.copytree(data / "t-0", data / "u-0")  # which has another topic's id
        unknown = "no topic of the registry has this partition; the next start sets it aside"
        assert problems(data) == [f"{data}/{name}: {unknown}" for name in ("t-7", "u-0", "v-0")]

    async def test_are_not_checked_after_a_crash(self, data):
        """The next start creates and deletes what the crash prevented."""
        (data / ".kafka_cleanshutdown").unlink()
        shutil.rmtree(data / "t-1")
        assert problems(data) == []
