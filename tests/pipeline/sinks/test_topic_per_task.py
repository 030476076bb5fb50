"""A task's part of exactly once, without Spark: rows, markers and a producer that is taken over."""

import pyarrow
import pytest

pytest.importorskip("pyspark")

from barnabas.pipeline.sinks import topic_per_task
from barnabas.pipeline.sinks.topic_per_task import OutOfOrderError, _write_task
from barnabas.pipeline.sinks.transactions import Target, Transactions
from tests.pipeline.topics import Topics


@pytest.fixture
def target(broker):
    Topics(broker.bootstrap).create(source=2, out=1)
    yield Target(broker.bootstrap, {}, "query", "out", 30.0)
    topic_per_task._producers.clear()


def rows(*offsets, partition=0):
    count = len(offsets)
    return pyarrow.RecordBatch.from_pydict(
        {
            "key": pyarrow.array([None] * count, pyarrow.binary()),
            "value": pyarrow.array([f"{partition}:{offset}".encode() for offset in offsets]),
            "_topic": ["source"] * count,
            "_partition": pyarrow.array([partition] * count, pyarrow.int32()),
            "_offset": list(offsets),
        }
    )


def write(target, *batches):
    (result,) = _write_task(target, iter(batches))
    return result.column("written")[0].as_py(), result.column("skipped")[0].as_py()


def test_rows_that_the_marker_covers_are_skipped(broker, target):
    assert write(target, rows(0, 1), rows(2)) == (3, 0)
    assert write(target, rows(0, 1), rows(2)) == (0, 3)  # the batch again, after a crash before Spark noted it
    topic_per_task._producers.clear()  # and in another Python worker
    assert write(target, rows(0, 1), rows(2, 3)) == (1, 3)
    assert Topics(broker.bootstrap).values("out") == ["0:0", "0:1", "0:2", "0:3"]


def test_one_record_may_become_several_rows_across_batches(broker, target):
    assert write(target, rows(5, 5), rows(5, 6)) == (4, 0)
    assert Topics(broker.bootstrap).values("out") == ["0:5", "0:5", "0:5", "0:6"]


def test_a_task_with_two_source_partitions_commits_each_on_its_own(broker, target):
    assert write(target, rows(0, 1), pyarrow.concat_batches([rows(2), rows(0, partition=1)])) == (4, 0)
    assert write(target, rows(0, 1, 2), rows(0, 1, partition=1)) == (1, 4)


def test_rows_out_of_order_are_refused_and_nothing_is_written(broker, target):
    for batches in (rows(1, 0),), (rows(0, 5), rows(3)), (rows(0), rows(0, partition=1), rows(1)):
        with pytest.raises(OutOfOrderError):
            write(target, *batches)
    # The third had committed its first two partitions before the slip was seen; what they wrote is never written again.
    assert Topics(broker.bootstrap).values("out") == ["0:0", "1:0"]


def test_a_producer_that_another_worker_took_over_from_is_replaced(broker, target):
    assert write(target, rows(0)) == (1, 0)
    # Another worker has the same partition's next batch, and leaves a transaction open when it dies.
    other = Transactions(target, "query-source-0", ("source", 0), "task")
    other.begin()
    other.produce([(None, b"lost", None, None)])
    assert write(target, rows(0, 1)) == (1, 1)
    assert Topics(broker.bootstrap).values("out") == ["0:0", "0:1"]
