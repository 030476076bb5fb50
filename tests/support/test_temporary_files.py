"""Temporary files go to memory, and nothing is left there but after a failure."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support import temporary_files
from tests.support.temporary_files import TemporaryFiles


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """A folder that stands in for the memory, in a process that has no TMPDIR."""
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(temporary_files, "ROOM", 0)
    return tmp_path


def test_everybody_gets_temporary_files_there(memory):
    files = TemporaryFiles(Path("here"), memory)
    files.begin()
    inherited = subprocess.run(["mktemp", "-u"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert Path(inherited).parent == Path(tempfile.gettempdir()) == files.folder
    files.end()
    assert list(memory.iterdir()) == []
    assert Path(tempfile.gettempdir()) != files.folder


def test_what_a_failure_left_stays_until_the_next_run(memory):
    files, others = TemporaryFiles(Path("here"), memory), TemporaryFiles(Path("elsewhere"), memory)
    files.begin()
    files.is_kept = True
    files.end()
    assert files.folder.exists()
    former = files.folder.rename(files.folder.with_name(files.folder.name.replace(str(os.getpid()), "0")))
    others.begin()
    others.end()
    assert former.exists()
    files.begin()
    assert not former.exists()
    files.end()


def test_whoever_sets_tmpdir_decides(memory, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/tmp")
    files = TemporaryFiles(Path("here"), memory)
    files.begin()
    assert (files.folder, os.environ["TMPDIR"]) == (None, "/tmp")
    files.end()
    assert os.environ["TMPDIR"] == "/tmp"


def test_without_room_they_stay_on_the_disk(memory, monkeypatch):
    monkeypatch.setattr(temporary_files, "ROOM", 1 << 60)
    files = TemporaryFiles(Path("here"), memory)
    files.begin()
    assert files.folder is None
