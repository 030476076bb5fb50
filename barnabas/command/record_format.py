"""How `barnabas consume` writes records."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.command.escapes import unescape
from barnabas.protocol.records.record import Record
from barnabas.protocol.topic_partition import TopicPartition

# From records of one partition that arrived together to what is printed for them.
Format = Callable[[TopicPartition, Sequence[Record]], bytes]

_NULL: Final = b"null"

_FIELDS: Final[dict[str, Callable[[TopicPartition, Record], bytes]]] = {
    "t": lambda partition, record: partition.topic.encode(),
    "p": lambda partition, record: b"%d" % partition.partition,
    "o": lambda partition, record: b"%d" % record.offset,
    "T": lambda partition, record: b"%d" % record.timestamp,
    "k": lambda partition, record: _NULL if record.key is None else record.key,
    "v": lambda partition, record: _NULL if record.value is None else record.value,
    "s": lambda partition, record: _NULL if record.value is None else record.value,
    "K": lambda partition, record: b"%d" % (-1 if record.key is None else len(record.key)),
    "S": lambda partition, record: b"%d" % (-1 if record.value is None else len(record.value)),
    "h": lambda partition, record: b",".join(
        name.encode() + b"=" + (_NULL if value is None else value) for name, value in record.headers
    ),
    "%": lambda partition, record: b"%",
}

FIELDS: Final = (
    "%t topic, %p partition, %o offset, %k key, %v (or %s) value, %h headers, %T timestamp in ms, "
    "%K and %S length of key and value"
)


def parse(text: str) -> Format:
    """`text`, `json`, or a line with %-fields. ValueError if it is none of them."""
    if text == "text":
        return as_text
    if text == "json":
        return as_json
    if "%" in text:
        return custom(text)
    raise ValueError(f"{text!r} is not text, json, or a format such as '%k: %v'")


def as_text(partition: TopicPartition, records: Sequence[Record]) -> bytes:
    """The values, one per line."""
    return b"".join([(_NULL if record.value is None else record.value) + b"\n" for record in records])


def as_json(partition: TopicPartition, records: Sequence[Record]) -> bytes:
    """One object per line. Bytes that are not UTF-8 become {"base64": "..."}."""
    lines = [
        json.dumps(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": _text(record.key),
                "value": _text(record.value),
                "headers": [{"name": name, "value": _text(value)} for name, value in record.headers],
            },
            ensure_ascii=False,
        )
        for record in records
    ]
    return "".join(line + "\n" for line in lines).encode()


def custom(text: str) -> Format:
    """A line for each record. The newline at its end may be left out."""
    parts: list[bytes | Callable[[TopicPartition, Record], bytes]] = []
    text = unescape(text)
    for literal, field in re.findall(r"([^%]*)(%.?)?", text, re.DOTALL):
        if literal:
            parts.append(literal.encode())
        if field:
            if field[1:] not in _FIELDS:
                raise ValueError(f"{field!r} is not a field; the fields are {FIELDS}, and %% for a % sign")
            parts.append(_FIELDS[field[1:]])
    if not text.endswith("\n"):
        parts.append(b"\n")

    def write(partition: TopicPartition, records: Sequence[Record]) -> bytes:
        return b"".join(
            [part if isinstance(part, bytes) else part(partition, record) for record in records for part in parts]
        )

    return write


def _text(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
