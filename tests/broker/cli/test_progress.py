"""The line that says how far a bulk load is."""

import io

from broker.cli.progress import Progress, line


def test_where_the_size_is_known_there_is_a_bar():
    said = line(records=500, size=1_000_000, total=4_000_000, seconds=2)
    assert said.startswith("[#######.......................]  25%")
    assert "500 records, 1.0 MB, 250 records/s, 6 s left" in said


def test_where_it_is_not_known_there_are_counts():
    assert line(records=1_234_567, size=0, total=None, seconds=1) == "1,234,567 records, 0.0 MB, 1,234,567 records/s"


def test_a_file_that_grew_is_not_more_than_done():
    assert "100%" in line(records=1, size=11, total=10, seconds=1)


def test_nothing_is_drawn_where_nobody_looks():
    stream = io.StringIO()
    progress = Progress(stream, 10)
    progress.show(1, 1)
    progress.finish(1, 10)
    assert stream.getvalue() == ""


def test_a_terminal_gets_one_line_that_is_drawn_over():
    stream = io.StringIO()
    stream.isatty = lambda: True
    progress = Progress(stream, 10)
    progress.show(1, 5)
    progress.finish(2, 10)
    drawn, *rest = stream.getvalue().split("\r")[1:]
    assert "50%" in drawn
    assert len(rest) == 1
    assert rest[0].endswith("\n")
