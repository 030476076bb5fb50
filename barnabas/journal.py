"""The journal of a broker under test: every request with its response, and assertions about them.

broker.journal.expect("OffsetCommit", group="g", within=5)
broker.journal.none("Produce", topic="audit")
assert broker.journal.count("Fetch", topic="t") == 3
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.printable import printable

if TYPE_CHECKING:
    from barnabas.control import ControlClient

__tracebackhide__ = True  # pytest shows the line of the test instead

Entry = dict[str, Any]

# How many entries a failed expectation shows.
_SHOWN = 15
# How long the broker may take on top of the time that it was asked to wait.
_GRACE = 30.0


class Journal:
    """The journal of one broker. Entries are numbered in order; `mark()` is the last number so far.

    A response is in the journal before its client can see it. Filters are `client_id`, `topic`, `partition`,
    `group`, `transactional_id`, `error` (a name, "any" or "none"), `outcome` ("answered", "no answer due", "closed",
    "misunderstood") and `since` (a mark). In names, `*` and `?` are wildcards for any characters and for one character.

    With the pytest plugin, everything here looks only at the entries of the current test; `since=0` looks at all of
    them. Asserting on a journal that is off is an error.
    """

    def __init__(self, client: ControlClient, since: Callable[[], int] = lambda: 0) -> None:
        """`since` returns the mark to start from when a call has none."""
        self._client = client
        self._since = since

    def start(self) -> None:
        """Start recording."""
        self._client.call("POST", "/journal", {"on": True})

    def stop(self) -> None:
        self._client.call("POST", "/journal", {"on": False})

    def clear(self) -> None:
        """Delete all entries; numbering continues."""
        self._client.call("DELETE", "/journal")

    def mark(self) -> int:
        """The number of the last entry. Pass it as `since` to see only later entries."""
        return int(self._client.call("GET", "/journal/position")["last"])

    def entries(self, api: str | list[str] | None = None, **filters: Any) -> list[Entry]:
        """The entries so far; with `limit`, only the last ones."""
        return list(self._client.lines("GET", "/journal", query=self._query(api, filters), timeout=_GRACE))

    def follow(self, api: str | list[str] | None = None, *, timeout: float = 3600.0, **filters: Any) -> Iterator[Entry]:
        """Yield the entries so far, then new ones as they arrive."""
        return self._client.lines("GET", "/journal/follow", query=self._query(api, filters), timeout=timeout)

    def export(self, path: str) -> None:
        """Write the entries to a file, as JSON lines."""
        import json

        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in self.entries())

    # --- assertions ---

    def expect(
        self, api: str | list[str] | None = None, *, within: float = 5.0, count: int = 1, **filters: Any
    ) -> Entry:
        """Return the first of at least `count` matching entries that exist or arrive `within` seconds.

        If there are not enough, the AssertionError shows what was seen instead.
        """
        told = self._ask(api, filters, within, count)
        if len(told["found"]) < count:
            raise AssertionError(_failure(api, filters, within, count, told))
        entry: Entry = told["found"][0]
        return entry

    def none(self, api: str | list[str] | None = None, *, within: float = 0.0, **filters: Any) -> None:
        """Assert that no entry matches, of those that exist or arrive `within` seconds."""
        found = self._ask(api, filters, within, 1)["found"]
        if found:
            lines = "\n".join(f"  {line_of(entry)}" for entry in found[:_SHOWN])
            raise AssertionError(f"expected no {_wanted(api, filters)}, but there is:\n{lines}")

    def count(self, api: str | list[str] | None = None, **filters: Any) -> int:
        """How many entries match."""
        return len(self._ask(api, filters, 0.0, 1)["found"])

    def _ask(self, api: str | list[str] | None, filters: dict[str, Any], within: float, count: int) -> dict[str, Any]:
        body = {"since": self._since(), **filters, "within": within, "count": count}
        if api is not None:
            body["api"] = api
        told: dict[str, Any] = self._client.call("POST", "/journal/expect", body, timeout=within + _GRACE)
        return told

    def _query(self, api: str | list[str] | None, filters: dict[str, Any]) -> dict[str, str]:
        given = {"since": self._since(), **filters}
        query = {name: str(value) for name, value in given.items() if value is not None}
        if api is not None:
            query["api"] = api if isinstance(api, str) else ",".join(api)
        return query


def _wanted(api: str | list[str] | None, filters: dict[str, Any]) -> str:
    name = api if isinstance(api, str) else " or ".join(api) if api else "request"
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
    """An entry as one line of text."""
    if not entry["api"]:
        return printable(f"#{entry['number']} no request, from {entry['peer']}: {entry['reason']}")
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
    return printable("; ".join(parts))


def change_of(change: dict[str, Any]) -> str:
    (kind, name), *values = change.items()
    told = ", ".join(
        f"{key} {value[0]} -> {value[1]}" if isinstance(value, list) else f"{key} {value}" for key, value in values
    )
    return f"{kind.replace('_', ' ')} {name}: {told}"
