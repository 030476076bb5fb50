"""What a run shows, from what Spark and the sinks tell, without Spark."""

from types import SimpleNamespace

import pytest
from rich.console import Console

from barnabas.pipeline.progress import Board, LiveDisplay, PlainDisplay, Waiting, summary


@pytest.fixture
def console(tmp_path):
    with (tmp_path / "screen").open("w+") as file:
        made = Console(file=file, width=200)
        made.shown = lambda: (file.flush(), file.seek(0), file.read())[-1]
        yield made


def progress(batch, rows, *, reached=0, end=0, late=0, written=-1, skipped=None):
    return SimpleNamespace(
        name="out",
        batchId=batch,
        numInputRows=rows,
        processedRowsPerSecond=100.0,
        batchDuration=1500,
        sources=[
            SimpleNamespace(latestOffset=f'{{"orders": {{"0": {end}}}}}', endOffset=f'{{"orders": {{"0": {reached}}}}}')
        ],
        sink=SimpleNamespace(numOutputRows=written),
        stateOperators=[SimpleNamespace(numRowsDroppedByWatermark=late)],
        observedMetrics={"another": None, "skipped-orders": SimpleNamespace(records=skipped)},
    )


def test_rows_read_written_too_late_and_left(console):
    display = PlainDisplay(console)
    board = Board(display.changed, display.bad)
    board.add("out", "to a topic")
    board.wrote("out", 90)
    board.progressed(progress(0, 100, reached=100, end=250, late=3))
    board.progressed(progress(0, 100, reached=100, end=250, late=3))  # told twice
    assert "out: batch 0, 100 rows read, 90 written, 3 too late, 100 rows/s, 1.5 s, lag: orders 150" in console.shown()
    assert summary(board.states, 12.3) == [
        "after 12 s:",
        "  out: 100 rows read, 90 written, 3 too late, 150 left to read, 1 batch",
    ]


def test_what_sparks_own_sinks_have_written(console):
    board = Board()
    board.add("out", "to files")
    board.progressed(progress(0, 10, written=7))
    assert board.states["out"].rows_out == 7


def test_bad_records_are_a_loud_line(console):
    display = PlainDisplay(console)
    board = Board(display.changed, display.bad)
    board.add("dead-letters-orders", "bad records")
    board.wrote("dead-letters-orders", 0)
    assert console.shown() == ""
    board.wrote("dead-letters-orders", 2)
    assert console.shown() == "BAD RECORDS: 2 records of orders could not be read\n"
    assert "2 bad" in summary(board.states, 1)[1]


def test_skipped_records_are_a_loud_line_too(console):
    display = PlainDisplay(console)
    board = Board(display.changed, display.bad)
    board.add("out", "to a topic")
    board.progressed(progress(0, 10, skipped=0))
    board.wrote("out", 9)
    board.progressed(progress(1, 10, skipped=1))
    assert console.shown().splitlines()[1:] == [
        "BAD RECORDS: 1 record of orders could not be read (skipped by out)",
        "out: batch 1, 20 rows read, 9 written, 1 bad, 100 rows/s, 1.5 s, lag: orders 0",
    ]
    assert summary(board.states, 1)[1] == "  out: 20 rows read, 9 written, 1 bad, 2 batches"


def test_a_bar_where_the_end_is_known(console):
    board = Board()
    board.add("out", "to a topic")
    board.progressed(progress(0, 50, reached=50, end=100))
    for once in (True, False):
        console.print(LiveDisplay(console, "pipeline", board, once=once)._table())
        assert ("━" * 10 in console.shown().splitlines()[-2]) is once


def test_what_is_waited_for_line_by_line(console):
    with Waiting(console, plain=True) as waiting:
        waiting("starting Spark")
    assert console.shown() == "starting Spark…\n"
