"""The journal of a broker under test: every request and its answer, and assertions about them.

broker.journal.expect("OffsetCommit", group="g", within=5)
broker.journal.none("Produce", topic="audit")
assert broker.journal.count("Fetch", topic="t") == 3
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client import ControlClient

Entry = dict[str, Any]

# How many entries a failed expectation shows.
_SHOWN = 15
# What the broker itself may take on top of the time that it was asked to wait.
_GRACE = 30.0


class Journal:
    """The journal of one broker. Entries have numbers, which rise; `mark()` is the last one so far.

    An answer is in the journal before its client can have seen it. Filters are `client_id`, `topic`, `partition`,
    `group`, `transactional_id`, `error` (a name, "any" or "none"), `outcome` ("answered", "no answer due", "closed",
    "misunderstood") and `since` (a mark); in names, `*` and `?` stand for any characters and any one. A journal that is
    off refuses to assert anything.
    """

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def start(self) -> None:
        """Keep a journal from now on."""
        self._client.call("POST", "/journal", {"on": True})

    def stop(self) -> None:
        self._client.call("POST", "/journal", {"on": False})

    def clear(self) -> None:
        """Forget all entries; numbers go on."""
        self._client.call("DELETE", "/journal")

    def mark(self) -> int:
        """The number of the last entry, for `since`: what happens from here on."""
        return int(self._client.call("GET", "/journal/position")["last"])

    def entries(self, api: str | list[str] | None = None, **filters: Any) -> list[Entry]:
        """The entries that are there; with `limit`, the last so many of them."""
        return list(self._client.lines("GET", "/journal", query=_query(api, filters), timeout=_GRACE))

    def follow(self, api: str | list[str] | None = None, *, timeout: float = 3600.0, **filters: Any) -> Iterator[Entry]:
        """The entries that are there and, as they come, those to come."""
        return self._client.lines("GET", "/journal/follow", query=_query(api, filters), timeout=timeout)

    def export(self, path: str) -> None:
        """Write all entries to a file, as JSON lines."""
        import json

        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in self.entries())

    # --- assertions ---

    def expect(
        self, api: str | list[str] | None = None, *, within: float = 5.0, count: int = 1, **filters: Any
    ) -> Entry:
        """The first entry that fits, of at least `count`: one that is there already, or comes `within` seconds.

        If there is none, AssertionError says what was seen instead.
        """
        __tracebackhide__ = True  # pytest shows the test's own line
        told = self._ask(api, filters, within, count)
        if len(told["found"]) < count:
            raise AssertionError(_failure(api, filters, within, count, told))
        entry: Entry = told["found"][0]
        return entry

    def none(self, api: str | list[str] | None = None, *, within: float = 0.0, **filters: Any) -> None:
        """Nothing fits of what is there, nor of what comes `within` seconds."""
        __tracebackhide__ = True
        found = self._ask(api, filters, within, 1)["found"]
        if found:
            lines = "\n".join(f"  {line_of(entry)}" for entry in found[:_SHOWN])
            raise AssertionError(f"there was not to be {_wanted(api, filters)}, and there is:\n{lines}")

    def count(self, api: str | list[str] | None = None, **filters: Any) -> int:
        """How many entries fit."""
        return len(self._ask(api, filters, 0.0, 1)["found"])

    def _ask(self, api: str | list[str] | None, filters: dict[str, Any], within: float, count: int) -> dict[str, Any]:
        body = {**filters, "within": within, "count": count}
        if api is not None:
            body["api"] = api
        told: dict[str, Any] = self._client.call("POST", "/journal/expect", body, timeout=within + _GRACE)
        return told


def _query(api: str | list[str] | None, filters: dict[str, Any]) -> dict[str, str]:
    query = {name: str(value) for name, value in filters.items() if value is not None}
    if api is not None:
        query["api"] = api if isinstance(api, str) else ",".join(api)
    return query


def _wanted(api: str | list[str] | None, filters: dict[str, Any]) -> str:
    name = api if isinstance(api, str) else " or ".join(api) if api else "any request"
    told = ", ".join(f"{key}={value!r}" for key, value in filters.items())
    return f"{name} with {told}" if told else name


def _failure(
    api: str | list[str] | None, filters: dict[str, Any], within: float, count: int, told: dict[str, Any]
) -> str:
    found, seen = told["found"], told["seen"]
    times = "" if count == 1 else f"{count} times "
    head = f"expected {times}{_wanted(api, filters)} within {within:g} s; there {'were' if found else 'was none'}"
    head += f" {len(found)}." if found else "."
    if not seen:
        return f"{head} The journal has no entries at all: is it on, and did a client connect?"
    names = [api] if isinstance(api, str) else api or []
    near = [entry for entry in seen if entry["api"].lower() in [name.lower() for name in names]]
    shown = near[-_SHOWN:] or seen[-_SHOWN:]
    kind = f"the last {len(shown)} of that kind" if near else f"the last {len(shown)}"
    lines = "\n".join(f"  {line_of(entry)}" for entry in shown)
    return f"{head}\nSeen instead ({kind}, of {len(seen)}):\n{lines}"


def line_of(entry: Entry) -> str:
    """An entry in a line for people."""
    if not entry["api"]:
        return f"#{entry['number']} no request, from {entry['peer']}: {entry['reason']}"
    parts = [f"#{entry['number']} {entry['api']} v{entry['version']}", f"from {entry['client_id']!r}"]
    for name, title in (("groups", "group"), ("transactional_ids", "transaction"), ("partitions", "")):
        values = entry[name]
        if values:
            more = f" and {len(values) - 3} more" if len(values) > 3 else ""
            parts.append(f"{title} {', '.join(values[:3])}{more}".strip())
    parts.append(", ".join(entry["errors"]) or entry["outcome"])
    if entry.get("reason"):
        parts.append(entry["reason"])
    parts.append(f"{entry['took_ms']:g} ms")
    if "fault" in entry:
        parts.append(f"fault {entry['fault']}")
    parts += [change_of(change) for change in entry["changes"]]
    return "; ".join(parts)


def change_of(change: dict[str, Any]) -> str:
    (kind, name), *values = change.items()
    told = ", ".join(
        f"{key} {value[0]} -> {value[1]}" if isinstance(value, list) else f"{key} {value}" for key, value in values
    )
    return f"{kind.replace('_', ' ')} {name}: {told}"
