"""How lines become records."""

import json

import pytest

from barnabas.client.record_encoder import Records
from barnabas.command.line_records import JsonLines, TextLines


def test_lines_are_values():
    assert TextLines().parse([b"a", b""], 0) == (Records([b"a", b""]), None)


def test_keys_end_at_the_first_separator():
    records, error = TextLines(separator=b":").parse([b"k:v", b"k:v:w", b":v", b"k:"], 0)
    assert records == Records([b"v", b"v:w", b"v", b""], [b"k", b"k", b"", b"k"])
    assert error is None


def test_a_line_without_separator_ends_it_and_what_came_before_stays():
    records, error = TextLines(separator=b"\t").parse([b"a\tb", b"ab", b"c\td"], 10)
    assert records == Records([b"b"], [b"a"])
    assert str(error) == r"line 12 has no '\t' between a key and a value"


def test_a_key_a_timestamp_and_a_text_for_null():
    records, _ = TextLines(key=b"k", null=b"-", timestamp_ms=5).parse([b"a", b"-"], 0)
    assert records == Records([b"a", None], [b"k", b"k"], timestamps=[5, 5])


def parsed(*objects, **options):
    records, error = JsonLines(3, **options).parse([json.dumps(each).encode() for each in objects], 0)
    assert error is None, error
    return records


def test_a_whole_record():
    record = {"key": "k", "value": "v", "headers": {"h": "1", "n": None}, "partition": 2, "timestamp": 5}
    assert parsed(record) == Records([b"v"], [b"k"], [[("h", b"1"), ("n", None)]], [5], [2])


def test_what_consume_writes():
    record = {
        "topic": "t",
        "partition": 0,
        "offset": 9,
        "timestamp": 5,
        "key": None,
        "value": {"base64": "/w=="},
        "headers": [{"name": "h", "value": "1"}, {"name": "h", "value": None}],
    }
    assert parsed(record) == Records([b"\xff"], [None], [[("h", b"1"), ("h", None)]], [5], [0])


def test_json_within_json():
    assert parsed({"value": {"id": 1, "name": "ü"}}).values == ['{"id":1,"name":"ü"}'.encode()]
    assert parsed({"value": 1.5}, {"value": [1]}, {"value": True}).values == [b"1.5", b"[1]", b"true"]


def test_times_in_iso_8601():
    assert parsed({"value": "a", "timestamp": "1970-01-01T00:00:05Z"}).timestamps == [5000]


def test_empty_lines_are_skipped():
    records, error = JsonLines(3).parse([b"", b'{"value": "a"}', b" ", b'{"value": null}', b""], 0)
    assert (records.values, error) == ([b"a", None], None)
    assert len(JsonLines(3).parse([b""], 0).records) == 0


def test_a_key_and_a_timestamp_for_those_that_have_none():
    records = parsed({"value": "a"}, {"value": "b", "key": None, "timestamp": 7}, key=b"k", timestamp_ms=5)
    assert (records.keys, records.timestamps) == ([b"k", None], [5, 7])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b'{"value": NaN}', "it is not JSON: it has NaN"),
        (b'{"value": ' + b"[" * 100_000, "its JSON is nested too deeply"),
        (b"[]", "it is not a JSON object"),
        (b'{"key": "a"}', "it has no value; a tombstone has null"),
        (
            b'{"value": "a", "kye": 1}',
            "'kye' is not a field of a record; key, value, headers, partition, timestamp are",
        ),
        (b'{"value": {"base64": "?"}}', "'?' is not base64"),
        (b'{"value": "a", "headers": "x"}', "headers are an object, or a list"),
        (b'{"value": "a", "headers": [1]}', "headers are an object, or a list"),
        (b'{"value": "a", "timestamp": "noon"}', "timestamp is 'noon'"),
        (b'{"value": "a", "timestamp": -1}', "timestamp is -1"),
        (b'{"value": "a", "partition": 3}', "the topic has no partition 3; its partitions are 0 to 2"),
        (b'{"value": "a", "partition": "0"}', "partition is '0', but it must be a number"),
    ],
)
def test_what_is_wrong_with_a_line(line, said):
    records, error = JsonLines(3).parse([b'{"value": "before"}', line, b'{"value": "after"}'], 10)
    assert records.values == [b"before"]
    assert str(error).startswith(f"line 12: {said}")
