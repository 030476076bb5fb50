"""Names chosen by clients cannot control a terminal."""

import json

import pytest

from barnabas.printable import printable, printable_json, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-ä-😀", "orders-ä-😀"),
        ("\x1b[2J", r"\x1b[2J"),
        ("two\nlines\t", r"two\x0alines\x09"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),  # a terminal may take one byte for an escape and a bracket
        ("\u202egpj", r"\u202egpj"),
    ],
)
def test_control_characters_are_written_out(text, shown):
    assert printable(text) == shown


def test_lines_may_stay_lines():
    assert printable_lines("first\n\tsecond\x1b") == "first\n\tsecond\\x1b"


def test_json_means_the_same():
    text = "\x1b\x9b\u202e ä\n"
    shown = printable_json(json.dumps([text], ensure_ascii=False, indent=2))
    assert json.loads(shown) == [text]
    assert "\x9b" not in shown
    assert "ä" in shown
