"""Where in a partition."""

import argparse

import pytest

from barnabas.command.positions import Position, position, within


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("earliest", 10),
        ("beginning", 10),
        ("latest", 30),
        ("end", 30),
        ("17", 17),
        ("-5", 25),
        ("-20", 10),
        ("-100", 10),
        ("0", 0),
        ("99", 99),
    ],
)
def test_in_a_log_from_10_to_30(text, offset):
    """An offset outside is left for the broker to refuse, since the log may have moved on by then."""
    assert within(position(text), 10, 30) == offset


def test_times(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1_769_860_800.0)
    assert position("@1769860800000") == Position(timestamp_ms=1_769_860_800_000)
    assert position("@2026-01-31T12:00") == Position(timestamp_ms=1_769_860_800_000)
    assert position("@-1h30m") == Position(timestamp_ms=1_769_855_400_000)


@pytest.mark.parametrize("text", ["", "x", "@", "@x", "@-", "@-x", "1.5"])
def test_what_is_not_a_position(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not an offset; -N: the last N"):
        position(text)
