"""`barnabas produce`: how lines become records."""

import os
import threading

import pytest

from broker.cli import main, produce
from broker.cli.produce import InputError, read_lines, split_keys


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


def test_a_last_line_end_begins_no_record(tmp_path):
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
    """A pipe hands out a few pages at a time; a batch is worth more."""
    reader, writer = pipe
    data = b"x" * 99 + b"\n"

    def write():
        with os.fdopen(writer, "wb") as out:
            out.write(data * 10_000)

    thread = threading.Thread(target=write)
    thread.start()
    assert sum(len(lines) for lines, _ in read_lines(reader)) == 10_000
    thread.join()


def test_a_line_without_end_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(produce, "_LONGEST_LINE", 10)
    with pytest.raises(InputError, match="more than 10 bytes"):
        lines_of(tmp_path, b"x" * 100, 4)


def test_keys_end_at_the_first_separator():
    assert split_keys([b"k:v", b"k:v:w", b":v", b"k:"], b":", 0) == ([b"k", b"k", b"", b"k"], [b"v", b"v:w", b"v", b""])


def test_a_line_without_separator_is_named_by_its_number():
    with pytest.raises(InputError, match=r"line 12 has no '\\t'"):
        split_keys([b"a\tb", b"ab"], b"\t", 10)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "TOPIC"),
        (["t", "--acks", "2"], "--acks"),
        (["t", "--compression", "zip"], "--compression"),
        (["t", "--partition", "-1"], "--partition"),
        (["t", "--key-separator", ""], "--key-separator"),
        (["t", "-H", "=x"], "NAME=VALUE"),
    ],
)
def test_arguments_that_are_wrong_are_named(arguments, said, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["produce", *arguments])
    assert exit.value.code == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["produce", "t", "--file", str(tmp_path / "missing")]) == 1
    assert str(tmp_path / "missing") in capsys.readouterr().err
