"""The comparison as text, as JSON and as a plot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.broker.comparison import Better, Row, Spread

# From here on, a figure says more about the load client than about the broker.
CLIENT_IS_BUSY: Final = 0.9
CLOSE_TO_THE_LIMIT: Final = 0.9

HEADER = ("", "Apache Kafka", "Barnabas", "ratio (min to max)", "target", "bare loop", "client busy")


def table(rows: Sequence[Row]) -> str:
    """The comparison as a table, without columns that have nothing to say."""
    cells = [_cells(row) for row in rows]
    columns = [column for column in range(len(HEADER)) if column == 0 or any(row[column] for row in cells)]
    return aligned([[row[column] for column in columns] for row in (HEADER, *cells)])


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns, so that it also reads well as plain text. The first row is its head."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ["| " + " | ".join(_padded(row, widths)) + " |" for row in cells]
    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *rest = row
    return [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]


def _cells(row: Row) -> tuple[str, ...]:
    line = row.line
    return (
        line.title,
        f"{number(row.kafka.median)} {line.unit}".rstrip(),
        f"{number(row.barnabas.median)} {line.unit}".rstrip(),
        f"{number(row.ratio.median)} ({number(row.ratio.low)} to {number(row.ratio.high)})",
        _target(row),
        "" if row.limit is None else f"{number(row.limit)} {line.unit}",
        "" if row.client_busy is None else f"{row.client_busy:.0%}",
    )


def _target(row: Row) -> str:
    if row.line.target is None:
        return ""
    sign = ">=" if row.line.better is Better.HIGHER else "<="
    whose = "own " if row.line.own else ""
    return f"{whose}{sign} {row.line.target:g}, {'met' if row.met else 'missed'}"


def number(value: float) -> str:
    """Three significant digits."""
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def explanations(rows: Sequence[Row]) -> list[str]:
    """Notes on the table, and the lines that the load client limits."""
    sentences = [
        "A ratio is Barnabas's figure divided by Apache Kafka's, taken within each round: the median, and the spread.",
        "The bare loop is one thread of Python that moves the same bytes between the same client and a file, "
        "without any protocol. Client busy is how much of one core the load client used against Barnabas.",
    ]
    bound = [row.line.title for row in rows if _client_bound(row)]
    if bound:
        sentences.append(f"The load client is at its limit in: {'; '.join(bound)}.")
    return sentences


def _client_bound(row: Row) -> bool:
    if row.client_busy is None:
        return False
    as_fast_as_can_be = row.limit is not None and row.barnabas.median > CLOSE_TO_THE_LIMIT * row.limit
    return row.client_busy > CLIENT_IS_BUSY or as_fast_as_can_be


@dataclass(frozen=True)
class Report:
    rows: Sequence[Row]
    machine: dict[str, str]
    rounds: int
    notes: Sequence[str]
    warm_ups: int = 1

    def heading(self) -> list[str]:
        facts = self.machine
        before = "one" if self.warm_ups == 1 else str(self.warm_ups)
        return [
            f"{facts['date']}, {facts['cpu']}, {facts['cores']} cores, {facts['memory']}, {facts['kernel']}",
            f"Python {facts['python']}, uvloop {facts['uvloop']}, confluent-kafka {facts['confluent-kafka']}, "
            f"Apache Kafka {facts['apache kafka']}; rounds, after {before} to warm up: {self.rounds}",
        ]

    def text(self) -> str:
        return "\n".join([*self.heading(), "", table(self.rows), "", *self.notes])

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write the three files and return their paths."""
        folder.mkdir(exist_ok=True)
        as_text, as_json, as_plot = (folder / f"{name}.{suffix}" for suffix in ("txt", "json", "png"))
        as_text.write_text(self.text() + "\n")
        content = {
            "machine": self.machine,
            "rounds": self.rounds,
            "notes": list(self.notes),
            "lines": [row.as_json() for row in self.rows],
        }
        as_json.write_text(json.dumps(content, indent=2) + "\n")
        plot(self.rows, self.heading(), as_plot)
        return [as_text, as_json, as_plot]


def plot(rows: Sequence[Row], heading: Sequence[str], path: Path) -> None:
    """For each line, how many times better than Apache Kafka: the median, the spread, and the target."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    figure, axes = pyplot.subplots(figsize=(10, 0.36 * len(rows) + 1.8), layout="constrained")
    places = range(len(rows))
    advantages = [_advantage(row) for row in rows]
    medians = [advantage.median for advantage in advantages]
    met = [row.met for row in rows]
    colours = [{True: "tab:green", False: "tab:red", None: "tab:grey"}[each] for each in met]
    spread = (
        [advantage.median - advantage.low for advantage in advantages],
        [advantage.high - advantage.median for advantage in advantages],
    )
    axes.barh(places, [median - 1 for median in medians], left=1, color=colours, alpha=0.55, height=0.6)
    axes.errorbar(medians, places, xerr=spread, fmt="none", ecolor="black", elinewidth=1, capsize=3)
    targets = [
        (row.line.advantage(row.line.target), place)
        for place, row in enumerate(rows)
        if row.line.target and not row.line.own
    ]
    axes.plot(
        *zip(*targets, strict=True), linestyle="none", marker="|", markersize=14, color="tab:blue", label="target"
    )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.set_yticks(places, [row.line.title for row in rows], fontsize=9)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("times better than Apache Kafka (green: target met, red: missed, grey: none)", fontsize=8)
    axes.legend(loc="lower right")
    axes.set_title("\n".join(heading), fontsize=8, loc="left")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _advantage(row: Row) -> Spread:
    ends = sorted(row.line.advantage(ratio) for ratio in (row.ratio.low, row.ratio.high))
    return Spread(row.line.advantage(row.ratio.median), *ends)
