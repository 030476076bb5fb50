"""How the lines that `barnabas produce` reads become records."""

from __future__ import annotations

import argparse
import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from barnabas.client.record_encoder import Records
from barnabas.command.line_reader import InputError
from barnabas.command.values import timestamp
from barnabas.protocol.records.record import Headers

_BASE64: Final = "base64"
# `topic` and `offset` are what `consume --json` writes; they have no meaning for a new record.
_FIELDS: Final = ("key", "value", "headers", "partition", "timestamp", "topic", "offset")


class Parsed(NamedTuple):
    """The records of the lines up to the first that is wrong, and what is wrong with that one."""

    records: Records
    error: InputError | None


class TextLines:
    """A value per line; with a separator, a key and a value."""

    def __init__(
        self,
        *,
        separator: bytes | None = None,
        key: bytes | None = None,
        null: bytes | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        self._separator = separator
        self._key = key
        self._null = null
        self._timestamp_ms = timestamp_ms

    def parse(self, lines: list[bytes], before: int) -> Parsed:
        """`before` lines have been read already."""
        error = None
        keys: Sequence[bytes | None] | None = None if self._key is None else [self._key] * len(lines)
        values: Sequence[bytes | None] = lines
        if self._separator is not None:
            keys, values, error = self._split(lines, self._separator, before)
        if self._null is not None:
            values = [None if value == self._null else value for value in values]
        timestamps = None if self._timestamp_ms is None else [self._timestamp_ms] * len(values)
        return Parsed(Records(values, keys, timestamps=timestamps), error)

    def _split(
        self, lines: list[bytes], separator: bytes, before: int
    ) -> tuple[list[bytes], list[bytes], InputError | None]:
        keys: list[bytes] = []
        values: list[bytes] = []
        for number, line in enumerate(lines, before + 1):
            key, found, value = line.partition(separator)
            if not found:
                text = separator.decode(errors="replace")
                return keys, values, InputError(f"line {number} has no {text!r} between a key and a value")
            keys.append(key)
            values.append(value)
        return keys, values, None


class JsonLines:
    """A JSON object per line: value, and perhaps key, headers, partition and timestamp. Empty lines are skipped."""

    def __init__(self, partition_count: int, *, key: bytes | None = None, timestamp_ms: int | None = None) -> None:
        """`key` and `timestamp_ms` are for objects that have none."""
        self._partition_count = partition_count
        self._key = key
        self._timestamp_ms = timestamp_ms

    def parse(self, lines: list[bytes], before: int) -> Parsed:
        error = None
        rows: list[_Row] = []
        for number, line in enumerate(lines, before + 1):
            if not line.strip():
                continue
            try:
                rows.append(self._row(line))
            except ValueError as problem:
                error = InputError(f"line {number}: {problem}")
                break
        columns = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        values, keys, headers, timestamps, partitions = map(list, columns)
        return Parsed(Records(values, keys, headers, timestamps, partitions), error)

    def _row(self, line: bytes) -> _Row:
        """ValueError says what is wrong with the line."""
        try:
            fields = json.loads(line, parse_constant=_refuse_constant)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"it is not JSON: {error}") from None
        except RecursionError:
            raise ValueError("its JSON is nested too deeply") from None
        if not isinstance(fields, dict):
            raise ValueError("it is not a JSON object")
        for name in fields:
            if name not in _FIELDS:
                raise ValueError(f"{name!r} is not a field of a record; {', '.join(_FIELDS[:5])} are")
        if "value" not in fields:
            raise ValueError("it has no value; a tombstone has null")
        return _Row(
            value=_bytes(fields["value"]),
            key=_bytes(fields["key"]) if "key" in fields else self._key,
            headers=_headers(fields.get("headers") or []),
            timestamp=self._timestamp_ms if fields.get("timestamp") is None else _timestamp(fields["timestamp"]),
            partition=self._partition(fields.get("partition")),
        )

    def _partition(self, given: Any) -> int | None:
        if given is None:
            return None
        if isinstance(given, bool) or not isinstance(given, int):
            raise ValueError(f"partition is {given!r}, but it must be a number")
        if not 0 <= given < self._partition_count:
            raise ValueError(f"the topic has no partition {given}; its partitions are 0 to {self._partition_count - 1}")
        return given


def _refuse_constant(name: str) -> None:
    """Python's parser would take NaN and Infinity, and the record would not be JSON."""
    raise ValueError(f"it is not JSON: it has {name}")


class _Row(NamedTuple):
    value: bytes | None
    key: bytes | None
    headers: Headers
    timestamp: int | None
    partition: int | None


def _bytes(value: Any) -> bytes | None:
    """Text as UTF-8, {"base64": "..."} as the bytes that it stands for, anything else as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and list(value) == [_BASE64] and isinstance(value[_BASE64], str):
        try:
            return base64.b64decode(value[_BASE64], validate=True)
        except binascii.Error as error:
            raise ValueError(f"{value[_BASE64]!r} is not base64: {error}") from None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _headers(given: Any) -> Headers:
    """An object of names and values; or, as a name may occur twice, a list of {"name": ..., "value": ...}."""
    if isinstance(given, dict):
        return [(name, _bytes(value)) for name, value in given.items()]
    if isinstance(given, list) and all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in given):
        return [(each["name"], _bytes(each.get("value"))) for each in given]
    raise ValueError('headers are an object, or a list of {"name": ..., "value": ...}')


def _timestamp(given: Any) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    if isinstance(given, str):
        try:
            return timestamp(given)
        except argparse.ArgumentTypeError:
            pass
    raise ValueError(f"timestamp is {given!r}, but it must be milliseconds since 1970, or a time in ISO 8601")
