"""The records of __consumer_offsets: each key and value begins with a number that says what it is.

A key's number is the kind of record: 1 is an offset (of a group, topic and partition), 2 a classic group, 3 to 8 and 16
belong to groups of the consumer protocol, 10 to 15 to share groups, 17 and 19 to 23 to streams groups. A value's number
is the version of its format; the ones that are written here are those of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeVar

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.protocol import consumer_group_records as consumer
from barnabas.protocol import share_group_records as share
from barnabas.protocol import streams_group_records as streams
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.schema import ZERO_UUID, Message

M = TypeVar("M", bound=Message)

# A record, read: what it is about (a key), and what it says (a value or a CommittedOffset; None is a tombstone).
ReadRecord = tuple[Any, Any]

_OFFSET_KEY: Final = b"\0\1"
_OFFSET_VALUE_VERSION: Final = 4
_OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1

_KINDS: Final[dict[bytes, tuple[type[Message], type[Message]]]] = {
    b"\0\0": (OffsetCommitKey, OffsetCommitValue),
    _OFFSET_KEY: (OffsetCommitKey, OffsetCommitValue),
    b"\0\2": (GroupMetadataKey, GroupMetadataValue),
    b"\0\3": (consumer.ConsumerGroupMetadataKey, consumer.ConsumerGroupMetadataValue),
    b"\0\4": (consumer.ConsumerGroupPartitionMetadataKey, consumer.ConsumerGroupPartitionMetadataValue),
    b"\0\5": (consumer.ConsumerGroupMemberMetadataKey, consumer.ConsumerGroupMemberMetadataValue),
    b"\0\6": (consumer.ConsumerGroupTargetAssignmentMetadataKey, consumer.ConsumerGroupTargetAssignmentMetadataValue),
    b"\0\7": (consumer.ConsumerGroupTargetAssignmentMemberKey, consumer.ConsumerGroupTargetAssignmentMemberValue),
    b"\0\10": (consumer.ConsumerGroupCurrentMemberAssignmentKey, consumer.ConsumerGroupCurrentMemberAssignmentValue),
    b"\0\12": (share.ShareGroupMemberMetadataKey, share.ShareGroupMemberMetadataValue),
    b"\0\13": (share.ShareGroupMetadataKey, share.ShareGroupMetadataValue),
    b"\0\14": (share.ShareGroupTargetAssignmentMetadataKey, share.ShareGroupTargetAssignmentMetadataValue),
    b"\0\15": (share.ShareGroupTargetAssignmentMemberKey, share.ShareGroupTargetAssignmentMemberValue),
    b"\0\16": (share.ShareGroupCurrentMemberAssignmentKey, share.ShareGroupCurrentMemberAssignmentValue),
    b"\0\17": (share.ShareGroupStatePartitionMetadataKey, share.ShareGroupStatePartitionMetadataValue),
    b"\0\20": (consumer.ConsumerGroupRegularExpressionKey, consumer.ConsumerGroupRegularExpressionValue),
    b"\0\21": (streams.StreamsGroupMetadataKey, streams.StreamsGroupMetadataValue),
    b"\0\23": (streams.StreamsGroupMemberMetadataKey, streams.StreamsGroupMemberMetadataValue),
    b"\0\24": (streams.StreamsGroupTargetAssignmentMetadataKey, streams.StreamsGroupTargetAssignmentMetadataValue),
    b"\0\25": (streams.StreamsGroupTargetAssignmentMemberKey, streams.StreamsGroupTargetAssignmentMemberValue),
    b"\0\26": (streams.StreamsGroupCurrentMemberAssignmentKey, streams.StreamsGroupCurrentMemberAssignmentValue),
    b"\0\27": (streams.StreamsGroupTopologyKey, streams.StreamsGroupTopologyValue),
}
_NUMBERS: Final = {key_type: number for number, (key_type, _) in _KINDS.items()}


class CommittedOffset(NamedTuple):
    """How far a group has read a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = -1  # set by clients before version 5 of OffsetCommit
    topic_id: bytes = ZERO_UUID  # if it is known

    def is_of_another(self, topic_id: bytes) -> bool:
        """Whether it was committed for another topic than this, which has or had the same name."""
        return topic_id != self.topic_id != ZERO_UUID


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


def read_record(record: CoordinatorRecord) -> ReadRecord | None:
    """Decode a record; None for an unknown kind, which is skipped. Touches no state, so any thread may do it."""
    found = _KINDS.get(record.key[:2])
    if found is None:
        return None
    key_type, value_type = found
    key = decode(key_type, 0, record.key[2:])
    if record.value is None:
        return key, None
    return key, read_offset(record.value) if value_type is OffsetCommitValue else read_value(value_type, record.value)


def read_value(kind: type[M], value: bytes) -> M:
    return decode(kind, _version(value), value[2:])


def record_of(key: Message, value: Message | None, version: int = 0) -> CoordinatorRecord:
    """A record with a key of one of the kinds below. Without a value, a tombstone."""
    encoded = _NUMBERS[type(key)] + encode(key, 0)
    if value is None:
        return CoordinatorRecord(encoded, None, (key, None))
    return CoordinatorRecord(encoded, version.to_bytes(2, "big") + encode(value, version), (key, value))


def read_offset(value: bytes) -> CommittedOffset:
    found = read_value(OffsetCommitValue, value)
    return CommittedOffset(
        found.offset,
        found.leader_epoch,
        found.metadata,
        found.commit_timestamp,
        found.expire_timestamp,
        found.topic_id,
    )


def _version(value: bytes) -> int:
    if len(value) < 2:
        raise ProtocolError("a value without a version")
    return int.from_bytes(value[:2], "big", signed=True)
