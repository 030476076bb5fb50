"""The records of __consumer_offsets: each key and value begins with a number that says what it is.

Keys: 1 is an offset (of a group, topic and partition), 2 a group. Values: the version of their format; the ones that
are written here are those of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.group import Group
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.schema import ZERO_UUID

_OFFSET_KEY: Final = b"\0\1"
_LEGACY_OFFSET_KEY: Final = b"\0\0"
_GROUP_KEY: Final = b"\0\2"
_OFFSET_VALUE_VERSION: Final = 4
_OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1
_GROUP_VALUE_VERSION: Final = 3


class CommittedOffset(NamedTuple):
    """How far a group has read a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = -1  # set by clients before version 5 of OffsetCommit
    topic_id: bytes = ZERO_UUID


def offset_record(group: str, topic: str, partition: int, committed: CommittedOffset | None) -> CoordinatorRecord:
    """Without an offset, a tombstone."""
    key = _OFFSET_KEY + encode(OffsetCommitKey(group=group, topic=topic, partition=partition), 0)
    if committed is None:
        return CoordinatorRecord(key, None)
    expires = committed.expire_timestamp != -1
    version = _OFFSET_VALUE_VERSION_WITH_EXPIRY if expires else _OFFSET_VALUE_VERSION
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp,
        expire_timestamp=committed.expire_timestamp,
        topic_id=committed.topic_id,
    )
    return CoordinatorRecord(key, version.to_bytes(2, "big") + encode(value, version))


def group_metadata_record(group: Group, now_ms: int, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader_id,
        current_state_timestamp=now_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    version = _GROUP_VALUE_VERSION
    return CoordinatorRecord(group_key(group.group_id), version.to_bytes(2, "big") + encode(value, version))


def group_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(group_key(group_id), None)


def group_key(group_id: str) -> bytes:
    return _GROUP_KEY + encode(GroupMetadataKey(group=group_id), 0)


def read_key(key: bytes) -> OffsetCommitKey | GroupMetadataKey | None:
    """The decoded key; None for an unknown kind, which is skipped."""
    kind = key[:2]
    if kind in (_OFFSET_KEY, _LEGACY_OFFSET_KEY):
        return decode(OffsetCommitKey, 0, key[2:])
    if kind == _GROUP_KEY:
        return decode(GroupMetadataKey, 0, key[2:])
    return None


def read_offset(value: bytes) -> CommittedOffset:
    found = decode(OffsetCommitValue, _version(value), value[2:])
    return CommittedOffset(
        found.offset,
        found.leader_epoch,
        found.metadata,
        found.commit_timestamp,
        found.expire_timestamp,
        found.topic_id,
    )


def read_group(value: bytes) -> GroupMetadataValue:
    return decode(GroupMetadataValue, _version(value), value[2:])


def _version(value: bytes) -> int:
    if len(value) < 2:
        raise ProtocolError("a value without a version")
    return int.from_bytes(value[:2], "big", signed=True)
