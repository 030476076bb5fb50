"""Values of any message in any version, made by Hypothesis from the message's own declaration."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey, request_type, response_type
from barnabas.protocol.codegen import default_of
from barnabas.protocol.schema import Message, Struct, StructType, WireType, wire_types

# Lengths on both sides of where a compact length takes its second byte, and text of one to four bytes per character.
_TEXTS = ["", "a", "orders", "ä", "日本語", "🎈", "n" * 126, "n" * 127, "n" * 128, "é" * 1000]
_BLOBS = [b"", b"\0", b"\xff\xfe", bytes(126), bytes(127), bytes(128), bytes(range(256)) * 4]

_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.just(bytes(16)) | st.binary(min_size=16, max_size=16),
    "string": st.sampled_from(_TEXTS) | st.text(max_size=4),
    "bytes": st.sampled_from(_BLOBS) | st.binary(max_size=4),
    "records": st.sampled_from(_BLOBS) | st.binary(max_size=4),
}


def every_message() -> Iterator[tuple[type[Message], int]]:
    """Each request and response in each of its versions."""
    for key in ApiKey:
        for message in (request_type(key), response_type(key)):
            for version in message.versions:
                yield message, version


@cache
def values(struct: StructType, version: int) -> st.SearchStrategy[Any]:
    """Instances of a struct as this version of its message can carry them: what it lacks has its default."""
    types = wire_types(struct)
    fields = {}
    for name, spec in struct.fields.items():
        default = default_of(spec, types[name])
        if default == () and isinstance(default, tuple):
            default = []
        if version not in spec.versions:
            fields[name] = st.just(default)
            continue
        fields[name] = _values_of(types[name], version)
        if version in spec.nullable:
            fields[name] = st.none() | fields[name]
        if spec.tag is not None:
            fields[name] = st.just(default) | fields[name]
    return st.fixed_dictionaries(fields).map(lambda chosen: _build(struct, chosen))


def _values_of(wire_type: Any, version: int) -> st.SearchStrategy[Any]:
    if isinstance(wire_type, list):
        return st.lists(_values_of(wire_type[0], version), max_size=2)
    if isinstance(wire_type, WireType):
        return _SCALARS[wire_type.name]
    return values(wire_type, version)


def _build(struct: StructType, chosen: dict[str, Any]) -> Struct:
    # A default list is shared by every example that Hypothesis makes: each value gets its own.
    built: Struct = struct(
        **{name: list(value) if isinstance(value, list) else value for name, value in chosen.items()}
    )
    return built
