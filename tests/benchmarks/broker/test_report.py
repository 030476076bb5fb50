import json
from pathlib import Path

import pytest

from benchmarks.broker.comparison import Better, Line, Row, Spread
from benchmarks.broker.report import Report, explanations, number, table

MACHINE = {
    "date": "2026-01-02 03:04 UTC",
    "cpu": "A processor",
    "cores": "2",
    "memory": "8 GiB",
    "kernel": "Linux 6",
    "python": "3.11",
    "uvloop": "0.22",
    "confluent-kafka": "2.16",
    "apache kafka": "4.3.1",
}


def row(better: Better = Better.HIGHER, target: float | None = 1.5, **changes: float | None) -> Row:
    figures: dict[str, float | None] = {"limit": None, "client_busy": None, **changes}
    return Row(
        Line("rate", "a rate", "msg/s", better, target),
        kafka=Spread(1234.5, 1000, 1500),
        barnabas=Spread(2469, 2000, 3000),
        ratio=Spread(2.0, 1.9, 2.1),
        **figures,
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0712, "0.07"), (1.234, "1.23"), (12.34, "12.3"), (345.6, "346"), (1_234_567, "1,230,000")],
)
def test_a_number_has_three_digits_that_matter(value: float, shown: str) -> None:
    assert number(value) == shown


class TestTable:
    def test_is_markdown_whose_columns_line_up(self) -> None:
        header, rule, line = table([row(limit=5000.0, client_busy=0.42)]).splitlines()
        assert [cell.strip() for cell in line.split("|")[1:-1]] == [
            "a rate",
            "1,230 msg/s",
            "2,470 msg/s",
            "2.00 (1.90 to 2.10)",
            ">= 1.5, met",
            "5,000 msg/s",
            "42%",
        ]
        assert len(header) == len(rule) == len(line)
        assert header.count("|") == rule.count("|") == line.count("|")

    def test_a_missed_target_is_called_so(self) -> None:
        assert "<= 0.6, missed" in table([row(Better.LOWER, 0.6)])

    def test_a_target_of_its_own_is_not_about_the_ratio(self) -> None:
        share = Line("share", "a share", "", Better.HIGHER, 0.95, own=True)
        kept = Row(share, Spread(0.5, 0.4, 0.6), Spread(0.94, 0.9, 0.99), Spread(1.9, 1.8, 2.0), None, None)
        assert "own >= 0.95, missed" in table([kept])

    def test_a_line_without_a_target_claims_nothing(self) -> None:
        assert "met" not in table([row(target=None)])


class TestExplanations:
    def test_a_busy_client_is_named_as_the_limit(self) -> None:
        assert "limit in: a rate." in explanations([row(client_busy=0.95)])[-1]

    def test_a_client_that_gets_no_more_from_the_bare_loop_is_named_too(self) -> None:
        assert "limit in: a rate." in explanations([row(limit=2500.0, client_busy=0.5)])[-1]

    def test_otherwise_no_limit_is_named(self) -> None:
        assert not any("limit in" in sentence for sentence in explanations([row(limit=9000.0, client_busy=0.5)]))


def test_a_report_is_written_as_text_as_json_and_as_a_plot(tmp_path: Path) -> None:
    report = Report([row(), row(Better.LOWER, 0.6), row(target=None)], MACHINE, rounds=3, notes=["A note."])
    as_text, as_json, as_plot = report.write(tmp_path, "broker")
    written = as_text.read_text()
    assert written.startswith("2026-01-02 03:04 UTC, A processor, 2 cores")
    assert written.endswith("A note.\n")
    assert [line["met"] for line in json.loads(as_json.read_text())["lines"]] == [True, False, None]
    assert as_plot.read_bytes().startswith(b"\x89PNG")
