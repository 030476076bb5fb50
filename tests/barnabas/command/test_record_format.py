"""How records are written: values, JSON, or a custom format."""

import json

import pytest

from barnabas.command.record_format import parse
from barnabas.protocol.records.record import Record
from barnabas.protocol.topic_partition import TopicPartition

PARTITION = TopicPartition("orders", 2)
FIRST = Record(7, 1700000000000, b"k", b"v", [("trace", b"1"), ("none", None)])
TOMBSTONE = Record(8, 1700000000001, None, None, ())


def test_text_is_one_value_per_line():
    assert parse("text")(PARTITION, [FIRST, TOMBSTONE]) == b"v\nnull\n"


def test_text_is_not_touched_whatever_its_encoding():
    assert parse("text")(PARTITION, [Record(0, 0, None, b"\xff\x00", ())]) == b"\xff\x00\n"


def test_json_has_everything_in_one_line_per_record():
    first, second = map(json.loads, parse("json")(PARTITION, [FIRST, TOMBSTONE]).splitlines())
    assert first == {
        "topic": "orders",
        "partition": 2,
        "offset": 7,
        "timestamp": 1700000000000,
        "key": "k",
        "value": "v",
        "headers": [{"name": "trace", "value": "1"}, {"name": "none", "value": None}],
    }
    assert (second["key"], second["value"], second["headers"]) == (None, None, [])


def test_json_keeps_bytes_that_are_not_text():
    (line,) = parse("json")(PARTITION, [Record(0, 0, None, b"\xff", ())]).splitlines()
    assert json.loads(line)["value"] == {"base64": "/w=="}


@pytest.mark.parametrize(
    ("format", "written"),
    [
        ("%t %p %o %k %v", b"orders 2 7 k v\n"),
        (r"%k\t%v", b"k\tv\n"),
        ("%T", b"1700000000000\n"),
        ("%h", b"trace=1,none=null\n"),
        ("100%% %v!", b"100% v!\n"),
        ("é%v", "év\n".encode()),
    ],
)
def test_a_custom_format(format, written):
    assert parse(format)(PARTITION, [FIRST]) == written


def test_it_is_written_for_each_record():
    assert parse("%o=%v")(PARTITION, [FIRST, TOMBSTONE]) == b"7=v\n8=null\n"


@pytest.mark.parametrize("format", ["", "txt", "%x", "%v %", "value"])
def test_an_invalid_format_is_refused(format):
    with pytest.raises(ValueError, match="%"):
        parse(format)


def test_a_newline_at_the_end_may_be_written_or_left_out():
    assert parse("%v")(PARTITION, [FIRST]) == parse(r"%v\n")(PARTITION, [FIRST]) == b"v\n"


def test_fields_as_kcat_has_them():
    assert parse("%s %S %K")(PARTITION, [FIRST, TOMBSTONE]) == b"v 1 1\nnull -1 -1\n"
