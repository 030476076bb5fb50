"""`barnabas check`: what it prints, and how it ends."""

import json
import uuid
from pathlib import Path

import pytest

from barnabas.command import main
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.config import LogConfig
from barnabas.storage.log_directory import LogDirectory

NOW = 1_000_000
ORDERS = TopicPartition("orders", 0)


def opened(path: Path) -> LogDirectory:
    return LogDirectory(str(path), node_id=1, config_of=lambda topic: LogConfig(), now_ms=NOW)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with one partition of three batches, stopped cleanly."""
    path = tmp_path / "data"
    directory = opened(path)
    log = directory.create_log(ORDERS, uuid.uuid4(), LogConfig(), NOW)
    for number in range(3):
        batch = build_batch([NewRecord(NOW, b"key", b"value %d" % number)])
        log.append([memoryview(batch)], leader_epoch=0, now_ms=NOW)
    directory.close()
    return path


@pytest.fixture
def damaged(data: Path) -> Path:
    path = data / "orders-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    return data


def test_nothing_wrong(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(data)]) == 0
    assert capsys.readouterr().out == "nothing is wrong\n"
    assert main(["check", "--deep", "--json", str(data)]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_it_changes_nothing(data: Path) -> None:
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    main(["check", str(data)])
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before
    assert opened(data).was_clean


def test_what_is_wrong_is_named_with_its_file_and_place(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(damaged)]) == 1
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith(
        f"{damaged}/orders-0/{0:020d}.log, byte 78: the batch at byte 78 does not match its checksum"
    )
    assert last.endswith(" problems")


def test_the_same_for_programs(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json", str(damaged)]) == 1
    first, *_ = json.loads(capsys.readouterr().out)
    assert first["path"] == f"{damaged}/orders-0/{0:020d}.log"
    assert first["position"] == 78
    assert "checksum" in first["message"]


def test_a_directory_that_is_in_use_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = opened(data)
    assert main(["check", str(data)]) == 2
    assert capsys.readouterr().err == f"barnabas: {data} is in use; stop its broker first\n"
    directory.close()
    assert main(["check", str(data)]) == 0


def test_another_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photos").mkdir()
    for name in ("photos", "missing"):
        assert main(["check", str(tmp_path / name)]) == 2
        assert capsys.readouterr().err == f"barnabas: {tmp_path / name} is not a data directory\n"
    assert list((tmp_path / "photos").iterdir()) == []


def test_the_registry_is_looked_at(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "registry.db").write_bytes(b"this is no database, however long you look at it" * 100)
    assert main(["check", str(data)]) == 1
    assert capsys.readouterr().out.startswith(f"{data}/registry.db: file is not a database")
