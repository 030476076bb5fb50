"""`barnabas pipeline`: what it prints and how it ends."""

import argparse
import json

import pytest

pytest.importorskip("pyspark")

from barnabas.command import main
from barnabas.command.values import duration
from barnabas.pipeline.checkpoint import Checkpoint
from tests.pipeline.topics import Topics

FILE = """\
name: command
sources:
  lines: {topic: lines}
transforms:
  long: SELECT value, _topic, _partition, _offset FROM lines WHERE length(value) > 2
sinks:
  out: {from: long, topic: out, partitions: 1, format: text, columns: value}
  counts: {from: counted, topic: counts, partitions: 1, mode: complete}
checkpoint: checkpoint
"""
COUNTED = "  counted: SELECT count(*) AS n FROM lines\nsinks:"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "command.yaml"
    path.write_text(FILE.replace("sinks:", COUNTED))
    return path


def test_init_writes_a_file_that_is_right_and_never_over_another(tmp_path, capsys):
    path = str(tmp_path / "new.yaml")
    assert main(["pipeline", "init", path]) == 0
    assert main(["pipeline", "validate", path]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    assert main(["pipeline", "init", path]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["pipeline", "init", path, "--force"]) == 0


def test_validate_reports_everything_and_ends_with_2(file, capsys):
    assert (
        main(["pipeline", "validate", str(file), "--config", "triger=once", "--config", "sinks.out.from=nowhere"]) == 2
    )
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("command.yaml:1: triger: 'triger' is not known here; did you mean 'trigger'?")
    assert said[1].endswith("command.yaml:8: sinks.out.from: there is no view 'nowhere'")
    assert said[2] == "barnabas: 2 things are wrong with the file"


def test_a_failure_is_a_sentence_and_ends_with_1(tmp_path, capsys):
    assert main(["pipeline", "run", str(tmp_path / "none.yaml")]) == 1
    assert capsys.readouterr().err == f"barnabas: {tmp_path}/none.yaml: No such file or directory\n"


def test_a_time_to_run_for():
    assert [duration(text) for text in ("60s", "5m", "1.5h", "200ms", "7")] == [60, 300, 5400, 0.2, 7]
    for text in ("soon", "0s", "-1s", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            duration(text)


@pytest.mark.spark
def test_run_status_and_explain(broker, spark, file, capsys):
    """In the tests' own session: the command finds the one that its process has."""
    topics = Topics(broker.bootstrap)
    topics.create(lines=2)
    topics.fill("lines", ["a", "bbb", "ccc"])
    at = ["--config", f"bootstrap={broker.bootstrap}"]
    assert main(["pipeline", "status", str(file), *at]) == 1
    assert "has not run yet" in capsys.readouterr().err
    assert main(["pipeline", "explain", str(file), *at]) == 0
    assert "topic out: 1 partitions, not created yet" in capsys.readouterr().out
    assert not (file.parent / "checkpoint").exists()

    assert main(["pipeline", "run", str(file), "--once", *at]) == 0
    assert "out: batch 0, 3 rows read" in capsys.readouterr().out
    assert sorted(topics.values("out")) == ["bbb", "ccc"]
    assert topics.values("counts") == ['{"n":3}']

    topics.fill("lines", ["dddd"])
    assert main(["pipeline", "status", str(file), "--json", *at]) == 0
    counts, out = json.loads(capsys.readouterr().out)
    assert (counts["name"], counts["batch"], counts["lag"]) == ("counts", 0, 1)
    assert (out["name"], out["batch"], out["lag"]) == ("out", 0, 1)
    # How far the sink has come by its own markers: of rows that were written, not of those that were filtered.
    assert sum(out["marker"]["lines"].values()) <= sum(out["reached"]["lines"].values()) == 3
    assert main(["pipeline", "status", str(file), *at]) == 0
    assert "pipeline command" in capsys.readouterr().out

    with Checkpoint(str(file.parent / "checkpoint")).held():  # as by a run that is under way
        assert main(["pipeline", "explain", str(file), *at]) == 0
    said = capsys.readouterr().out
    assert "topic lines: 2 partitions, at most 4 records" in said
    assert "out: long to the topic out, exactly once, one transaction per task" in said
    assert "counts: counted to the topic counts, exactly once, one transaction per batch (because the query" in said
    assert "Aggregate" in said
