"""The arithmetic of reset-offsets, and what it refuses before it asks a broker."""

import argparse

import pytest

from barnabas.client.errors import ClientError
from barnabas.command import main
from barnabas.command.reset_offsets import Scope, moment, read_offsets, scope, shifted, time_ago, within
from barnabas.protocol.topic_partition import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def test_an_offset_out_of_range_becomes_the_nearest_one_in_range():
    bounds = {A: (10, 20)}
    assert [within({A: offset}, bounds)[A] for offset in (-5, 9, 10, 15, 20, 21)] == [10, 10, 10, 15, 20, 20]


def test_shifting_needs_something_to_shift():
    assert shifted([A], {A: 5, B: 7}, -3) == {A: 2}
    with pytest.raises(ClientError, match="b-1"):
        shifted([A, B], {A: 5}, 1)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T00:00:00.250", 250),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-02T00:00:00Z", 86_400_000),
        ("2026-01-31T12:00:00.001", 1769860800001),
    ],
)
def test_moments_are_in_utc_unless_they_say_otherwise(text, milliseconds):
    assert moment(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("P1D", 86_400_000), ("PT2H", 7_200_000), ("P1DT1H1M1S", 90_061_000), ("PT0.25S", 250), ("PT90M", 5_400_000)],
)
def test_durations(text, milliseconds):
    assert time_ago(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1H", "PT1D", "P-1D", "P1DT"])
def test_an_invalid_duration_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="not a duration"):
        time_ago(text)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00"])
def test_an_invalid_time_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="not a time"):
        moment(text)


def test_a_topic_with_or_without_partitions():
    assert scope("a") == Scope("a", None)
    assert scope("a:2,0") == Scope("a", [0, 2])
    for text in ("", ":1", "a:", "a:x"):
        with pytest.raises(argparse.ArgumentTypeError):
            scope(text)


def test_a_file_of_offsets(tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text("a,0,5\n\nb,1,0\n")
    assert read_offsets(file) == {A: 5, B: 0}


@pytest.mark.parametrize("line", ["a,0", "a,0,x", "a,0,1,2"])
def test_an_invalid_line_is_named(tmp_path, line):
    file = tmp_path / "offsets.csv"
    file.write_text(f"a,0,5\n{line}\n")
    with pytest.raises(ClientError, match=r"offsets\.csv:2: .*TOPIC,PARTITION,OFFSET"):
        read_offsets(file)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to-earliest"], "--topic or --all-topics"),
        (["--to-earliest", "--topic", "t", "--all-topics"], "--topic or --all-topics"),
        (["--from-file", "f", "--topic", "t"], "--from-file names the topics"),
    ],
)
def test_the_topics_may_be_given_only_once(arguments, said, capsys):
    assert main(["groups", "reset-offsets", "g", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--to-earliest", "--to-latest"]])
def test_the_target_may_be_given_only_once(arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["groups", "reset-offsets", "g", "--topic", "t", *arguments])
    assert exit.value.code == 2
    assert "--to-earliest" in capsys.readouterr().err
