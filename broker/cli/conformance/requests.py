"""Requests that checks send, in one line each."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from protocol.messages.alter_configs import AlterableConfig as LegacyConfig
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.alter_configs import AlterConfigsResource as LegacyResource
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.records.batch import BatchHeader, read_header, seal
from protocol.records.builder import NewRecord, build_batch
from protocol.records.record import read_records
from protocol.schema import ZERO_UUID

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3

UNKNOWN_ID: Final = bytes(range(16))
TIMEOUT_MS: Final = 20_000

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

# A topic goes by its name (a str) or by its id (bytes).
Reference = str | bytes

# --- records ---


def batch(*values: bytes, timestamp: int | None = None, key: bytes | None = b"key", **fields: Any) -> bytes:
    """A batch as a producer sends it, one record for each value, of this moment if no other is told: a broker may
    delete what is old."""
    when = int(time.time() * 1000) if timestamp is None else timestamp
    return bytes(build_batch([NewRecord(when, key, value) for value in values or (b"value",)], **fields))


def patched(data: bytes, position: int, layout: str, value: int, *, sealed: bool = True) -> bytes:
    """A batch with another value in its header; its checksum fits, unless it is not to be `sealed`."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, position, value)
    if sealed:
        seal(memoryview(changed))
    return bytes(changed)


def batches(records: Any) -> list[tuple[BatchHeader, memoryview]]:
    """The whole batches of what was fetched, with their headers. The last may be cut, and then it is left out."""
    data = memoryview(records or b"")
    found = []
    position = 0
    while position + 61 <= len(data):
        header = read_header(data, position)
        if position + header.size > len(data):
            break
        found.append((header, data[position : position + header.size]))
        position += header.size
    return found


def values(records: Any) -> list[bytes | None]:
    """The values of all records but those of control batches."""
    return [
        None if record.value is None else bytes(record.value)
        for header, data in batches(records)
        if not header.is_control
        for record in read_records(data, header)
    ]


def _by_topic(parts: Iterable[Any]) -> Iterator[tuple[Any, Iterator[Any]]]:
    return groupby(parts, key=lambda part: part[0])


def named(field: str, topic: Reference) -> dict[str, Any]:
    """The field of a request that names a topic."""
    return {field: topic} if isinstance(topic, str) else {"topic_id": topic or ZERO_UUID}


def produce(
    *parts: tuple[Reference, int, bytes | None], acks: int = -1, timeout_ms: int = TIMEOUT_MS, **fields: Any
) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(
                **named("name", topic),
                partition_data=[PartitionProduceData(index=index, records=data) for _, index, data in group],
            )
            for topic, group in _by_topic(parts)
        ],
        **fields,
    )


def fetch(
    *parts: tuple[Reference, int, int],
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    partition_max_bytes: int = 1 << 20,
    of_each: Mapping[str, Any] | None = None,
    **fields: Any,
) -> FetchRequest:
    """Fetch from (topic, partition, offset); `of_each` has further fields for each of them."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[
            FetchTopic(
                **named("topic", topic),
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        **(of_each or {}),
                    )
                    for _, index, offset in group
                ],
            )
            for topic, group in _by_topic(parts)
        ],
        **fields,
    )


def list_offsets(*parts: tuple[str, int, int], current_leader_epoch: int = -1, **fields: Any) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index, timestamp=timestamp, current_leader_epoch=current_leader_epoch
                    )
                    for _, index, timestamp in group
                ],
            )
            for topic, group in _by_topic(parts)
        ],
        timeout_ms=TIMEOUT_MS,
        **fields,
    )


def epoch_end(topic: str, partition: int, leader_epoch: int, current_leader_epoch: int = -1) -> Any:
    asked = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current_leader_epoch, leader_epoch=leader_epoch
    )
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])


def delete_records(topic: str, partition: int, offset: int) -> DeleteRecordsRequest:
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=TIMEOUT_MS)


# --- topics and settings ---


def new_topic(
    name: str,
    partitions: int = 1,
    replication_factor: int = -1,
    *,
    assignments: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> CreatableTopic:
    """With assignments (a partition and its replicas), the two numbers are to be -1."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assignments
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )


def create(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=TIMEOUT_MS, validate_only=validate_only)


def delete_topics(*topics: Reference) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=[
            DeleteTopicState(name=topic, topic_id=ZERO_UUID)
            if isinstance(topic, str)
            else DeleteTopicState(name=None, topic_id=topic)
            for topic in topics
        ],
        topic_names=[topic for topic in topics if isinstance(topic, str)],
        timeout_ms=TIMEOUT_MS,
    )


def grow(topic: str, count: int, *, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=count, assignments=None)],
        timeout_ms=TIMEOUT_MS,
        validate_only=validate_only,
    )


def describe_configs(
    name: str, keys: Sequence[str] | None = None, *, resource_type: int = TOPIC, synonyms: bool = False
) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=None if keys is None else list(keys)
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)


def alter_configs(
    name: str, *operations: tuple[int, str, str | None], resource_type: int = TOPIC, validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    """Operations are (SET, "retention.ms", "1000")."""
    configs = [AlterableConfig(name=key, config_operation=kind, value=value) for kind, key, value in operations]
    resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)


def replace_configs(name: str, *configs: tuple[str, str | None], validate_only: bool = False) -> AlterConfigsRequest:
    given = [LegacyConfig(name=key, value=value) for key, value in configs]
    resource = LegacyResource(resource_type=TOPIC, resource_name=name, configs=given)
    return AlterConfigsRequest(resources=[resource], validate_only=validate_only)


# --- groups ---


def subscription(*topics: str) -> bytes:
    """What a consumer joins with: version, topics, no data of its own."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


RANGE: Final = (("range", subscription("t")),)


def find_coordinator(version: int, *keys: str, key_type: int = 0) -> FindCoordinatorRequest:
    if version >= 4:
        return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
    (key,) = keys
    return FindCoordinatorRequest(key_type=key_type, key=key)


def join(
    group: str, member: str = "", *, protocols: Sequence[tuple[str, bytes]] = RANGE, **fields: Any
) -> JoinGroupRequest:
    return JoinGroupRequest(
        **{"session_timeout_ms": 30_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", **fields},
        group_id=group,
        member_id=member,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
    )


def sync(
    group: str, member: str, generation: int, assignments: Mapping[str, bytes] | None = None, **fields: Any
) -> SyncGroupRequest:
    given = [SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in (assignments or {}).items()]
    return SyncGroupRequest(
        **{"protocol_type": "consumer", "protocol_name": "range", **fields},
        group_id=group,
        member_id=member,
        generation_id=generation,
        assignments=given,
    )


def heartbeat(group: str, member: str, generation: int, **fields: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, member_id=member, generation_id=generation, **fields)


def leave(version: int, group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    """Members are (member id, instance id)."""
    if version < 3:
        ((member, _),) = members
        return LeaveGroupRequest(group_id=group, member_id=member)
    identities = [MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in members]
    return LeaveGroupRequest(group_id=group, members=identities)


def delete_groups(*groups: str) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=list(groups))


def commit(
    group: str,
    *offsets: tuple[Reference, int, int],
    member: str = "",
    generation: int = -1,
    metadata: str | None = "",
    leader_epoch: int = -1,
    **fields: Any,
) -> OffsetCommitRequest:
    """Commit (topic, partition, offset), one or several."""
    return OffsetCommitRequest(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=generation,
        topics=[
            OffsetCommitRequestTopic(
                **named("name", topic),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=leader_epoch,
                        committed_metadata=metadata,
                    )
                    for _, index, offset in parts
                ],
            )
            for topic, parts in _by_topic(offsets)
        ],
        **fields,
    )


def fetch_offsets(
    version: int, group: str, topics: Iterable[tuple[Reference, Sequence[int]]] | None, **fields: Any
) -> OffsetFetchRequest:
    """Ask for (topic, partitions) of a group; for None, for all that it has."""
    if version >= 8:
        asked = (
            None
            if topics is None
            else [OffsetFetchRequestTopics(**named("name", t), partition_indexes=list(p)) for t, p in topics]
        )
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=asked)], **fields)
    return OffsetFetchRequest(
        group_id=group,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopic(name=str(t), partition_indexes=list(p)) for t, p in topics],
        **fields,
    )


# --- producers ---


def init_producer_id(
    transactional_id: str | None, producer_id: int = -1, producer_epoch: int = -1, timeout_ms: int = 60_000
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
