"""The embedded registry: the contract, and what its file adds to it."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from barnabas.broker.registry.embedded import EmbeddedRegistry
from barnabas.broker.registry.errors import RegistryCorrupt, RegistryLocked, RegistryUnavailable
from barnabas.broker.registry.tree_operations import Create, Delete, Set
from tests.broker.registry.contract import RegistryContract


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[EmbeddedRegistry]:
    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    yield registry
    await registry.close()


class TestEmbeddedRegistry(RegistryContract):
    pass


async def test_what_was_done_is_there_after_reopening(tmp_path: Path) -> None:
    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    await registry.multi([Create("/a", b"\0\xff"), Create("/a/b"), Create("/c"), Create("/gone")])
    await registry.set("/a/b", b"two")
    await registry.delete("/gone")
    await registry.close()

    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    assert registry.children("/") == ["a", "c"]
    assert registry.get("/a").data == b"\0\xff"
    assert registry.get("/a/b")[:3] == (b"two", 1, False)
    await registry.close()


async def test_ephemeral_nodes_are_gone_after_reopening(tmp_path: Path) -> None:
    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    await registry.multi([Create("/here", ephemeral=True), Create("/stays")])
    await registry.multi([Set("/here", b"changed")])
    await registry.create_ephemeral("/also-here")
    await registry.close()

    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    assert registry.children("/") == ["stays"]
    await registry.close()


async def test_a_transaction_larger_than_a_statement(tmp_path: Path) -> None:
    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    names = sorted(f"n{number}" for number in range(2500))
    await registry.multi([Create(f"/{name}") for name in names])
    await registry.close()
    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    assert registry.children("/") == names
    await registry.multi([Delete(f"/{name}") for name in names[:2400]])
    await registry.close()
    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    assert registry.children("/") == names[2400:]
    await registry.close()


async def test_one_process_at_a_time(tmp_path: Path) -> None:
    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    with pytest.raises(RegistryLocked):
        EmbeddedRegistry.open(tmp_path / "registry.db")
    await registry.create("/a")
    await registry.close()
    await EmbeddedRegistry.open(tmp_path / "registry.db").close()


def test_a_file_that_is_something_else(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a database, and longer than a header of one, which has a hundred bytes" * 10)
    with pytest.raises(RegistryCorrupt):
        EmbeddedRegistry.open(text)
    assert text.read_text().startswith("not a database")

    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE node (path)")
    foreign.close()
    with pytest.raises(RegistryCorrupt):
        EmbeddedRegistry.open(tmp_path / "foreign.db")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RegistryUnavailable):
        EmbeddedRegistry.open(tmp_path / "nowhere" / "registry.db")


async def test_a_write_that_fails_changes_nothing_and_later_ones_succeed(tmp_path: Path) -> None:
    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    await registry.create("/a", b"one")
    await registry.create("/b")
    (pages,) = registry._database.execute("PRAGMA page_count").fetchone()
    registry._database.execute(f"PRAGMA max_page_count = {pages}")  # as on a full disk
    large = [Create(f"/large{number}", bytes(1000)) for number in range(2000)]
    with pytest.raises(RegistryUnavailable):
        await registry.multi([Delete("/b"), Set("/a", b"two"), *large])
    assert registry.get("/a")[:3] == (b"one", 0, False)
    assert registry.children("/") == ["a", "b"]
    await registry.create("/small")
    await registry.close()

    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    assert registry.get("/a")[:3] == (b"one", 0, False)
    assert registry.children("/") == ["a", "b", "small"]
    await registry.close()


async def test_many_at_once_share_a_commit(tmp_path: Path) -> None:
    registry = EmbeddedRegistry.open(tmp_path / "registry.db")
    commits: list[str] = []
    registry._database.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    await asyncio.gather(*(registry.create(f"/n{number}") for number in range(200)))
    assert len(registry.children("/")) == 200
    assert len(commits) <= 2
    await registry.close()


# Creates and deletes groups of nodes that belong together, and prints what was confirmed.
WRITER = """
import asyncio, sys
from barnabas.broker.registry.embedded import EmbeddedRegistry
from barnabas.broker.registry.tree_operations import Create, Delete

def whole(name):
    return [f"/{name}", f"/{name}/partitions", *(f"/{name}/partitions/{number}" for number in range(2000))]

async def main(path, round_number):
    registry = EmbeddedRegistry.open(path)
    number = 0
    while True:
        name = f"{round_number}-{number}"
        await registry.multi([Create(path, name.encode()) for path in whole(name)])
        print("created", name, flush=True)
        await registry.multi([Delete(path) for path in reversed(whole(name))])
        print("deleted", name, flush=True)
        number += 1

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""
ROUNDS = 10


@pytest.mark.slow
async def test_a_killed_process_leaves_each_transaction_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    before: set[str] = set()
    for round_number in range(ROUNDS):
        verb, name = _run_and_kill(path, round_number)
        registry = EmbeddedRegistry.open(path)
        present = set(registry.children("/"))
        for topic in present:
            assert registry.get(f"/{topic}").data == topic.encode()
            assert len(registry.children(f"/{topic}/partitions")) == 2000
        # What was under way when the process died may have happened or not; everything else is as it was confirmed.
        under_way = name if verb == "created" else f"{round_number}-{int(name.split('-')[1]) + 1}"
        assert present - {under_way} == before - {under_way}
        await registry.close()
        before = present


def _run_and_kill(path: Path, round_number: int) -> list[str]:
    """Kill a writer during a transaction, at another point in each round; returns the last one that it confirmed."""
    command = [sys.executable, "-c", WRITER, str(path), str(round_number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as writer:
        if writer.stdout is None:
            raise RuntimeError("the writer has no output")
        last = ""
        for _ in range(4 + round_number % 2):  # the last line of which says "deleted" or "created"
            start = time.perf_counter()
            last = writer.stdout.readline()
        took = time.perf_counter() - start
        while time.perf_counter() < start + took + took * (round_number + 0.5) / ROUNDS:
            pass  # until the next transaction has come so far
        os.kill(writer.pid, signal.SIGKILL)
        for line in writer.stdout:
            last = line
    return last.split()
