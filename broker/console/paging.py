"""Lists in pages: of a thousand rows, only those that are on the page are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from barnabas.broker.console.errors import ConsoleError

Json = dict[str, Any]
Query = Mapping[str, str]
T = TypeVar("T")

PAGE: Final = 50


def page_of(query: Query) -> tuple[int, int]:
    text = query.get("page", "0")
    if not text.isdigit() or len(text) > 9:
        raise ConsoleError("page is a number")
    return int(text), int(text) * PAGE


def pages(count: int) -> int:
    return max((count + PAGE - 1) // PAGE, 1)


def paged(items: list[T], query: Query, row: Callable[[T], Json]) -> Json:
    page, first = page_of(query)
    return {
        "total": len(items),
        "page": page,
        "pages": pages(len(items)),
        "rows": [row(item) for item in items[first : first + PAGE]],
    }
