from typing import Any

import pytest

from barnabas.broker.config.values import Boolean, ConfigType, DecimalNumber, Kind, Pairs, Text, TextList, WholeNumber

INT = WholeNumber(ConfigType.INT, 1, None)


def refuses(kind: Kind[Any], text: str) -> bool:
    try:
        kind.read(text)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("False", False)])
def test_booleans(text, value):
    assert Boolean().read(text) is value
    assert Boolean().show(value) == text.lower()


@pytest.mark.parametrize("text", ["", "yes", "1", "truefalse"])
def test_invalid_booleans(text):
    assert refuses(Boolean(), text)


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("+5", 5), ("2147483647", 2**31 - 1), ("007", 7)])
def test_whole_numbers(text, value):
    assert INT.read(text) == value


@pytest.mark.parametrize(
    "text", ["", "+", "-", "0", "-1", "2147483648", "1.0", "1e3", "1_000", "0x1", "1 2", "٣", "--1", "9" * 5000]
)
def test_invalid_whole_numbers(text):
    assert refuses(INT, text)


def test_a_number_besides_the_range():
    level = WholeNumber(ConfigType.INT, 1, 9, besides=-1)
    assert level.read("-1") == -1
    assert level.expected == "a whole number from 1 to 9, or -1"
    assert refuses(level, "0")


@pytest.mark.parametrize(
    ("type", "largest"), [(ConfigType.SHORT, 2**15 - 1), (ConfigType.INT, 2**31 - 1), (ConfigType.LONG, 2**63 - 1)]
)
def test_the_type_bounds_what_nothing_else_bounds(type, largest):
    kind = WholeNumber(type, None, None)
    assert kind.read(str(largest)) == largest
    assert kind.read(str(-largest - 1)) == -largest - 1
    for text in (str(largest + 1), str(-largest - 2)):
        assert refuses(kind, text)


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), (".5", 0.5), ("1e-1", 0.1), ("1", 1.0), ("+0.", 0.0)])
def test_decimal_numbers(text, value):
    assert DecimalNumber(0, 1).read(text) == value


@pytest.mark.parametrize("text", ["", "1.5", "-0.1", "nan", "inf", "1_0", "0x1", "e", "1e", "1e999"])
def test_invalid_decimal_numbers(text):
    assert refuses(DecimalNumber(0, 1), text)


@pytest.mark.parametrize("text", ["1e999", "-1e999"])
def test_what_is_too_large_for_a_double(text):
    assert refuses(DecimalNumber(None, None), text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (1e-5, "1.0E-5"),
        (1234567.0, "1234567.0"),
        (12345678.0, "1.2345678E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_decimal_numbers_are_shown_as_java_shows_them(value, shown):
    assert DecimalNumber(None, None).show(value) == shown


def test_texts():
    assert Text(ConfigType.STRING).read("anything at all") == "anything at all"
    one_of = Text(ConfigType.STRING, ("none", "required"))
    assert one_of.read("required") == "required"
    assert refuses(one_of, "REQUIRED")
    assert Text(ConfigType.STRING, ("none", "required"), ignore_case=True).read("REQUIRED") == "REQUIRED"


def test_lists():
    kind = TextList()
    assert kind.read("") == ()
    assert kind.read("a, b ,c") == ("a", "b", "c")
    assert kind.read("a,b,a") == ("a", "b")
    assert kind.show(("a", "b")) == "a,b"
    for text in ("a,,b", "a,", ","):
        assert refuses(kind, text)


def test_lists_that_are_restricted():
    assert refuses(TextList(may_be_empty=False), "")
    assert refuses(TextList(one_of=("compact", "delete")), "delete,keep")
    assert refuses(TextList(pattern=r"\d+:\d+", form="a pair of numbers"), "1:x")
    assert TextList(pattern=r"\d+:\d+", form="a pair of numbers").read("1:2") == ("1:2",)


def test_pairs():
    kind = Pairs(WholeNumber(ConfigType.INT, 0, None))
    assert kind.read("") == {}
    assert kind.read("localhost:3, ::1:4") == {"localhost": 3, "::1": 4}
    assert kind.show({"a": 1, "b": 2}) == "a:1,b:2"
    for text in ("a", "a:", ":1", "a:1,a:2", "a:1,", "a:-1"):
        assert refuses(kind, text)
