"""What commands print: a table for people, or the same rows as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.printable import printable, printable_json

Row = Mapping[str, Any]


def render(columns: Mapping[str, str], rows: Sequence[Row]) -> str:
    """Rows in columns that are as wide as they need to be. `columns` maps the keys of a row to titles, in order."""
    lines = [list(columns.values()), *([printable(_cell(row[key])) for key in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def as_json(value: Any, *, one_line: bool = False) -> str:
    return printable_json(json.dumps(value, ensure_ascii=False, indent=None if one_line else 2))


def _cell(value: Any) -> str:
    """A missing value is shown as `-`, as in Kafka's tools."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return ";".join(f"{key}:{_cell(each)}" for key, each in value.items())
    return str(value)
