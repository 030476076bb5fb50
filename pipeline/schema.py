"""Schemas as Spark writes them (`id INT NOT NULL, tags ARRAY<STRING>`), parsed without Spark.

So mistakes in a file are found before a JVM starts, and `misfit` can explain why a record does not fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

# A type's name -> the Python types that JSON gives for a value of it.
_SIMPLE: Final[dict[str, tuple[type, ...]]] = {
    "STRING": (str, int, float, bool, dict, list),  # Spark keeps the text of any value
    "VARCHAR": (str, int, float, bool, dict, list),
    "CHAR": (str, int, float, bool, dict, list),
    "BOOLEAN": (bool,),
    "BYTE": (int,),
    "TINYINT": (int,),
    "SHORT": (int,),
    "SMALLINT": (int,),
    "INT": (int,),
    "INTEGER": (int,),
    "LONG": (int,),
    "BIGINT": (int,),
    "FLOAT": (int, float, str),
    "REAL": (int, float, str),
    "DOUBLE": (int, float, str),
    "DECIMAL": (int, float, str),
    "DEC": (int, float, str),
    "NUMERIC": (int, float, str),
    "BINARY": (str,),
    "DATE": (str, int),
    "TIMESTAMP": (str, int, float),
    "TIMESTAMP_LTZ": (str, int, float),
    "TIMESTAMP_NTZ": (str,),
    "VARIANT": (str, int, float, bool, dict, list),
}
_BITS: Final = {
    "BYTE": 8,
    "TINYINT": 8,
    "SHORT": 16,
    "SMALLINT": 16,
    "INT": 32,
    "INTEGER": 32,
    "LONG": 64,
    "BIGINT": 64,
}
_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([A-Za-z_][A-Za-z_0-9]*)|(\d+)|([<>(),:])|('(?:[^'\\]|\\.)*'))")


class SchemaError(ValueError):
    """Text that is not a schema; the message says where."""


@dataclass(frozen=True, slots=True)
class Type:
    name: str
    fields: tuple[Field, ...] = ()  # of a STRUCT
    arguments: tuple[Type, ...] = ()  # of an ARRAY or a MAP
    size: str = ""  # of a DECIMAL or VARCHAR, with its parentheses

    def __str__(self) -> str:
        if self.fields:
            return f"STRUCT<{', '.join(f'`{each.name}`: {each.type}' for each in self.fields)}>"
        if self.arguments:
            return f"{self.name}<{', '.join(map(str, self.arguments))}>"
        return self.name + self.size


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type
    nullable: bool = True


def parse_schema(text: str) -> tuple[Field, ...]:
    parser = _Parser(text)
    fields = tuple(parser.fields(end=None))
    names = [each.name.lower() for each in fields]
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(f"the column {name} is there twice")
    return fields


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._next = 0

    def fields(self, end: str | None) -> Iterator[Field]:
        while True:
            name = self._name("a column's name")
            if self._peek() == ":":
                self._take()
            type_ = self._type(name)
            yield Field(name, type_, nullable=not self._not_null())
            if self._peek() == "COMMENT":
                self._take(), self._take()
            token = self._take()
            if token == end:
                return
            if token != ",":
                raise SchemaError(f"after the column {name}: expected a comma, not {_shown(token)}")

    def _type(self, column: str) -> Type:
        name = self._name(f"the type of the column {column}").upper()
        if name == "STRUCT":
            self._expect("<", name)
            return Type(name, fields=tuple(self.fields(end=">")))
        if name == "ARRAY":
            self._expect("<", name)
            element = self._type(column)
            self._expect(">", name)
            return Type(name, arguments=(element,))
        if name == "MAP":
            self._expect("<", name)
            key = self._type(column)
            self._expect(",", name)
            value = self._type(column)
            self._expect(">", name)
            return Type(name, arguments=(key, value))
        if name not in _SIMPLE:
            close = get_close_matches(name, [*_SIMPLE, "ARRAY", "MAP", "STRUCT"], 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise SchemaError(f"the column {column} has the unknown type {name}{hint}")
        size = ""
        if self._peek() == "(":
            while not size.endswith(")"):
                token = self._take()
                if token is None:
                    raise SchemaError(f"the parenthesis after {name} is not closed")
                size += token
        return Type(name, size=size)

    def _not_null(self) -> bool:
        if (self._peek() or "").upper() != "NOT":
            return False
        self._take()
        if (self._take() or "").upper() != "NULL":
            raise SchemaError("expected NULL after NOT")
        return True

    def _name(self, what: str) -> str:
        token = self._take()
        if token is None or token in "<>(),:" or token.isdigit():
            raise SchemaError(f"expected {what}, not {_shown(token)}")
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def _expect(self, wanted: str, after: str) -> None:
        token = self._take()
        if token != wanted:
            raise SchemaError(f"expected {wanted} after {after}, not {_shown(token)}")

    def _peek(self) -> str | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self) -> str | None:
        token = self._peek()
        self._next += 1
        return token


def _tokens(text: str) -> Iterator[str]:
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise SchemaError(f"unexpected {text[position:].strip()[:10]!r}")
        yield match[0].strip()
        position = match.end()


def _shown(token: str | None) -> str:
    return "the end" if token is None else repr(token)


def bytes_of_nulls(avro: str) -> bytes | None:
    """How Avro writes a record of this schema whose fields are all null; None if a field cannot be null.

    That is the null branch of each field's union: one byte each, since unions have fewer than 64 branches.
    """
    written = bytearray()
    for field in json.loads(avro)["fields"]:
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        if "null" not in kinds:
            return None
        if isinstance(field["type"], list):  # a plain null takes no bytes
            written.append(kinds.index("null") << 1)
    return bytes(written)


def misfit(value: Any, fields: tuple[Field, ...]) -> str | None:
    """Why a decoded JSON value is not a row of these columns; None if it fits."""
    if not isinstance(value, dict):
        return f"a JSON object is expected, and this is {_kind(value)}"
    return _misfit_fields(value, fields, "")


def _misfit_fields(value: dict[str, Any], fields: tuple[Field, ...], prefix: str) -> str | None:
    for each in fields:
        found = value.get(each.name)
        path = prefix + each.name
        if found is None:
            if not each.nullable:
                return f"the field {path} is missing or null, and the schema says NOT NULL"
            continue
        problem = _misfit_value(found, each.type, path)
        if problem is not None:
            return problem
    return None


def _misfit_value(value: Any, type_: Type, path: str) -> str | None:
    if type_.name == "STRUCT":
        if not isinstance(value, dict):
            return f"the field {path} should be an object, and is {_kind(value)}"
        return _misfit_fields(value, type_.fields, f"{path}.")
    if type_.name == "ARRAY":
        if not isinstance(value, list):
            return f"the field {path} should be an array, and is {_kind(value)}"
        reasons = (_misfit_value(each, type_.arguments[0], f"{path}[]") for each in value if each is not None)
        return next((each for each in reasons if each), None)
    if type_.name == "MAP":
        if not isinstance(value, dict):
            return f"the field {path} should be an object, and is {_kind(value)}"
        reasons = (_misfit_value(each, type_.arguments[1], path) for each in value.values() if each is not None)
        return next((each for each in reasons if each), None)
    wanted = _SIMPLE[type_.name]
    fits = isinstance(value, wanted) and not (isinstance(value, bool) and bool not in wanted)
    bits = _BITS.get(type_.name)
    if fits and bits is not None and not -(1 << bits - 1) <= value < 1 << bits - 1:
        return f"the field {path} should be {type_.name}, and {value} is out of its range"
    return None if fits else f"the field {path} should be {type_.name}, and is {_kind(value)}"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool | int | float):
        return f"{value!r}".lower()
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    return "an array" if isinstance(value, list) else "an object"
