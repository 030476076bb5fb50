"""Exactly once, one transaction per task: for queries without state whose rows still carry their source position.

Every task of a batch has the rows of a source partition, in order (nothing repartitions in between). In this order it:
becomes the only producer of its transactional id (query-topic-partition), reads the marker (the source offset up to
which this query's output is committed), skips the rows that it covers, produces the others, sends the new marker into
the transaction, commits. Whenever it dies, the retry finds either nothing or all of it done.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from typing import Final

import pyarrow
import pyarrow.compute as compute
from confluent_kafka import KafkaException
from pyspark.sql import DataFrame

from barnabas.pipeline.sinks.crashes import reached
from barnabas.pipeline.sinks.rows import records
from barnabas.pipeline.sinks.transactions import Target, Transactions

_RESULT: Final = "written LONG, skipped LONG"
_RESULT_SCHEMA: Final = pyarrow.schema([("written", pyarrow.int64()), ("skipped", pyarrow.int64())])
_KEPT: Final = 32  # producers that a Python worker keeps for its next tasks: a new one costs several round trips


class OutOfOrderError(Exception):
    """Rows of a source partition that are not contiguous or not in offset order: something moved them."""


def write_batch(batch: DataFrame, batch_id: int, target: Target) -> tuple[int, int]:
    """Returns how many rows were written and how many were found written before."""
    results = batch.mapInArrow(partial(_write_task, target), _RESULT).collect()
    reached("tasks-done")
    return sum(row.written for row in results), sum(row.skipped for row in results)


def _write_task(target: Target, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    task = _Task(target)
    try:
        for batch in batches:
            task.write(batch)
        task.commit()
    except BaseException:
        task.abort()
        raise
    counts = [pyarrow.array([task.written]), pyarrow.array([task.skipped])]
    yield pyarrow.RecordBatch.from_arrays(counts, schema=_RESULT_SCHEMA)


class _Task:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._finished: set[tuple[str, int]] = set()
        self._source: tuple[str, int] | None = None
        self._transactions: Transactions | None = None
        self._begun = False
        self._next = -1  # the source offset after the last row that was seen
        self.written = 0
        self.skipped = 0

    def write(self, batch: pyarrow.RecordBatch) -> None:
        start = 0
        while start < batch.num_rows:
            stop = self._same_source(batch, start)
            source = (batch.column("_topic")[start].as_py(), batch.column("_partition")[start].as_py())
            if source != self._source:
                self.commit()
                self._take(source)
            self._write(batch, start, stop)
            start = stop

    def _same_source(self, batch: pyarrow.RecordBatch, start: int) -> int:
        """The end of the rows from one source partition; nearly always the end of the batch."""
        topics, partitions = batch.column("_topic")[start:], batch.column("_partition")[start:]
        same = compute.and_(compute.equal(topics, topics[0]), compute.equal(partitions, partitions[0]))
        other = compute.index(same, False).as_py()
        return batch.num_rows if other < 0 else start + int(other)

    def _take(self, source: tuple[str, int]) -> None:
        if source in self._finished:
            raise OutOfOrderError(f"rows of {source[0]}-{source[1]} are not contiguous")
        self._source = source
        self._transactions, self._begun = _producer_for(self._target, *source)
        self._next = -1

    def _write(self, batch: pyarrow.RecordBatch, start: int, stop: int) -> None:
        transactions = self._transactions
        assert transactions is not None
        offsets = batch.column("_offset").slice(start, stop - start).to_pylist()
        # One record may have become several rows: equal offsets are in order.
        if offsets[0] < self._next - 1 or any(map(int.__gt__, offsets, offsets[1:])):
            raise OutOfOrderError(f"rows of {self._source} are not in the order of their offsets")
        done = 0 if transactions.marker is None else bisect_left(offsets, transactions.marker)
        self.skipped += done
        self._next = offsets[-1] + 1
        if start + done == stop:
            return
        if not self._begun:
            transactions.begin()
            self._begun = True
        transactions.produce(records(batch, start + done, stop))
        self.written += stop - start - done

    def commit(self) -> None:
        if self._transactions is not None and self._source is not None:
            if self._begun:
                self._transactions.commit(max(self._next, self._transactions.marker or 0))
            self._finished.add(self._source)
        self._begun = False

    def abort(self) -> None:
        if self._source is not None:
            # Whatever its state, the next attempt starts with a new producer.
            _producers.pop((self._target.query, *self._source), None)
        if self._transactions is not None and self._begun:
            self._transactions.abort()


_producers: dict[tuple[str, str, int], Transactions] = {}


def _producer_for(target: Target, topic: str, partition: int) -> tuple[Transactions, bool]:
    """The producer of a source partition, and whether its transaction has begun.

    A producer that this worker used before knows its marker, and may continue only if no other worker has initialised
    the same id since: then nobody else can have moved the marker.
    """
    name = (target.query, topic, partition)
    kept = _producers.pop(name, None)
    if kept is not None:
        try:
            ours = kept.is_still_ours()
        except KafkaException:
            ours = False
        if ours:
            _producers[name] = kept
            return kept, True
        kept.close()
    made = Transactions(target, f"{target.query}-{topic}-{partition}", (topic, partition), "task")
    _producers[name] = made
    if len(_producers) > _KEPT:
        _producers.pop(next(iter(_producers))).close()
    return made, False
