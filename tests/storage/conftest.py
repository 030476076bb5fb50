"""After every test of storage, what it left behind is checked."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.storage.check import Problem, check_directory, check_partition
from barnabas.storage.file_names import LOG_SUFFIX, parse_offset_file
from barnabas.storage.log import Log
from barnabas.storage.properties import META_PROPERTIES
from tests.storage.support import FaultyFileSystem, make_log


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory where there is such a thing: thousands of disks are made."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as path:
        yield Path(path)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return make_log(tmp_path / "topic-0")


@pytest.fixture
def disk() -> FaultyFileSystem:
    return FaultyFileSystem()


@pytest.fixture
def leaves_damage() -> None:
    """For a test that damages files and leaves them so."""


@pytest.fixture(autouse=True)
def nothing_is_wrong_on_disk(request: pytest.FixtureRequest) -> Iterator[None]:
    if "tmp_path" not in request.fixturenames or "leaves_damage" in request.fixturenames:
        yield
        return
    path = request.getfixturevalue("tmp_path")
    yield
    problems = [str(problem) for problem in _problems_under(path)]
    assert not problems, "the test left this behind:\n" + "\n".join(problems)


def _problems_under(path: Path) -> Iterator[Problem]:
    for folder, folders, files in os.walk(path):
        if META_PROPERTIES in files:
            folders.clear()
            yield from check_directory(folder)
        elif any((parsed := parse_offset_file(name)) and parsed[1] == LOG_SUFFIX for name in files):
            yield from check_partition(folder)
