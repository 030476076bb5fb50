"""Exactly once, one transaction per batch: for queries with state, and where a batch must appear atomically.

The tasks of a batch stage their rows: small ones travel to the driver with the task's result, larger ones wait in files
of a folder that driver and executors share. When all tasks are done the driver writes everything in one transaction
whose marker is the batch's number plus one. A batch whose number the marker covers was written before: it is computed
again, because its state must advance, and its rows are dropped.
"""

from __future__ import annotations

import io
import shutil
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Final

import pyarrow
from confluent_kafka import KafkaException
from pyspark.sql import DataFrame, Row

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.sinks.crashes import reached
from barnabas.pipeline.sinks.rows import records
from barnabas.pipeline.sinks.transactions import Target, Transactions

_CARRIED: Final = 1 << 20  # bytes that a task hands to the driver directly; more goes to a file
_CARRIED_WITHOUT_FOLDER: Final = 64 << 20
_STAGED: Final = "rows LONG, content BINARY, file STRING"
_STAGED_SCHEMA: Final = pyarrow.schema(
    [("rows", pyarrow.int64()), ("content", pyarrow.binary()), ("file", pyarrow.string())]
)


class BatchWriter:
    """The driver's part, for one query."""

    def __init__(self, target: Target, staging: Path | None) -> None:
        self._target = target
        self._staging = staging / target.query if staging is not None else None
        self._transactions: Transactions | None = None
        self._remove(self._staging)  # what a run before this one left behind when it was killed

    def write_batch(self, batch: DataFrame, batch_id: int) -> int:
        """Returns how many rows were written: none if the batch had been written before."""
        if self._transactions is None:
            target = self._target
            self._transactions = Transactions(target, target.query, (target.topic, 0), "batch")
        if (self._transactions.marker or 0) > batch_id:
            batch.write.format("noop").mode("append").save()
            return 0
        folder = self._staging / f"batch-{batch_id}" if self._staging is not None else None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        try:
            staged = batch.mapInArrow(partial(_stage_task, str(folder) if folder else None), _STAGED).collect()
            reached("batch-staged")
            written = self._write(self._transactions, staged, batch_id)
        finally:
            self._remove(folder)
        reached("batch-done")
        return written

    def close(self) -> None:
        if self._transactions is not None:
            self._transactions.close()
        self._remove(self._staging)

    def _write(self, transactions: Transactions, staged: list[Row], batch_id: int) -> int:
        total = sum(int(part.rows) for part in staged)
        if total == 0:
            return 0
        transactions.begin()
        reached("batch-begun")
        try:
            for part in staged:
                for rows in _read(part):
                    transactions.produce(records(rows))
            transactions.commit(batch_id + 1)
        except BaseException as error:
            transactions.abort()
            self._transactions = None
            if isinstance(error, KafkaException) and error.args[0].name() in ("_FENCED", "PRODUCER_FENCED"):
                raise PipelineError(
                    f"another run of this pipeline has taken over the query {self._target.query}; stop one of the two"
                ) from error
            raise
        return total

    @staticmethod
    def _remove(folder: Path | None) -> None:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _stage_task(folder: str | None, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    rows = 0
    sink: IO[bytes] = io.BytesIO()
    writer: pyarrow.ipc.RecordBatchStreamWriter | None = None
    memory, file = sink, None
    limit = _CARRIED if folder is not None else _CARRIED_WITHOUT_FOLDER
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if writer is None:
            writer = pyarrow.ipc.new_stream(sink, batch.schema, options=pyarrow.ipc.IpcWriteOptions(compression="lz4"))
        writer.write_batch(batch)
        rows += batch.num_rows
        if file is None and memory.tell() > limit:
            if folder is None:
                raise PipelineError(
                    f"a task's rows of one batch take more than {limit >> 20} MiB. Give the sink a `staging` folder "
                    "that the driver and all executors share, or make batches smaller (`max_records_per_batch`)"
                )
            # From here on the stream continues in a file.
            file = Path(folder) / f"{uuid.uuid4().hex}.arrow"
            writer.close()
            sink = file.open("wb")
            writer = pyarrow.ipc.new_stream(sink, batch.schema, options=pyarrow.ipc.IpcWriteOptions(compression="lz4"))
    if writer is not None:
        writer.close()
    if file is not None:
        sink.close()
    reached("staged")
    content = memory.getvalue() if isinstance(memory, io.BytesIO) else b""
    parts = [[rows], [content], [str(file) if file is not None else None]]
    arrays = [pyarrow.array(values, field.type) for values, field in zip(parts, _STAGED_SCHEMA, strict=True)]
    yield pyarrow.RecordBatch.from_arrays(arrays, schema=_STAGED_SCHEMA)


def _read(part: Row) -> Iterator[pyarrow.RecordBatch]:
    if part.content:
        yield from pyarrow.ipc.open_stream(io.BytesIO(bytes(part.content)))
    if part.file is not None:
        try:
            with open(part.file, "rb") as file:
                yield from pyarrow.ipc.open_stream(file)
        except FileNotFoundError:
            raise PipelineError(
                f"a staged file is not where the executors wrote it: {part.file}. `staging` has to be a folder that "
                "the driver and all executors share"
            ) from None
