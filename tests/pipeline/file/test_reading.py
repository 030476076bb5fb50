"""A pipeline's file: what is right becomes objects, what is wrong is reported at once and with lines."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.file import FileError, load
from barnabas.pipeline.file.example import EXAMPLE
from barnabas.pipeline.file.reading import parse
from barnabas.pipeline.model import (
    BadRecords,
    BadRecordsAction,
    ConsoleSink,
    Delivery,
    Encoding,
    Format,
    OutputMode,
    ParquetSink,
    PythonTransform,
    Source,
    SqlTransform,
    TopicSink,
    Trigger,
    Watermark,
    Way,
)

SMALL = """\
name: small
sources:
  lines: lines
sinks:
  out: {from: lines, topic: out}
checkpoint: here
"""


def read(text, folder=Path("/pipelines"), overrides=()):
    return parse(text, "file.yaml", folder, overrides)


def problems(text, **more):
    with pytest.raises(FileError) as caught:
        read(text, **more)
    return [(each.line, each.message) for each in caught.value.problems]


def test_a_small_file():
    pipeline = read(SMALL)
    assert pipeline.name == "small"
    assert pipeline.bootstrap == "127.0.0.1:9092"
    assert pipeline.sources == (Source("lines", ("lines",), value=Format(Encoding.TEXT)),)
    assert pipeline.sinks == (TopicSink("out", "lines", "out"),)
    assert pipeline.checkpoint == "/pipelines/here"


def test_everything_that_a_file_may_say(tmp_path):
    (tmp_path / "scoring.py").touch()
    pipeline = read(
        """\
name: large
bootstrap: a:9092,b:9092
kafka: {security.protocol: SSL, ssl: {ca.location: ca.pem}}
spark: {spark.sql.shuffle.partitions: 4}
master: spark://host:7077
sources:
  a:
    topics: [x, y]
    from: {x: {0: 5}}
    value: json
    schema: id INT NOT NULL, at TIMESTAMP
    key: {format: json, schema: k INT}
    headers: true
    watermark: {column: at, delay: 1 minute}
    max_records_per_batch: 10
  b: {pattern: "z-.*", from: 2026-11-16T08:00:00Z, value: csv, schema: {id: INT, name: STRING}, options: {sep: ;}}
  c: {topic: c, table: true, value: {format: avro, schema: {type: record, name: r, fields: []}, confluent_header: true}}
transforms:
  d: SELECT * FROM a
  e: {sql: SELECT * FROM d}
  f: {python: "scoring:score", inputs: [e, b], arguments: {limit: 3}}
sinks:
  g: {from: f, topic: g, key: id, partition: id % 2, headers: h, columns: [id], format: csv, partitions: 3,
      delivery: exactly-once, way: per-batch, mode: update, transaction_timeout: 60, staging: /shared}
  h: {from: d, parquet: "hdfs://x/y", partition_by: id}
  i: {from: d, console: true, rows: 5, mode: complete}
bad_records: {topic: dead, partitions: 1}
checkpoint: s3a://bucket/checkpoint
trigger: once
""",
        folder=tmp_path,
    )
    a, b, c = pipeline.sources
    assert a.topics == ("x", "y")
    assert a.starting == '{"x": {"0": 5}}'
    assert a.value == Format(Encoding.JSON, "id INT NOT NULL, at TIMESTAMP")
    assert a.key == Format(Encoding.JSON, "k INT")
    assert a.watermark == Watermark("at", "1 minute")
    assert (a.headers, a.max_records_per_batch) == (True, 10)
    assert b.pattern == "z-.*"
    assert b.starting == "1794816000000"
    assert b.value == Format(Encoding.CSV, "`id` INT, `name` STRING", {"sep": ";"})
    assert c.table
    assert c.value.encoding is Encoding.AVRO
    assert c.value.confluent_header
    assert pipeline.transforms == (
        SqlTransform("d", "SELECT * FROM a"),
        SqlTransform("e", "SELECT * FROM d"),
        PythonTransform("f", "scoring:score", ("e", "b"), {"limit": 3}),
    )
    g, h, i = pipeline.sinks
    assert g == TopicSink(
        "g", "f", "g", "id", Format(Encoding.CSV), ("id",), "id % 2", "h", 3,
        Delivery.EXACTLY_ONCE, Way.PER_BATCH, OutputMode.UPDATE, 60.0, "/shared",
    )  # fmt: skip
    assert h == ParquetSink("h", "d", "hdfs://x/y", ("id",))
    assert i == ConsoleSink("i", "d", 5, OutputMode.COMPLETE)
    assert pipeline.kafka == {"security.protocol": "SSL", "ssl.ca.location": "ca.pem"}
    assert pipeline.spark == {"spark.sql.shuffle.partitions": "4"}
    assert pipeline.bad_records == BadRecords(BadRecordsAction.DEAD_LETTER, "dead", 1)
    assert pipeline.trigger == Trigger(once=True)
    assert pipeline.checkpoint == "s3a://bucket/checkpoint"
    assert pipeline.master == "spark://host:7077"


def test_everything_that_is_wrong_is_reported_at_once_with_its_line():
    assert problems(
        """\
name: my pipeline
boostrap: 1
sources:
  lines:
    topic: lines
    value: json
    schema: id INTT
  users: {tpic: x}
  bytes: {topic: b, value: jsn}
transforms:
  a: |
    SELECT *
    FROM linez
  b:
    python: no_such_module:bar
    inputs: [lines]
  c: SELEC 1
  d: SELECT * FROM e
  e: SELECT 1 AS one
sinks:
  out: {from: f, topic: out, delivery: exactly once}
  files: {from: a, parket: /x}
trigger: never
"""
    ) == [
        (1, "checkpoint: is missing"),
        (1, "name: a pipeline's name has letters, digits, dots, dashes and underscores, at most 100"),
        (2, "boostrap: 'boostrap' is not known here; did you mean 'bootstrap'?"),
        (
            7,
            "sources.lines.value.schema: the column id has the unknown type INTT; did you mean INT? "
            "(an example: id INT NOT NULL, name STRING)",
        ),
        (8, "sources.users.tpic: 'tpic' is not known here; did you mean 'topic'?"),
        (8, "sources.users: a source has either a topic (or topics) or a pattern"),
        (9, "sources.bytes.value: 'jsn' is not one of json, avro, csv, text, bytes; did you mean 'json'?"),
        (13, "transforms.a.sql: there is no view 'linez'; did you mean 'lines'?"),
        (15, "transforms.b.python: there is no module 'no_such_module', neither in /pipelines nor on Python's path"),
        (17, "transforms.c.sql: a query begins with SELECT or WITH, not with 'SELEC'"),
        (18, "transforms.d.sql: the view 'e' is defined further below; a transformation sees those above it"),
        (
            21,
            "sinks.out.delivery: 'exactly once' is not one of exactly-once, at-least-once; "
            "did you mean 'exactly-once'?",
        ),
        (21, "sinks.out.from: there is no view 'f'"),
        (
            22,
            "sinks.files: a sink is one of 'topic: NAME', 'parquet: PATH' and 'console: true'; did you mean 'parquet'?",
        ),
        (23, "trigger: 'never' is not a time such as '5 seconds', and not 'once'"),
    ]


SECURED = """\
name: secured
security:
  security.protocol: SASL_SSL
  sasl: {mechanism: PLAIN, username: alice, password: s3cret}
  ssl.ca.location: ca.pem
kafka: {client.id: me}
sources: {lines: lines}
sinks: {out: {from: lines, topic: out}}
checkpoint: c
"""


def test_security_in_the_file_and_on_the_command_line():
    pipeline = parse(SECURED, "f", Path("/"))
    assert pipeline.kafka == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "s3cret",
        "ssl.ca.location": "ca.pem",
        "client.id": "me",
    }
    assert "s3cret" not in repr(pipeline)
    told = parse(SECURED, "f", Path("/"), security={"security.protocol": "SASL_PLAINTEXT"})
    assert told.kafka["security.protocol"] == "SASL_PLAINTEXT"


def test_security_that_a_client_cannot_use_is_reported_with_its_line_and_without_its_secrets():
    text = SECURED.replace("  ssl.ca.location: ca.pem", "  ssl.truststore.location: trusted.p12")
    with pytest.raises(FileError) as caught:
        parse(text, "f", Path("/"))
    assert str(caught.value).startswith("f:2: security: ssl.truststore.location must be a PEM file")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("sources.lines", "{topic: a/b}"), "'a/b' cannot name a topic"),
        (("sources.lines", "{topic: a, pattern: b}"), "either a topic (or topics) or a pattern"),
        (("sources.lines", "{pattern: '('}"), "is not a regular expression"),
        (("sources.lines", "{topic: a, from: ealiest}"), "did you mean 'earliest'?"),
        (("sources.lines", "{topic: a, from: {a: {x: 1}}}"), "offsets by topic and partition"),
        (("sources.lines", "{topic: a, value: csv}"), "csv needs a schema"),
        (("sources.lines", "{topic: a, value: avro}"), "avro needs a schema"),
        (("sources.lines", "{topic: a, value: avro, schema: nonsense}"), "an Avro schema is JSON"),
        (("sources.lines", "{topic: a, value: text, schema: id INT}"), "text has no schema"),
        (("sources.lines", "{topic: a, value: csv, schema: infer}"), "only the schema of JSON can be inferred"),
        (("sources.lines", "{topic: a, value: json, schema: _id INT}"), "a leading underscore is for the record's own"),
        (("sources.lines", "{topic: a, key: csv}"), "a key may be text, bytes or json"),
        (("sources.lines", "{topic: a, table: true}"), "every source is a table"),
        (("sources.lines", "{topic: a, watermark: soon}"), "'soon' is not a time"),
        (("sources.lines", "{topic: a, headers: 3}"), "'headers' is true or false, not '3'"),
        (("sources.lines", "{topic: a, max_records_per_batch: 0}"), "a whole number of at least 1"),
        (("sources", "{}"), "a pipeline needs a source"),
        (("sources", "[lines]"), "'sources' has a name for each of its parts, not a list"),
        (("sources.2lines", "x"), "'2lines' cannot name a view"),
        (("transforms.lines", "SELECT 1"), "the name 'lines' is taken by sources.lines"),
        (("transforms.x", "{}"), "either 'sql' or 'python'"),
        (("transforms.x", "{python: no colon, inputs: lines}"), "is not of the form package.module:function"),
        (("transforms.x", "{python: 'json:loads'}"), "a Python function needs the views that it is given"),
        (("sinks.out.way", "per-tsk"), "did you mean 'per-task'?"),
        (
            ("sinks.out", "{from: lines, topic: a, way: per-task, mode: update}"),
            "per-task is for streams without state",
        ),
        (("sinks.out", "{from: lines, topic: a, way: per-task, delivery: at-least-once}"), "a way applies to"),
        (("sinks.out.transaction_timeout", "1000"), "is from 1 to 900 seconds"),
        (("bootstrap", "nowhere"), "'nowhere' is not an address"),
        (("bad_records", "ignore"), "is not 'stop', 'skip' or 'topic: NAME'"),
        (("bad_records", "{topic: lines}"), "is one that the pipeline reads"),
        (("bad_records", "{}"), "bad_records.topic: is missing"),
    ],
)
def test_single_mistakes(change, said):
    found = problems(SMALL, overrides=[change])
    assert any(said in message for _, message in found), found


def test_a_value_from_the_command_line_goes_over_the_file():
    pipeline = read(
        SMALL, overrides=[("sources.lines.topic", "a"), ("trigger", "5 seconds"), ("sinks.out.partitions", "3")]
    )
    assert pipeline.sources[0].topics == ("a",)
    assert pipeline.trigger == Trigger("5 seconds")
    assert pipeline.sinks[0].partitions == 3


def test_invalid_yaml_names_the_line():
    ((line, message),) = problems("name: x\nsources: {a: [}\n")
    assert line == 2
    assert message.startswith("this is not YAML")
    assert problems("") == [(1, "the file is empty; `barnabas pipeline init` writes an example")]
    assert problems("- a\n- b\n")[0] == (1, "checkpoint: is missing")


def test_a_key_that_is_there_twice():
    assert problems(SMALL + "name: again\n") == [(7, "the key 'name' is there twice; the first is on line 1")]


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(PipelineError, match="No such file"):
        load(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"name: x\n\xff\xfe")
    with pytest.raises(FileError, match=r"binary\.yaml:2: this is not UTF-8"):
        load(tmp_path / "binary.yaml")


def test_the_example_of_init_is_right():
    assert read(EXAMPLE).name == "paid-orders"


@pytest.mark.parametrize("file", sorted(Path("examples/pipelines").glob("*.yaml")), ids=lambda file: file.stem)
def test_the_examples_are_right(file):
    load(file)


def test_aliases_that_stand_for_more_than_fits_into_memory():
    laughs = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30))
    (line, message) = problems(f"l0: &l0 [lol]\n{laughs}\n")[0]
    assert line == 1
    assert message == "with its aliases, this has more than 100000 parts"


@pytest.mark.parametrize("depth", [200, 100_000])
def test_nesting_that_would_exhaust_the_stack(depth):
    messages = [message for _, message in problems("name: " + "[" * depth + "]" * depth)]
    assert "this is nested more than 100 levels deep" in messages
