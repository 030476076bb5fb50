"""Pipelines of every format and sink, and what a user is told when one cannot run."""

import json
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext

from barnabas import Barnabas
from barnabas.pipeline import queries, running
from barnabas.pipeline.cluster import Cluster
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.file.reading import parse
from barnabas.pipeline.model import Encoding, Format, ParquetSink, Pipeline, Source, SqlTransform, TopicSink
from barnabas.pipeline.running import run
from barnabas.pipeline.session import spark_session
from tests.pipeline.topics import Topics
from tests.support.ports import HeldPort

NAME_FIELD = ', {"name": "name", "type": "string"}'
AVRO = f'{{"type": "record", "name": "point", "fields": [{{"name": "x", "type": "int"}}{NAME_FIELD}]}}'


ON_THREE_BROKERS = """\
name: three-brokers
sources:
  numbers: {{topic: numbers, value: json, schema: "n INT", max_records_per_batch: 150}}
sinks:
  out: {{from: numbers, topic: out}}
checkpoint: {checkpoint}
"""


@pytest.fixture
def go(broker, spark, tmp_path):
    """Run the text of a pipeline file over all existing records."""

    def go(text, **more):
        pipeline = parse(text, "test.yaml", tmp_path, [("bootstrap", broker.bootstrap)])
        return run(pipeline, once=True, spark=spark, **more)

    return go


def failure(go, text):
    with pytest.raises(PipelineError) as caught:
        go(text)
    return str(caught.value)


@pytest.mark.spark
def test_formats_keys_headers_and_sinks(broker, go, spark, tmp_path, capsys):
    topics = Topics(broker.bootstrap)
    topics.create(inferred=1, csv=1, avro=1, raw=1, out=3, csv_out=1, plain=1, avro_out=1)
    topics.fill("inferred", [("a", '{"n": 1, "inner": {"s": "x"}}'), ("b", '{"n": 2}')])
    topics.fill("csv", ["1;one", "2;two"])
    point = bytes([2, 6]) + b"one"  # x = 1, a name of three bytes, in Avro's zigzag
    topics.fill("avro", [b"\x00" + struct.pack(">i", 7) + point])
    topics.fill("raw", [{"key": b"\xff", "value": b"\xfe", "headers": [("h", b"v")]}])
    outcome = go(
        f"""\
name: formats
sources:
  inferred: {{topic: inferred, value: json}}
  csv: {{topic: csv, value: csv, schema: "n INT, name STRING", options: {{sep: ";"}}}}
  points: {{topic: avro, value: avro, schema: '{AVRO}', confluent_header: true}}
  raw: {{topic: raw, value: bytes, key: bytes, headers: true}}
transforms:
  named: SELECT n + 1 AS n, inner.s, _key, _topic, _partition, _offset FROM inferred
sinks:
  out: {{from: named, topic: out, key: _key, partition: n % 3}}
  csv_out: {{from: csv, topic: csv-out, format: csv, columns: [name, n], delivery: at-least-once}}
  plain: {{from: raw, topic: plain, format: bytes, key: _key, headers: _headers}}
  avro_out: {{from: points, topic: avro-out, format: {{format: avro, schema: '{AVRO}'}}}}
  files: {{from: csv, parquet: files, partition_by: n}}
  screen: {{from: points, console: true}}
checkpoint: checkpoint
"""
    )
    assert {name: state.rows_in for name, state in outcome.states.items()} == {
        "out": 2, "csv_out": 2, "plain": 1, "avro_out": 1, "files": 2, "screen": 1,
    }  # fmt: skip
    out = {message.key(): (message.partition(), json.loads(message.value())) for message in topics.read("out")}
    assert out == {b"a": (2, {"n": 2, "s": "x"}), b"b": (0, {"n": 3})}
    assert sorted(topics.values("csv-out")) == ["one,1", "two,2"]
    (plain,) = topics.read("plain")
    assert (plain.key(), plain.value(), plain.headers()) == (b"\xff", b"\xfe", [("h", b"v")])
    (avro,) = topics.read("avro-out")
    assert avro.value() == point
    assert {(row.n, row.name) for row in spark.read.parquet(str(tmp_path / "files")).collect()} == {
        (1, "one"),
        (2, "two"),
    }
    assert "screen, batch 0: 1 rows" in capsys.readouterr().out
    # The schema that was inferred stays, whatever the topic's first records are later.
    identity = json.loads((tmp_path / "checkpoint" / "pipeline.json").read_text())
    assert "inner" in identity["schemas"]["inferred"]


@pytest.mark.spark
def test_a_batch_that_ends_while_the_pipeline_is_stopped_is_counted(broker, spark, tmp_path, monkeypatch):
    begun, stopping = threading.Event(), threading.Event()
    show_batch, stop = queries.show_batch, running._stop

    def held(*arguments):
        begun.set()
        assert stopping.wait(60)
        return show_batch(*arguments)

    def stopped(*arguments):
        stopping.set()
        stop(*arguments)

    monkeypatch.setattr(queries, "show_batch", held)
    monkeypatch.setattr(running, "_wait", lambda *arguments: begun.wait(60))  # the time is up in the first batch
    monkeypatch.setattr(running, "_stop", stopped)
    topics = Topics(broker.bootstrap)
    topics.create(lines=1)
    topics.fill("lines", ["a", "b", "c"])
    text = "name: stopped\nsources: {lines: {topic: lines}}\nsinks: {screen: {from: lines, console: true}}\n"
    bootstrap = [("bootstrap", broker.bootstrap), ("checkpoint", "checkpoint")]
    (screen,) = run(parse(text, "test.yaml", tmp_path, bootstrap), seconds=60, spark=spark).states.values()
    assert (screen.rows_in, screen.rows_out, screen.batches, screen.ended) == (3, 3, 1, False)


@pytest.mark.spark
def test_a_pipeline_made_in_python(broker, spark, tmp_path):
    topics = Topics(broker.bootstrap)
    topics.create(numbers=1)
    topics.fill("numbers", ["1", "2", "3"])
    pipeline = Pipeline(
        name="in-python",
        bootstrap=broker.bootstrap,
        sources=(Source("numbers", ("numbers",), value=Format(Encoding.TEXT)),),
        transforms=(SqlTransform("odd", "SELECT value FROM numbers WHERE value % 2 = 1"),),
        sinks=(
            TopicSink("out", "odd", "odd", format=Format(Encoding.TEXT), partitions=1),
            ParquetSink("files", "odd", str(tmp_path / "files")),
        ),
        checkpoint=str(tmp_path / "checkpoint"),
    )
    run(pipeline, once=True, spark=spark)
    assert topics.values("odd") == ["1", "3"]
    with pytest.raises(PipelineError, match=r"sinks\.out\.from: there is no view 'nothing'"):
        run(Pipeline("x", "a:1", pipeline.sources, (TopicSink("out", "nothing", "odd"),), "c"), spark=spark)


BAD = """\
name: bad
sources:
  numbers: {topic: numbers, value: json, schema: n INT NOT NULL}
sinks:
  out: {from: numbers, topic: out}
checkpoint: checkpoint
"""


@pytest.mark.spark
def test_a_schema_that_does_not_fit_stops_the_pipeline_or_not(broker, go, tmp_path):
    topics = Topics(broker.bootstrap)
    topics.create(numbers=1, out=1)
    topics.fill("numbers", ['{"n": 1}', '{"n": "one"}', '{"n": 2}'])
    said = failure(go, BAD)
    assert "stopped at a bad record" in said
    assert 'topic numbers, partition 0, offset 1: {"n": "one"}' in said
    assert "bad_records: skip" in said
    assert topics.values("out") == []
    go(BAD + "bad_records: skip\n")
    assert [json.loads(each)["n"] for each in topics.values("out")] == [1, 2]


@pytest.mark.spark
def test_skipped_records_are_counted_whatever_the_sink(broker, go, capsys):
    topics = Topics(broker.bootstrap)
    topics.create(numbers=2, twice=1, often=1, out=1, names=1)
    topics.fill("numbers", [{"partition": n % 2, "value": value} for n, value in enumerate(["1", "x", "2", "y", "3"])])
    topics.fill("names", [("1", "one"), ("2", "")])
    outcome = go("""\
name: skipping
sources:
  numbers: {topic: numbers, value: csv, schema: n INT NOT NULL}
  names: {topic: names, value: csv, schema: name STRING NOT NULL, table: true}
transforms:
  doubled: SELECT n FROM numbers UNION ALL SELECT -n FROM numbers
  named: SELECT numbers.n, name FROM numbers JOIN names ON names._key = n
sinks:
  out: {from: numbers, topic: out, way: per-task}
  twice: {from: doubled, topic: twice}
  often: {from: numbers, topic: often, delivery: at-least-once}
  joined: {from: named, topic: named, partitions: 1}
  files: {from: numbers, parquet: files}
  screen: {from: numbers, console: true}
bad_records: skip
checkpoint: checkpoint
""")
    assert list(outcome.states) == ["out", "twice", "often", "joined", "files", "screen"]
    assert all(state.bad_of == {"numbers": 2} for state in outcome.states.values())
    said = capsys.readouterr().out
    assert "BAD RECORDS: 2 records of numbers could not be read (skipped by out)" in said
    assert "  out: 5 rows read, 3 written, 2 bad, 1 batch" in said


@pytest.mark.spark
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "transforms: {t: SELECT nn FROM numbers}",
            "transforms.t: A column, variable, or function parameter with name `nn`",
        ),
        ("transforms: {t: SELECT n n n FROM numbers}", "transforms.t: Syntax error at or near 'n'"),
        ("transforms: {t: {python: 'mine:wrong', inputs: numbers}}", "transforms.t: mine:wrong raised ValueError: no"),
        (
            "transforms: {t: {python: 'mine:nothing', inputs: numbers}}",
            "mine:nothing returned NoneType, not a DataFrame",
        ),
        ("transforms: {t: {python: 'mine:missing', inputs: numbers}}", "mine has no function 'missing'"),
    ],
)
def test_a_mistake_that_only_spark_can_see_is_a_sentence(broker, go, tmp_path, change, said, capfd):
    (tmp_path / "mine.py").write_text(
        "def wrong(frame):\n    raise ValueError('no')\n\ndef nothing(frame):\n    pass\n"
    )
    Topics(broker.bootstrap).create(numbers=1, out=1)
    assert said in failure(go, BAD + change + "\n")
    output, errors = capfd.readouterr()
    # No trace of Java's. (On a busy machine librdkafka notes that it drops events when a producer is closed.)
    assert without_waiting(output) + [line for line in errors.splitlines() if "BGQUEUE" not in line] == []


def without_waiting(output):
    """Lines that do not say what is waited for."""
    return [line for line in output.splitlines() if not line.endswith("…")]


@pytest.mark.spark
def test_a_mistake_in_a_sinks_expression_is_a_sentence(broker, go, capfd):
    Topics(broker.bootstrap).create(numbers=1, out=1)
    said = failure(go, BAD.replace("topic: out}", "topic: out, key: nn}"))
    assert said.startswith("sinks.out.key: A column, variable, or function parameter with name `nn`")
    output, errors = capfd.readouterr()
    assert (without_waiting(output), errors) == ([], "")


EVERY_FORMAT = """\
name: every-format
sources:
  json: {{topic: json, value: json, schema: "n INT, s STRING"}}
  csv: {{topic: csv, value: csv, schema: "n INT, s STRING"}}
  avro: {{topic: avro, value: avro, schema: '{record}'}}
  nulls: {{topic: nulls, value: avro, schema: '{nulls}'}}
sinks:
  json: {{from: json, topic: json-out, partitions: 1}}
  csv: {{from: csv, topic: csv-out, partitions: 1}}
  avro: {{from: avro, topic: avro-out, partitions: 1}}
  nulls: {{from: nulls, topic: nulls-out, partitions: 1}}
bad_records: {{topic: dead, partitions: 1}}
checkpoint: checkpoint
"""


@pytest.mark.spark
def test_what_does_not_fit_is_found_in_every_format(broker, go):
    topics = Topics(broker.bootstrap)
    topics.create(json=1, csv=1, avro=1, nulls=1)
    record = bytes([2, 6]) + b"one"
    bad = {
        "json": [b"", b" ", b"null", b"[]", b'[{"n": 2}, {"n": 3}]', b"5", b'{"n": 7.5}', b'{"n": 99999999999}'],
        "csv": [b"x,two", b"3", b"4,four,more"],
        "avro": [b"", b"\xff", record[:-1]],
        "nulls": [b"", b"\x08"],
    }
    good = {
        "json": [b'{"n": 1, "s": "a"}', b"{}"],
        "csv": [b"1,one"],
        "avro": [record],
        "nulls": [b"\x00", b"\x02\x02"],
    }
    for topic in bad:
        topics.fill(topic, [*good[topic], *bad[topic], None])  # a null value is not an error
    go(EVERY_FORMAT.format(record=AVRO, nulls=AVRO.replace('"int"', '["null", "int"]').replace(NAME_FIELD, "")))
    found = {topic: [json.loads(each) for each in topics.values(f"{topic}-out")] for topic in bad}
    assert found == {
        "json": [{"n": 1, "s": "a"}, {}, {}],
        "csv": [{"n": 1, "s": "one"}, {}],
        "avro": [{"x": 1, "name": "one"}, {}],
        "nulls": [{}, {"x": 1}, {}],
    }
    dead = [(dict(each.headers())["barnabas.topic"].decode(), each.value()) for each in topics.read("dead")]
    assert sorted(dead, key=str) == sorted(((topic, each) for topic in bad for each in bad[topic]), key=str)


@pytest.mark.spark
def test_offsets_to_start_at_may_be_those_of_some_partitions(broker, go):
    topics = Topics(broker.bootstrap)
    topics.create(lines=2, out=1)
    topics.fill("lines", [{"value": f"{partition}{n}", "partition": partition} for partition in (0, 1) for n in "abc"])
    text = """\
name: some
sources: {lines: {topic: lines, from: {lines: {1: 2}}}}
sinks: {out: {from: lines, topic: out, format: text, columns: value}}
checkpoint: checkpoint
"""
    assert failure(go, text.replace("1: 2", "2: 2")) == (
        "sources.lines.from: the topic 'lines' has no partition 2; it has 2"
    )
    assert failure(go, text.replace("{lines: {1", "{line: {1")) == (
        "sources.lines.from: 'line' is not a topic of this source; did you mean 'lines'?"
    )
    go(text)
    assert sorted(topics.values("out")) == ["0a", "0b", "0c", "1c"]


MARKING = """\
from pyspark.sql.functions import udf

def marked(lines):
    return lines.withColumn("value", udf(lambda text: "{mark} " + text)("value"))
"""


@pytest.mark.spark
def test_a_function_edited_between_runs_and_a_java_that_dies(broker, spark, spark_settings, tmp_path, capfd):
    """One process survives both, as a notebook would."""
    topics = Topics(broker.bootstrap)
    topics.create(lines=1, out=1)
    (tmp_path / "mine.py").touch()
    pipeline = parse(
        """\
name: edited
sources: {lines: {topic: lines}}
transforms: {marked: {python: "mine:marked", inputs: lines}}
sinks: {out: {from: marked, topic: out, format: text, columns: value}}
checkpoint: checkpoint
""",
        "test.yaml",
        tmp_path,
        [("bootstrap", broker.bootstrap)],
    )
    for mark in "12":
        (tmp_path / "mine.py").write_text(MARKING.format(mark=mark))
        topics.fill("lines", ["line"])
        run(pipeline, once=True, spark=spark)
    java = SparkContext._gateway.proc
    java.kill()
    java.wait()
    (tmp_path / "mine.py").write_text(MARKING.format(mark="3"))
    topics.fill("lines", ["line"])
    with pytest.raises(PipelineError, match="Spark's Java process is gone"):
        run(pipeline, once=True, spark=spark)
    spark_session("tests", **spark_settings)
    run(pipeline, once=True)  # finds it
    assert topics.values("out") == ["1 line", "2 line", "3 line"]
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.spark
def test_per_task_is_refused_where_rows_lost_their_position(broker, go):
    Topics(broker.bootstrap).create(numbers=1, out=1)
    text = BAD.replace("topic: out}", "topic: out, way: per-task}")
    lost = text.replace("from: numbers", "from: t") + "transforms: {t: SELECT n FROM numbers}\n"
    assert "has lost the columns _topic, _partition and _offset" in failure(go, lost)
    counted = text.replace("from: numbers", "from: t") + "transforms: {t: SELECT count(*) AS c FROM numbers}\n"
    assert "an operation (Aggregate) that keeps state" in failure(go, counted)


@pytest.mark.spark
def test_exactly_once_on_three_brokers_whose_leaders_move(spark, tmp_path):
    """Every leader moves while the query runs, also those of its offsets and transactions."""
    settings = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    with Barnabas(settings, brokers=3, journal=False) as cluster:
        topics = Topics(cluster.bootstrap_servers)
        for name in ("numbers", "out"):
            cluster.create_topic(name, partitions=2)
        topics.fill("numbers", [json.dumps({"n": number}) for number in range(300)])
        is_over = threading.Event()

        def move_leaders():
            while not is_over.wait(0.5):
                for topic, state in cluster.state["topics"].items():
                    for index, partition in enumerate(state["partitions"]):
                        if len(partition["isr"]) == 3:
                            follower = next(each for each in partition["isr"] if each != partition["leader"])
                            cluster.move_leader(topic, index, to=follower)

        mover = threading.Thread(target=move_leaders)
        mover.start()
        try:
            text = ON_THREE_BROKERS.format(checkpoint=tmp_path / "checkpoint")
            run(parse(text, "test.yaml", tmp_path, [("bootstrap", cluster.bootstrap_servers)]), once=True, spark=spark)
        finally:
            is_over.set()
            mover.join()
        assert sorted(int(json.loads(value)["n"]) for value in topics.values("out")) == list(range(300))


# What is found before Spark is started.


def test_a_missing_topic_says_how_to_make_it(broker, tmp_path):
    Topics(broker.bootstrap).create(number=1)
    with pytest.raises(PipelineError) as caught:
        run(parse(BAD, "test.yaml", tmp_path, [("bootstrap", broker.bootstrap)]))
    first, second = str(caught.value).splitlines()
    assert first.startswith("the topic 'numbers' of the source 'numbers' does not exist; did you mean 'number'?")
    assert "barnabas topics create numbers" in first
    assert second.startswith("the topic 'out' of sinks.out does not exist. Create it, or")


@pytest.mark.parametrize(("submitted", "master"), [(True, None), (False, "spark://file:7077")])
def test_the_options_of_spark_submit_override_the_file(broker, tmp_path, monkeypatch, submitted, master):
    Topics(broker.bootstrap).create(numbers=1, out=1)
    asked = []

    def asked_for(app, *, master, settings):
        asked.append(master)
        raise PipelineError("enough")

    monkeypatch.setattr(running, "session_for_run", asked_for)
    if submitted:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    pipeline = parse(BAD + "master: spark://file:7077\n", "test.yaml", tmp_path, [("bootstrap", broker.bootstrap)])
    for given in (None, "spark://said:7077"):
        with pytest.raises(PipelineError, match="enough"):
            run(pipeline, master=given)
    assert asked == [master, "spark://said:7077"]


def test_an_unreachable_broker(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "Cluster", partial(Cluster, timeout=1.0))
    held = HeldPort()
    port = held.number
    begun = time.monotonic()
    with pytest.raises(PipelineError, match=f"no broker answered at 127.0.0.1:{port} within 1 s; start one"):
        run(parse(BAD, "test.yaml", tmp_path, [("bootstrap", f"127.0.0.1:{port}")]))
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        ({"pipeline": "other", "cluster": "c", "id": "1"}, "belongs to the pipeline 'other', and this one is 'bad'"),
        ({"pipeline": "bad", "cluster": "c", "id": "1"}, "was made with another cluster"),
        ("nonsense", "is damaged"),
    ],
)
def test_a_checkpoint_of_another_pipeline_or_cluster(broker, tmp_path, identity, said):
    Topics(broker.bootstrap).create(numbers=1, out=1)
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "pipeline.json").write_text(json.dumps(identity))
    with pytest.raises(PipelineError, match=said):
        run(parse(BAD, "test.yaml", tmp_path, [("bootstrap", broker.bootstrap)]))


@pytest.mark.spark
def test_a_full_disk(spark_is_here, broker, tmp_path):
    """A file system of 64 KiB, in a mount namespace of the command's own."""
    Topics(broker.bootstrap).create(numbers=1, out=1)
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (tmp_path / "bad.yaml").write_text(BAD)
    mount = f"mount -t tmpfs -o size=64k none {folder}"
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True).returncode
    ):
        pytest.skip("no mount namespaces here, which the test makes a small disk with")
    command = (
        f"{sys.executable} -m barnabas pipeline run {tmp_path}/bad.yaml --once --config bootstrap={broker.bootstrap}"
    )
    script = f"{mount} && (head -c 100000 /dev/zero > {folder}/filler || true) 2>/dev/null && {command}"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=240, env=os.environ
    )
    assert done.returncode == 1, done.stderr
    assert "there is no room left on" in done.stderr
    assert "Traceback" not in done.stderr


SECURED = """\
name: secured
sources:
  lines: {topic: lines}
sinks:
  once: {from: lines, topic: once, partitions: 1, format: text, columns: value}
  often: {from: lines, topic: often, partitions: 1, format: text, columns: value, delivery: at-least-once}
checkpoint: checkpoint
"""


@pytest.mark.spark
@pytest.mark.parametrize("library", ["java", "confluent"])
def test_a_broker_that_requires_tls_and_a_password(spark, tmp_path, library):
    with Barnabas(security="sasl_ssl", users={"alice": 'very "s3cret"'}) as broker:
        settings = broker.client_settings(library)
        topics = Topics(broker.bootstrap_servers, broker.client_settings("confluent"))
        topics.create(lines=1)
        topics.fill("lines", ["one", "two"])
        bootstrap = [("bootstrap", broker.bootstrap_servers)]
        security = {name: value for name, value in settings.items() if name != "bootstrap.servers"}
        run(parse(SECURED, "test.yaml", tmp_path, bootstrap, security), once=True, spark=spark)
        for topic in ("once", "often"):
            assert sorted(topics.values(topic)) == ["one", "two"]
