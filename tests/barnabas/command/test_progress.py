"""The line that shows the progress of a bulk load."""

import io
from contextlib import suppress
from types import SimpleNamespace

from barnabas.command import progress as progress_module
from barnabas.command.progress import Progress, line


def test_where_the_size_is_known_there_is_a_bar():
    said = line(records=500, size=1_000_000, total=4_000_000, seconds=2)
    assert said.startswith("[#######.......................]  25%")
    assert "500 records, 1.0 MB, 250 records/s, 6 s left" in said


def test_where_it_is_not_known_there_are_counts():
    assert line(records=1_234_567, size=0, total=None, seconds=1) == "1,234,567 records, 0.0 MB, 1,234,567 records/s"


def test_a_file_that_grew_does_not_exceed_100_percent():
    assert "100%" in line(records=1, size=11, total=10, seconds=1)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_drawn_unless_on_a_terminal():
    stream = io.StringIO()
    with Progress(stream, 10) as progress:
        progress.show(1, 1)
        progress.summary(1, 10)
    assert stream.getvalue() == ""


def test_a_terminal_gets_one_line_that_is_drawn_over_now_and_then(monkeypatch):
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    terminal = Terminal()
    with Progress(terminal, 10) as progress:
        progress.show(1, 5)
        progress.show(1, 6)
        progress.summary(2, 10)
    drawn, summed_up, after = terminal.getvalue().split("\r\x1b[K")[1:]
    assert "50%" in drawn
    assert summed_up.startswith("2 records")
    assert summed_up.endswith("\n")
    assert after == ""


def test_an_error_is_not_written_behind_the_bar():
    terminal = Terminal()
    with suppress(ZeroDivisionError), Progress(terminal, 10) as progress:
        progress.show(1, 5)
        raise ZeroDivisionError
    assert terminal.getvalue().endswith("\r\x1b[K")
