"""The first rows of every batch, as a table on the screen."""

from __future__ import annotations

import threading

from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

_one_at_a_time = threading.Lock()


def show_batch(batch: DataFrame, batch_id: int, name: str, rows: int, console: Console) -> int:
    """Every row is computed, shown or not: a query's state advances only with the partitions that are computed."""
    kept = batch.persist()
    try:
        count = kept.count()
        shown = kept.take(rows) if count else []
    finally:
        kept.unpersist()
    if count:
        table = Table(title=f"{name}, batch {batch_id}: {count} rows", title_justify="left")
        for column in batch.columns:
            table.add_column(column)
        for row in shown:
            table.add_row(*("" if cell is None else _shown(cell) for cell in row))
        with _one_at_a_time:
            console.print(table)
    return count


def _shown(cell: object) -> str:
    return bytes(cell).decode(errors="replace") if isinstance(cell, bytes | bytearray) else str(cell)
