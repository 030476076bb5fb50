"""Real answers with something wrong in them: those of Fetch and Metadata, which cannot be built from nothing.

An answer to Fetch belongs to a session, and one to Metadata must still list the brokers. Changes are made to copies,
because handlers may keep parts of their answers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from barnabas.broker.testing.faults.error_answers import Hits, copied
from barnabas.broker.testing.subjects import TopicName, topic_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition
from barnabas.protocol.records.batch import BATCH_LENGTH_POSITION, HEADER_SIZE, LENGTH_OVERHEAD
from barnabas.protocol.schema import Records
from barnabas.storage.segment import FileSlice

# Errors of partitions that have no leader.
_LEADERLESS: Final = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.LISTENER_NOT_FOUND)


def partitions_with_error(
    answer: FetchResponse, wanted: Iterable[tuple[str, bytes, int]], error: ErrorCode
) -> FetchResponse:
    """An answer in which these partitions (topic, topic id, index) have an error, including those without news."""
    left = set(wanted)
    changed = copied(answer)
    changed.responses = []
    for topic in answer.responses:
        new_topic = copied(topic)
        new_topic.partitions = []
        for partition in topic.partitions:
            key = (topic.topic, topic.topic_id, partition.partition_index)
            at_fault = key in left
            left.discard(key)
            new_topic.partitions.append(_at_fault(partition.partition_index, error) if at_fault else partition)
        changed.responses.append(new_topic)
    for name, topic_id, index in sorted(left):
        known = next((t for t in changed.responses if (t.topic, t.topic_id) == (name, topic_id)), None)
        if known is None:
            known = FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[])
            changed.responses.append(known)
        known.partitions.append(_at_fault(index, error))
    return changed


def _at_fault(index: int, error: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=error, high_watermark=-1, aborted_transactions=None, records=b""
    )


def corrupted(answer: FetchResponse, hits: Hits, name_of: TopicName) -> FetchResponse | None:
    """An answer in which a bit of the first batch of these partitions is wrong; None if none of them has records."""
    changed = copied(answer)
    changed.responses = []
    found = False
    for topic in answer.responses:
        name = topic_of(topic, name_of)
        new_topic = copied(topic)
        new_topic.partitions = []
        for partition in topic.partitions:
            if hits(name, partition.partition_index):
                data = _bytes_of(partition.records)
                if len(data) > HEADER_SIZE:
                    found = True
                    partition = copied(partition)
                    partition.records = with_a_wrong_bit(data)
            new_topic.partitions.append(partition)
        changed.responses.append(new_topic)
    return changed if found else None


def with_a_wrong_bit(data: bytes) -> bytes:
    """Batches whose first has a flipped bit in the middle of its records, so that its checksum is wrong."""
    changed = bytearray(data)
    length = int.from_bytes(changed[BATCH_LENGTH_POSITION:LENGTH_OVERHEAD], "big")
    end = min(LENGTH_OVERHEAD + length, len(changed))
    changed[(HEADER_SIZE + end) // 2] ^= 0x01
    return bytes(changed)


def _bytes_of(records: Records | None) -> bytes:
    if records is None:
        return b""
    if isinstance(records, FileSlice):
        return os.pread(records.handle.fileno(), records.size, records.position)
    return bytes(records)  # type: ignore[arg-type]


def metadata_with_error(
    answer: MetadataResponse, hits: Hits, error: ErrorCode, *, of_partitions: bool
) -> MetadataResponse:
    """An answer in which these topics have an error and so no partitions, or some of their partitions have it."""
    changed = copied(answer)
    changed.topics = []
    for topic in answer.topics:
        if hits(topic.name, None):
            topic = copied(topic)
            if of_partitions:
                topic.partitions = [
                    _without_leader(p, error) if hits(topic.name, p.partition_index) else p for p in topic.partitions
                ]
            else:
                topic.error_code = error
                topic.partitions = []
        changed.topics.append(topic)
    return changed


def _without_leader(partition: MetadataResponsePartition, error: ErrorCode) -> MetadataResponsePartition:
    partition = copied(partition)
    partition.error_code = error
    if error in _LEADERLESS:
        partition.leader_id = -1
    return partition
