"""Whole records: `barnabas produce --json` and `barnabas consume --json`."""

import json


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def test_every_field_goes_in_and_comes_out(done, produce, topic):
    record = {
        "key": "k",
        "value": "v",
        "headers": [{"name": "h", "value": "1"}, {"name": "h", "value": None}],
        "partition": 2,
        "timestamp": 1_700_000_000_000,
    }
    produce(topic, json.dumps(record), options=("--json",))
    assert records(done("consume", topic, "-e", "--json")) == [{**record, "topic": topic, "offset": 0}]


def test_a_topic_is_copied(done, produce, topic, tmp_path):
    produce(topic, "a:1", "b:2", "c:-", options=("-K", ":", "--null", "-", "-H", "x=y", "--timestamp", "5000"))
    copied = done("consume", topic, "-e", "--json")
    produce(f"{topic}-copy", *copied.splitlines(), options=("--json",))
    again = done("consume", f"{topic}-copy", "-e", "--json")

    def sorted_by_key(text):
        return sorted(({**record, "topic": None} for record in records(text)), key=lambda record: record["key"])

    assert sorted_by_key(again) == sorted_by_key(copied)
    assert {record["timestamp"] for record in records(again)} == {5000}


def test_the_command_line_fills_in_what_is_missing(done, produce, topic):
    lines = ('{"value": {"id": 1}}', "", '{"value": null, "key": "own", "headers": {"own": "1"}}')
    options = ("--json", "-k", "common", "-H", "common=2", "-p", "1", "--timestamp", "1970-01-01T00:00:05")
    produce(topic, *lines, options=options)
    first, second = records(done("consume", topic, "-e", "--json"))
    common = {"name": "common", "value": "2"}
    assert (first["key"], first["value"], first["headers"]) == ("common", '{"id":1}', [common])
    assert (second["key"], second["value"]) == ("own", None)
    assert second["headers"] == [common, {"name": "own", "value": "1"}]
    assert {(each["partition"], each["timestamp"]) for each in (first, second)} == {(1, 5000)}


def test_a_line_that_is_wrong_ends_it_and_what_came_before_is_written(command, done, topic, tmp_path):
    file = tmp_path / "lines"
    file.write_text('{"value": "a"}\n\n{"value": "b"}\n{"vale": "c"}\n{"value": "d"}\n')
    result = command("produce", topic, "--json", "--file", file)
    assert result.status == 1
    assert result.err.startswith("barnabas: line 4: 'vale' is not a field of a record")
    assert result.err.endswith("; 2 records were written before that\n")
    assert sorted(done("consume", topic, "-e").split()) == ["a", "b"]
