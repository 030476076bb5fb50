"""barnabas.storage.filesystem: writes that the kernel takes only in part, and files that change whole."""

import errno
import os
from pathlib import Path

import pytest

from barnabas.storage.filesystem import FileSystem
from tests.storage.support import FaultyFileSystem


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def write(file_system: FileSystem, file: Path, buffers: list[bytes], position: int = 0) -> None:
    fd = file_system.open(str(file), create=True)
    try:
        file_system.write_all(fd, buffers, sum(map(len, buffers)), position)
    finally:
        file_system.close(fd)


def test_more_buffers_than_one_call_takes(file: Path) -> None:
    write(FileSystem(), file, [b"%04d" % number for number in range(3000)])
    assert file.read_bytes() == b"".join(b"%04d" % number for number in range(3000))


def test_what_the_kernel_left_over_is_written_too(file: Path) -> None:
    file_system = FaultyFileSystem()
    file_system.max_write = 3
    write(file_system, file, [b"abcd", b"efgh"], position=2)
    assert file.read_bytes() == b"\0\0abcdefgh"


def test_a_write_that_fails_in_the_middle(file: Path) -> None:
    file_system = FaultyFileSystem()
    file_system.write_error = OSError(errno.ENOSPC, "No space left on device")
    file_system.room = 5
    with pytest.raises(OSError, match="No space"):
        write(file_system, file, [b"abcd", b"efgh"])


def test_a_replaced_file_holds_the_old_or_the_new(file: Path) -> None:
    file_system = FaultyFileSystem()
    file_system.replace_file(str(file), b"old")
    file_system.write_error = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space"):
        file_system.replace_file(str(file), b"new")
    assert file.read_bytes() == b"old"
    file_system.write_error = None
    file_system.replace_file(str(file), b"new")
    assert file.read_bytes() == b"new"
    assert os.listdir(file.parent) == ["file"]
