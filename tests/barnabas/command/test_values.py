"""From the text of an argument to its value, or to what is wrong with it."""

import argparse

import pytest

from barnabas.command.values import assignment, at_least, duration, moment, partitions, timestamp


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("0.5", 0.5),
        ("500ms", 0.5),
        ("5s", 5),
        ("1.5m", 90),
        ("2h", 7200),
        ("7d", 604_800),
        ("1h30m", 5400),
    ],
)
def test_durations(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "0s", "inf", "nan", "soon", "5x", "s", "5 s", "1h-30m", "36501d", "1e300"]
)
def test_what_is_not_a_duration_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration such as 500ms, 5s, 2m or 1h30m"):
        duration(text)


def test_times():
    assert moment("2026-01-31T12:00:00.000") == 1_769_860_800_000
    assert moment("2026-01-31T13:00:00+01:00") == 1_769_860_800_000
    assert timestamp("1769860800000") == 1_769_860_800_000
    assert timestamp("2026-01-31") == 1_769_817_600_000
    with pytest.raises(argparse.ArgumentTypeError, match="'noon' is not a time"):
        timestamp("noon")


def test_an_assignment_is_cut_at_its_first_sign():
    assert assignment("a=b=c") == ("a", "b=c")
    assert assignment("a=") == ("a", "")
    for text in ("a", "=a"):
        with pytest.raises(argparse.ArgumentTypeError, match="KEY=VALUE"):
            assignment(text)


def test_numbers():
    assert at_least(0)("0") == 0
    for parse, text in ((at_least(1), "0"), (at_least(0), "-1"), (at_least(0), "x")):
        with pytest.raises(argparse.ArgumentTypeError, match=text):
            parse(text)


def test_partitions():
    assert partitions("2,0,2") == [0, 2]
    for text in ("", "a", "0,", "-1"):
        with pytest.raises(argparse.ArgumentTypeError, match="0,1,2"):
            partitions(text)
