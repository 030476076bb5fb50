"""A message of any type with something in every field, so that a test can go through all APIs and versions."""

from __future__ import annotations

from typing import Any

from protocol.schema import BYTES, RECORDS, STRING, StructType, wire_types

UUID = bytes(range(16))


def sample(struct: StructType, version: int, **fields: Any) -> Any:
    """Lists have one entry; what this version lacks is left at its default, so that it survives the wire."""
    values = {}
    for name, wire_type in wire_types(struct).items():
        spec = struct.fields[name]
        if version in spec.versions and not (isinstance(wire_type, StructType) and spec.tag is not None):
            values[name] = _value(wire_type, version)
        elif spec.required:
            values[name] = [] if isinstance(wire_type, list) else wire_type.zero
    return struct(**{**values, **fields})


def _value(wire_type: Any, version: int) -> Any:
    if isinstance(wire_type, list):
        return [_value(wire_type[0], version)]
    if isinstance(wire_type, StructType):
        return sample(wire_type, version)
    if wire_type is STRING:
        return "name"
    if wire_type in (BYTES, RECORDS):
        return b"bytes"
    if wire_type.name == "uuid":
        return UUID
    return wire_type.zero if wire_type.name in ("bool", "float64") else 1
