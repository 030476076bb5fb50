"""The records of __transaction_state, to bytes and back.

The key is the transactional id; the value is everything that is known about it. Values are written in version 1, as
Kafka does from transaction.version 1 on; versions 0 and 1 are read. Every step of a transaction writes one, so they are
packed by hand: protocol/transaction_records.py declares them, and tests keep the two equal.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.broker.transaction.states import TransactionState
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.transaction_records import TransactionLogKey, TransactionLogValue
from barnabas.protocol.varint import uvarint

_KEY_VERSION: Final = b"\0\0"

_HEAD: Final = struct.Struct(">hqhib")  # version, producer id, producer epoch, timeout, status
_TIMES: Final = struct.Struct(">qqB")  # last update, start, count of tagged fields
_PREVIOUS_PRODUCER_ID: Final = struct.Struct(">BBq")
_CLIENT_VERSION: Final = struct.Struct(">BBh")
_NONE: Final = -1
_SHORT: Final = 100  # characters of an id
_FEW: Final = 10  # partitions of a transaction

# A decoded record: the transactional id, and what is known about it; None if it is forgotten.
ReadRecord = tuple[str, TransactionMetadata | None]


def transaction_record(metadata: TransactionMetadata) -> CoordinatorRecord:
    transactional_id = metadata[0]
    return CoordinatorRecord(_key(transactional_id), _value(metadata), (transactional_id, metadata))


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_key(transactional_id), None, (transactional_id, None))


def _key(transactional_id: str) -> bytes:
    return _remembered_key(transactional_id) if len(transactional_id) <= _SHORT else _make_key(transactional_id)


def _make_key(transactional_id: str) -> bytes:
    return _KEY_VERSION + encode(TransactionLogKey(transactional_id=transactional_id), 0)


def _value(metadata: TransactionMetadata) -> bytes:
    (
        _,
        producer_id,
        producer_epoch,
        timeout_ms,
        state,
        partitions,
        start_ms,
        last_update_ms,
        client_version,
        previous_producer_id,
        next_producer_id,
        _,
    ) = metadata
    tags = b""
    count = 0
    if previous_producer_id != _NONE:
        count = 1
        tags = _PREVIOUS_PRODUCER_ID.pack(0, 8, previous_producer_id)
    if next_producer_id != _NONE:
        count += 1
        tags += _PREVIOUS_PRODUCER_ID.pack(1, 8, next_producer_id)
    if client_version:
        count += 1
        tags += _CLIENT_VERSION.pack(2, 2, client_version)
    body = b"\0" if state == TransactionState.EMPTY else _partitions(partitions)
    return b"".join(
        (
            _HEAD.pack(1, producer_id, producer_epoch, timeout_ms, state),
            body,
            _TIMES.pack(last_update_ms, start_ms, count),
            tags,
        )
    )


def _partitions(partitions: frozenset[TopicPartition]) -> bytes:
    return _remembered_partitions(partitions) if len(partitions) <= _FEW else _pack_partitions(partitions)


def _pack_partitions(partitions: frozenset[TopicPartition]) -> bytes:
    """By topic."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    out = bytearray(uvarint(len(topics) + 1))
    for topic, indexes in topics.items():
        name = topic.encode()
        out += uvarint(len(name) + 1) + name + uvarint(len(indexes) + 1)
        out += struct.pack(f">{len(indexes)}iB", *indexes, 0)
    return bytes(out)


# Producers write to the same partitions again and again. Long ids are not worth the memory.
_remembered_key = lru_cache(10_000)(_make_key)
_remembered_partitions = lru_cache(10_000)(_pack_partitions)


def read_record(record: CoordinatorRecord) -> ReadRecord | None:
    """Read a record; None if it is of a kind that is not known here. Touches no state, so any thread may do it."""
    if record.key[:2] != _KEY_VERSION:
        return None
    transactional_id = decode(TransactionLogKey, 0, record.key[2:]).transactional_id
    if record.value is None:
        return transactional_id, None
    if len(record.value) < 2:
        raise ProtocolError("a value without a version")
    version = int.from_bytes(record.value[:2], "big", signed=True)
    if version not in TransactionLogValue.versions:
        raise ProtocolError(f"a value of version {version}")
    value = decode(TransactionLogValue, version, record.value[2:])
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise ProtocolError(f"a transaction in state {value.transaction_status}") from None
    return transactional_id, TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        frozenset(
            TopicPartition(topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.client_transaction_version,
        value.previous_producer_id,
        value.next_producer_id,
    )
