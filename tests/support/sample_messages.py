"""A message of any type with a value in every field, so that a test can go through all APIs and versions."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.schema import BYTES, RECORDS, STRING, StructType, wire_types

UUID = bytes(range(16))


def sample(struct: StructType, version: int, text: str = "name", **fields: Any) -> Any:
    """Lists have one entry; what this version lacks is left at its default, so that it survives the wire.

    `text` is the value of every string.
    """
    values = {}
    for name, wire_type in wire_types(struct).items():
        spec = struct.fields[name]
        if version in spec.versions and not (isinstance(wire_type, StructType) and spec.tag is not None):
            values[name] = _value(wire_type, version, text)
        elif spec.required:
            values[name] = [] if isinstance(wire_type, list) else wire_type.zero
    return struct(**{**values, **fields})


def _value(wire_type: Any, version: int, text: str) -> Any:
    if isinstance(wire_type, list):
        return [_value(wire_type[0], version, text)]
    if isinstance(wire_type, StructType):
        return sample(wire_type, version, text)
    if wire_type is STRING:
        return text
    if wire_type in (BYTES, RECORDS):
        return b"bytes"
    if wire_type.name == "uuid":
        return UUID
    return wire_type.zero if wire_type.name in ("bool", "float64") else 1
