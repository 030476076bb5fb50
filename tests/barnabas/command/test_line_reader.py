"""Lines of a file or a pipe."""

import os
import threading

import pytest

from barnabas.command import line_reader
from barnabas.command.line_reader import InputError, read_lines


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


def lines_of(tmp_path, data, chunk):
    file = tmp_path / "lines"
    file.write_bytes(data)
    source = os.open(file, os.O_RDONLY)
    try:
        return [line for lines, _ in read_lines(source, chunk) for line in lines]
    finally:
        os.close(source)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_they_are_read(tmp_path, chunk):
    assert lines_of(tmp_path, b"one\n\nthree\r\n four", chunk) == [b"one", b"", b"three\r", b" four"]


def test_a_final_newline_does_not_start_another_record(tmp_path):
    assert lines_of(tmp_path, b"one\n", 100) == [b"one"]
    assert lines_of(tmp_path, b"\n", 100) == [b""]
    assert lines_of(tmp_path, b"", 100) == []


def test_lines_of_a_pipe_come_as_they_are_written(pipe):
    reader, writer = pipe
    found = read_lines(reader)
    os.write(writer, b"one\ntwo\nth")
    assert next(found) == ([b"one", b"two"], True)
    os.write(writer, b"ree\n")
    assert next(found) == ([b"three"], True)
    os.write(writer, b"four")
    os.close(writer)
    assert list(found) == [([b"four"], False)]


def test_what_is_written_together_is_read_together(pipe):
    """A pipe returns a few pages per read, but a batch should be larger."""
    reader, writer = pipe
    data = b"x" * 99 + b"\n"

    def write():
        with os.fdopen(writer, "wb") as out:
            out.write(data * 10_000)

    thread = threading.Thread(target=write)
    thread.start()
    assert sum(len(lines) for lines, _ in read_lines(reader)) == 10_000
    thread.join()


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(line_reader, "_LONGEST_LINE", 10)
    with pytest.raises(InputError, match="more than 10 bytes"):
        lines_of(tmp_path, b"x" * 100, 4)


def test_what_came_before_a_line_without_end_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(line_reader, "_LONGEST_LINE", 10)
    file = tmp_path / "lines"
    file.write_bytes(b"one\ntwo\n" + b"x" * 100)
    source = os.open(file, os.O_RDONLY)
    found = read_lines(source, 50)
    assert next(found)[0] == [b"one", b"two"]
    with pytest.raises(InputError, match="more than 10 bytes"):
        next(found)
    os.close(source)
