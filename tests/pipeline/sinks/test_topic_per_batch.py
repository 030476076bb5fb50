"""How a task stages its rows for the driver, without Spark."""

import pyarrow
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Row

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.sinks import topic_per_batch
from barnabas.pipeline.sinks.topic_per_batch import BatchWriter, _read, _stage_task
from barnabas.pipeline.sinks.transactions import Target


def rows(count, size=10):
    values = [f"{n:0{size}}".encode() for n in range(count)]
    return pyarrow.RecordBatch.from_pydict({"key": pyarrow.array([None] * count, pyarrow.binary()), "value": values})


def staged(folder, *batches):
    (result,) = _stage_task(folder, iter(batches))
    return Row(**result.to_pylist()[0])


def read(part):
    return [value for batch in _read(part) for value in batch.column("value").to_pylist()]


def test_few_rows_travel_with_the_result(tmp_path):
    part = staged(str(tmp_path), rows(3), rows(2))
    assert (part.rows, part.file) == (5, None)
    assert read(part) == rows(3).column("value").to_pylist() + rows(2).column("value").to_pylist()
    assert not list(tmp_path.iterdir())


def test_no_rows_stage_nothing():
    part = staged(None)
    assert (part.rows, read(part)) == (0, [])


def test_many_rows_continue_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(topic_per_batch, "_CARRIED", 1000)
    part = staged(str(tmp_path), rows(200), rows(300), rows(10))
    assert part.file is not None
    assert part.rows == len(read(part)) == 510


def test_many_rows_without_a_shared_folder_say_what_to_do(monkeypatch):
    monkeypatch.setattr(topic_per_batch, "_CARRIED_WITHOUT_FOLDER", 1000)
    with pytest.raises(PipelineError, match="`staging` folder"):
        staged(None, rows(500))


def test_a_folder_that_is_not_shared_is_reported(tmp_path):
    with pytest.raises(PipelineError, match="has to be a folder that the driver and all executors share"):
        read(Row(rows=1, content=None, file=str(tmp_path / "on another machine")))


def test_what_a_killed_run_left_behind_is_removed(tmp_path):
    left = tmp_path / "query" / "batch-7"
    left.mkdir(parents=True)
    (left / "x.arrow").touch()
    (tmp_path / "another").mkdir()
    BatchWriter(Target("127.0.0.1:1", {}, "query", "out", 30.0), tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["another"]
