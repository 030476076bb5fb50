"""ListOffsets (key 2): offsets by timestamp, or the first and the last.

Version 2 knows isolation levels; 4 leader epochs; 7 asks for the record with the latest timestamp (-3), 8 for the
earliest local offset (-4), 9 for the last tiered one (-5), 11 for the earliest to be uploaded (-6). Nothing here is
tiered, so -4 is the log start offset, and -5 and -6 find nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.errors import error_code_of
from broker.replica.partition import Partition
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.records.errors import RecordsError
from storage.errors import StorageError
from storage.time_lookup import FoundOffset

if TYPE_CHECKING:
    from broker.broker import Broker

_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
# The version from which each of the newer questions may be asked.
_SINCE: Final = {_MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11}
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1

_NOTHING: Final = FoundOffset(-1, -1, -1)


def handle(broker: Broker, request: Request, message: ListOffsetsRequest) -> ListOffsetsResponse:
    if message.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return _refusal(message)
    committed = message.isolation_level == _READ_COMMITTED
    twice = _named_twice(message)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    *(_error(index, ErrorCode.INVALID_REQUEST) for name, index in twice if name == topic.name),
                    *(
                        _answer(broker, request.version, topic.name, wanted, committed)
                        for wanted in topic.partitions
                        if (topic.name, wanted.partition_index) not in twice
                    ),
                ],
            )
            for topic in message.topics
        ]
    )


def _refusal(message: ListOffsetsRequest) -> ListOffsetsResponse:
    """No offsets are told for an isolation level that nobody knows."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_error(wanted.partition_index, error) for wanted in topic.partitions]
            )
            for topic in message.topics
        ]
    )


def _named_twice(message: ListOffsetsRequest) -> set[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for topic in message.topics:
        for wanted in topic.partitions:
            name = (topic.name, wanted.partition_index)
            (twice if name in seen else seen).add(name)
    return twice


def _answer(
    broker: Broker, version: int, topic: str, wanted: ListOffsetsPartition, committed: bool
) -> ListOffsetsPartitionResponse:
    index = wanted.partition_index
    partition = broker.replicas.find(topic, index)
    if partition is None:
        return _error(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = partition.check_leader_epoch(wanted.current_leader_epoch)
    if error:
        return _error(index, error)
    if wanted.timestamp < _EARLIEST_PENDING_UPLOAD or version < _SINCE.get(wanted.timestamp, 0):
        return _error(index, ErrorCode.UNSUPPORTED_VERSION)
    try:
        found = _find(partition, wanted.timestamp, committed)
    except (StorageError, RecordsError, OSError) as failure:
        return _error(index, error_code_of(failure))
    return ListOffsetsPartitionResponse(
        partition_index=index, timestamp=found.timestamp, offset=found.offset, leader_epoch=found.leader_epoch
    )


def _find(partition: Partition, timestamp: int, committed: bool) -> FoundOffset:
    log = partition.log
    end = log.last_stable_offset if committed else log.high_watermark
    if timestamp == _LATEST:
        return FoundOffset(end, -1, partition.leader_epoch)
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        epoch = log.leader_epochs.epoch_of(log.log_start_offset)
        return FoundOffset(log.log_start_offset, -1, epoch)
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _NOTHING
    found = log.find_max_timestamp() if timestamp == _MAX_TIMESTAMP else log.find_by_timestamp(timestamp)
    # A record that is there but not committed yet is not to be told.
    return found if found is not None and found.offset < end else _NOTHING


def _error(index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error, timestamp=-1, offset=-1)
