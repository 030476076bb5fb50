"""Takes typed values out of a mapping, and remembers every mistake on the way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, TypeVar

from barnabas.pipeline.checks import Path, Problem, did_you_mean

E = TypeVar("E", bound=StrEnum)


class Fields:
    """One mapping of the file. `done` reports unknown keys."""

    def __init__(self, value: Any, path: Path, problems: list[Problem]) -> None:
        self.path = path
        self.problems = problems
        self._asked: list[str] = []
        self._values: dict[str, Any] = {}
        if isinstance(value, dict):
            self._values = value
        elif value is not None:
            self.wrong((), f"expected keys and values, not {_kind(value)}")

    def wrong(self, below: Path, message: str) -> None:
        self.problems.append(Problem((*self.path, *below), message))

    def has(self, key: str) -> bool:
        return self._values.get(key) is not None

    def names(self) -> list[str]:
        return list(self._values)

    def raw(self, key: str) -> Any:
        self._asked.append(key)
        return self._values.get(key)

    def text(self, key: str, default: str | None = None, *, needed: bool = False) -> str | None:
        value = self.raw(key)
        if value is None:
            if needed:
                self.wrong((key,), "is missing")
            return default
        if isinstance(value, dict | list):
            self.wrong((key,), f"{key!r} is a text, not {_kind(value)}")
            return default
        return as_text(value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.raw(key)
        if value is not None and not isinstance(value, bool):
            self.wrong((key,), f"{key!r} is true or false, not {_kind(value)}")
            return default
        return default if value is None else value

    def number(self, key: str, default: int | None = None) -> int | None:
        value = self.raw(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.wrong((key,), f"{key!r} is a whole number of at least 1, not {_kind(value)}")
            return default
        return value

    def seconds(self, key: str, default: float) -> float:
        value = self.raw(key)
        if value is None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        self.wrong((key,), f"{key!r} is a number of seconds, not {_kind(value)}")
        return default

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, or one text alone."""
        value = self.raw(key)
        if value is None:
            return ()
        listed = value if isinstance(value, list) else [value]
        if any(isinstance(each, dict | list) or each is None for each in listed):
            self.wrong((key,), f"{key!r} is a text or a list of texts")
            return ()
        return tuple(as_text(each) for each in listed)

    def settings(self, key: str) -> dict[str, str]:
        value = self.raw(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.wrong((key,), f"{key!r} has names and values, not {_kind(value)}")
            return {}
        return dict(flattened(value))

    def choice(self, key: str, kind: type[E], default: E) -> E:
        value = self.text(key)
        if value is None:
            return default
        return self.one_of(value, kind, default, (key,))

    def one_of(self, value: str, kind: type[E], default: E, below: Path) -> E:
        known = [each.value for each in kind]
        if value not in known:
            self.wrong(below, f"{value!r} is not one of {', '.join(known)}{did_you_mean(value, known)}")
            return default
        return kind(value)

    def parts(self, key: str, make: Callable[[str, Any, Path], Any]) -> tuple[Any, ...]:
        """A mapping of names to parts, in the order of the file."""
        value = self.raw(key)
        if value is None:
            return ()
        if not isinstance(value, dict):
            self.wrong((key,), f"{key!r} has a name for each of its parts, not {_kind(value)}")
            return ()
        made = (make(name, part, (*self.path, key, name)) for name, part in value.items())
        return tuple(each for each in made if each is not None)

    def done(self) -> None:
        for key in self._values:
            if key not in self._asked:
                self.wrong((key,), f"{key!r} is not known here{did_you_mean(key, self._asked)}")


def as_text(value: Any) -> str:
    """A scalar as text, nearly as written: YAML turns some into numbers, dates and booleans."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)


def milliseconds(value: Any) -> str | None:
    """A point in time as milliseconds since 1970; UTC where the file names no zone."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime):
        value = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return str(int(value.timestamp() * 1000))
    return None


def flattened(value: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """`{a: {b: 1}}` and `{a.b: 1}` are the same setting."""
    settings: list[tuple[str, str]] = []
    for key, each in value.items():
        settings += flattened(each, f"{prefix}{key}.") if isinstance(each, dict) else [(prefix + key, as_text(each))]
    return settings


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "keys and values"
    if isinstance(value, list):
        return "a list"
    return f"{as_text(value)!r}"
