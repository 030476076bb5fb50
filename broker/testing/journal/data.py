"""Messages as plain data for JSON: every field of the version, under its own name.

Records are not decoded: their summary comes from the header of their first batch. Other bytes are shown by size only,
because they may be secrets; so may settings, which are left out by name.
"""

from __future__ import annotations

import os
import uuid
from functools import cache
from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import HEADER_SIZE, MAGIC, read_header
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.schema import BYTES, RECORDS, Struct, StructType, wire_types
from barnabas.storage.segment import FileSlice

Json = dict[str, Any]

_ERROR_FIELDS: Final = ("error_code", "partition_error_code", "topic_config_error_code", "acknowledge_error_code")
_SECRET: Final = ("password", "secret", "jaas", "token", "credential", "keystore.key")
_HIDDEN: Final = "(hidden)"
_NAMES: Final = {int(code): code.name for code in ErrorCode}


def to_data(struct: Struct, version: int) -> Json:
    data = {}
    for name, convert in _plan(type(struct), version):
        value = getattr(struct, name)
        data[name] = value if convert is None or value is None else convert(value)
    if "value" in data and "name" in data and _is_secret(data["name"]):
        data["value"] = _HIDDEN
    return data


@cache
def _plan(struct: StructType, version: int) -> tuple[tuple[str, Any], ...]:
    """The fields of a version, and how each is converted (None: it is plain data already)."""
    types = wire_types(struct)
    return tuple(
        (name, _error_name if name in _ERROR_FIELDS else _converter(types[name], version))
        for name, spec in struct.fields.items()
        if version in spec.versions
    )


def _converter(wire_type: Any, version: int) -> Any:
    if isinstance(wire_type, list):
        inner = _converter(wire_type[0], version)
        return None if inner is None else lambda values: [inner(value) for value in values]
    if isinstance(wire_type, StructType):
        return lambda value: to_data(value, version)
    if wire_type is RECORDS:
        return summary_of_records
    if wire_type is BYTES:
        return lambda value: {"bytes": len(value)}
    if wire_type.name == "uuid":
        return lambda value: str(uuid.UUID(bytes=bytes(value)))
    return None


def _error_name(code: int) -> str:
    return _NAMES.get(code, str(code))


def _is_secret(name: Any) -> bool:
    return isinstance(name, str) and any(word in name.lower() for word in _SECRET)


def summary_of_records(records: Any) -> Json:
    """The size of records, and what the header of the first batch says."""
    if isinstance(records, FileSlice):
        size = records.size
        start = os.pread(records.handle.fileno(), min(size, HEADER_SIZE), records.position)
    else:
        size, start = len(records), bytes(records[:HEADER_SIZE])
    told: Json = {"bytes": size}
    if len(start) < HEADER_SIZE:
        return told
    header = read_header(start)
    if header.magic != MAGIC:
        return told
    told["first_batch"] = {
        "base_offset": header.base_offset,
        "records": header.record_count,
        "compression": _compression(header.compression),
        "transactional": header.is_transactional,
        "control": header.is_control,
    }
    if header.producer_id >= 0:
        told["first_batch"]["producer_id"] = header.producer_id
        told["first_batch"]["producer_epoch"] = header.producer_epoch
        told["first_batch"]["base_sequence"] = header.base_sequence
    return told


def _compression(number: int) -> str:
    try:
        return CompressionType(number).name.lower()
    except ValueError:
        return str(number)
