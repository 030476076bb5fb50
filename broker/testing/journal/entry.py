"""An entry of the journal, and the filters that find one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from barnabas.broker.testing.faults.fault import FaultError, api_named, error_named

# How an exchange ended.
ANSWERED: Final = "answered"
NO_ANSWER: Final = "no answer due"
CLOSED: Final = "closed"
MISUNDERSTOOD: Final = "misunderstood"
OUTCOMES: Final = (ANSWERED, NO_ANSWER, CLOSED, MISUNDERSTOOD)


class Entry(NamedTuple):
    """The fields that filters use, and the whole entry as a line of JSON."""

    number: int
    api: str
    version: int
    client_id: str | None
    topics: frozenset[str]
    partitions: frozenset[tuple[str, int | None]]
    groups: frozenset[str]
    transactional_ids: frozenset[str]
    errors: frozenset[str]
    outcome: str
    line: bytes


class FilterError(ValueError):
    """An invalid filter: the problem, and the field."""

    def __init__(self, field: str, complaint: str) -> None:
        super().__init__(f"{field}: {complaint}")
        self.field = field


@dataclass(frozen=True)
class Filter:
    """Selects entries. In names, `*` and `?` are wildcards."""

    api: tuple[str, ...] = ()
    client_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    error: str | None = None  # an error's name; "any" for any, "none" for none
    outcome: str | None = None
    since: int = 0  # only entries with a larger number

    def matches(self, entry: Entry) -> bool:
        return (
            entry.number > self.since
            and (not self.api or entry.api in self.api)
            and (self.client_id is None or fnmatchcase(entry.client_id or "", self.client_id))
            and (self.topic is None or any(fnmatchcase(topic, self.topic) for topic in entry.topics))
            and (self.partition is None or self._has_partition(entry))
            and (self.group is None or any(fnmatchcase(group, self.group) for group in entry.groups))
            and (
                self.transactional_id is None
                or any(fnmatchcase(each, self.transactional_id) for each in entry.transactional_ids)
            )
            and (self.error is None or self._has_error(entry))
            and (self.outcome is None or entry.outcome == self.outcome)
        )

    def _has_partition(self, entry: Entry) -> bool:
        return any(
            index == self.partition and (self.topic is None or fnmatchcase(topic, self.topic))
            for topic, index in entry.partitions
        )

    def _has_error(self, entry: Entry) -> bool:
        if self.error == "any":
            return bool(entry.errors)
        return not entry.errors if self.error == "none" else self.error in entry.errors


def parse_filter(data: Mapping[str, Any]) -> Filter:
    """A filter from fields; numbers may be text, as they are in a URL. Raises FilterError."""
    values: dict[str, Any] = {}
    for name, value in data.items():
        if value is None:
            continue
        if name == "api":
            names = value if isinstance(value, list | tuple) else str(value).split(",")
            values["api"] = tuple(_api(each) for each in names)
        elif name in ("client_id", "topic", "group", "transactional_id"):
            values[name] = str(value)
        elif name in ("partition", "since"):
            values[name] = _number(name, value)
        elif name == "error":
            values["error"] = _error(value)
        elif name == "outcome":
            if value not in OUTCOMES:
                raise FilterError("outcome", f"must be one of {', '.join(OUTCOMES)}, not {value!r}")
            values["outcome"] = value
        else:
            known = ", ".join(Filter.__dataclass_fields__)
            raise FilterError(str(name), f"is not a filter; the filters are {known}")
    return Filter(**values)


def _api(name: Any) -> str:
    try:
        return api_named("api", name).api_name
    except FaultError as error:
        raise FilterError("api", str(error).removeprefix("api: ")) from None


def _error(value: Any) -> str:
    if isinstance(value, str) and value.lower() in ("any", "none"):
        return value.lower()
    try:
        return error_named("error", int(value) if str(value).lstrip("-").isdigit() else value).name
    except FaultError as error:
        raise FilterError("error", str(error).removeprefix("error: ")) from None


def _number(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise FilterError(name, f"must be a whole number, not {value!r}") from None
    if number < 0:
        raise FilterError(name, f"must not be negative: {value!r} is")
    return number
