"""The records of __share_group_state, to bytes and back: snapshots of a share partition's state, and updates of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.state_batches import StateBatch
from barnabas.protocol import share_records
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.share_records import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue

_SNAPSHOT: Final = b"\0\0"
_UPDATE: Final = b"\0\1"
_VERSION: Final = b"\0\0"


class Snapshot(NamedTuple):
    """All that is known of a share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int  # -1 until it is known where the group begins
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    batches: tuple[StateBatch, ...] = ()


class Update(NamedTuple):
    """What has changed since the last snapshot or update; -1 is no change."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...] = ()


# A record, read. Without a snapshot or an update, the share partition is forgotten.
ReadRecord = tuple[SharePartitionKey, Snapshot | Update | None]


def snapshot_record(key: SharePartitionKey, snapshot: Snapshot) -> CoordinatorRecord:
    value = ShareSnapshotValue(
        snapshot_epoch=snapshot.snapshot_epoch,
        state_epoch=snapshot.state_epoch,
        leader_epoch=snapshot.leader_epoch,
        start_offset=snapshot.start_offset,
        delivery_complete_count=snapshot.delivery_complete_count,
        create_timestamp=snapshot.create_timestamp,
        write_timestamp=snapshot.write_timestamp,
        state_batches=_to_records(snapshot.batches),
    )
    return CoordinatorRecord(_snapshot_key(key), _VERSION + encode(value, 0), (key, snapshot))


def update_record(key: SharePartitionKey, update: Update) -> CoordinatorRecord:
    value = ShareUpdateValue(
        snapshot_epoch=update.snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=_to_records(update.batches),
    )
    encoded = encode(ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), 0)
    return CoordinatorRecord(_UPDATE + encoded, _VERSION + encode(value, 0), (key, update))


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    return CoordinatorRecord(_snapshot_key(key), None, (key, None))


def _snapshot_key(key: SharePartitionKey) -> bytes:
    message = ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return _SNAPSHOT + encode(message, 0)


def _to_records(batches: Sequence[StateBatch]) -> list[share_records.StateBatch]:
    return [
        share_records.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in batches
    ]


def read_record(record: CoordinatorRecord) -> ReadRecord | None:
    """Read a record; None if it is of a kind that is not known here. Touches no state, so any thread may do it."""
    kind = record.key[:2]
    if kind == _SNAPSHOT:
        key = decode(ShareSnapshotKey, 0, record.key[2:])
        named = SharePartitionKey(key.group_id, key.topic_id, key.partition)
        if record.value is None:
            return named, None
        snapshot = decode(ShareSnapshotValue, 0, _value(record.value))
        return named, Snapshot(
            snapshot.snapshot_epoch,
            snapshot.state_epoch,
            snapshot.leader_epoch,
            snapshot.start_offset,
            snapshot.delivery_complete_count,
            snapshot.create_timestamp,
            snapshot.write_timestamp,
            _from_record(snapshot.state_batches),
        )
    if kind == _UPDATE and record.value is not None:
        update_key = decode(ShareUpdateKey, 0, record.key[2:])
        update = decode(ShareUpdateValue, 0, _value(record.value))
        return SharePartitionKey(update_key.group_id, update_key.topic_id, update_key.partition), Update(
            update.snapshot_epoch,
            update.leader_epoch,
            update.start_offset,
            update.delivery_complete_count,
            _from_record(update.state_batches),
        )
    return None


def _value(value: bytes) -> bytes:
    if value[:2] != _VERSION:
        raise ProtocolError(f"a value of version {value[:2].hex()}")
    return value[2:]


def _from_record(batches: Sequence[share_records.StateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in batches
    )
