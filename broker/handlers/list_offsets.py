"""ListOffsets (key 2): offsets by timestamp, or the first and the last.

Version 2 knows isolation levels; 4 leader epochs; 7 asks for the record with the latest timestamp (-3), 8 for the
earliest local offset (-4), 9 for the last tiered one (-5), 11 for the earliest to be uploaded (-6). Nothing here is
tiered, so -4 is the log start offset, and -5 and -6 find nothing.

Only the leader answers. Right after its election it may not know yet how far the log is committed: until its high
watermark has reached the start of its epoch, clients get OFFSET_NOT_AVAILABLE rather than an offset that they have
already been past. Followers ask for the end of the log itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from barnabas.broker.errors import error_code_of
from barnabas.broker.replica.partition import Partition
from barnabas.broker.server.pieces import spread
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.records.errors import RecordsError
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.errors import StorageError
from barnabas.storage.inspection import ROOM_AT_ONCE, UNITS
from barnabas.storage.time_lookup import FoundOffset, Searches, search_by_timestamp, search_max_timestamp

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
# The first version for each of the newer special timestamps.
_SPECIAL_FROM_VERSION: Final = {_MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11}
_DEBUGGING_REPLICA: Final = -2  # may ask any replica
_NOT_AVAILABLE_FROM_VERSION: Final = 5
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1

# What an answer costs besides its search (storage.inspection says what a unit is).
_UNITS_PER_PARTITION: Final = 5
_NOTHING: Final = FoundOffset(-1, -1, -1)


async def handle(broker: Broker, request: Request, message: ListOffsetsRequest) -> ListOffsetsResponse:
    known = message.isolation_level in (_READ_UNCOMMITTED, _READ_COMMITTED)
    lookups = _Lookups(broker, request.version, message.isolation_level == _READ_COMMITTED, message.replica_id)
    access = request.access
    twice = await _named_twice(message)
    refused = set(twice) if known else set()
    topics = []
    async for topic in spread(message.topics):
        if not access.topic(AclOperation.DESCRIBE, topic.name):
            topics.append(await _not_authorized(topic))
            continue
        of_topic = twice.get(topic.name, ()) if known else ()
        partitions = []
        if topic.name in refused:  # a topic may be named twice as well
            refused.discard(topic.name)
            partitions = [_error(index, ErrorCode.INVALID_REQUEST) for index in of_topic]
        async for wanted in spread(topic.partitions):
            if not known:  # no offsets for an unknown isolation level
                partitions.append(_error(wanted.partition_index, ErrorCode.UNKNOWN_SERVER_ERROR))
            elif wanted.partition_index not in of_topic:
                partitions.append(await lookups.answer(topic.name, wanted))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


async def _not_authorized(topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    partitions = [_error(wanted.partition_index, error) async for wanted in spread(topic.partitions)]
    return ListOffsetsTopicResponse(name=topic.name, partitions=partitions)


async def _named_twice(message: ListOffsetsRequest) -> dict[str, set[int]]:
    """The partitions that occur more than once, by topic. They are refused."""
    seen: set[TopicPartition] = set()
    twice: dict[str, set[int]] = {}
    async for topic in spread(message.topics):
        async for wanted in spread(topic.partitions):
            name = TopicPartition(topic.name, wanted.partition_index)
            if name in seen:
                twice.setdefault(topic.name, set()).add(wanted.partition_index)
            seen.add(name)
    return twice


class _Lookups:
    """The partitions of one request. It lets the loop run now and then."""

    def __init__(self, broker: Broker, version: int, committed: bool, replica_id: int) -> None:
        self._broker = broker
        self._version = version
        self._committed = committed
        self._replica_id = replica_id
        self._units = UNITS

    async def answer(self, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        await self._spend(_UNITS_PER_PARTITION)
        index = wanted.partition_index
        partition = self._broker.replicas.find(topic, index)
        if partition is None:
            return _error(index, self._broker.replicas.missing(topic, index))
        error = partition.check_leader_epoch(wanted.current_leader_epoch)
        if error:
            return _error(index, error)
        if partition.leadership is None and self._replica_id != _DEBUGGING_REPLICA:
            return _error(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        from_version = _SPECIAL_FROM_VERSION.get(wanted.timestamp, 0)
        if wanted.timestamp < _EARLIEST_PENDING_UPLOAD or self._version < from_version:
            return _error(index, ErrorCode.UNSUPPORTED_VERSION)
        try:
            found = await self._find(partition, wanted.timestamp)
        except (StorageError, RecordsError, OSError) as failure:
            return _error(index, error_code_of(failure))
        if found is None:
            known = self._version >= _NOT_AVAILABLE_FROM_VERSION
            return _error(index, ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE)
        return ListOffsetsPartitionResponse(
            partition_index=index, timestamp=found.timestamp, offset=found.offset, leader_epoch=found.leader_epoch
        )

    async def _find(self, partition: Partition, timestamp: int) -> FoundOffset | None:
        """None if the leader cannot say yet."""
        log = partition.log
        uncertain = False
        if self._replica_id >= 0:
            end = log.end_offset
        else:
            end = log.last_stable_offset if self._committed else log.high_watermark
            uncertain = partition.is_behind_its_epoch
        if timestamp == _LATEST:
            return None if uncertain else FoundOffset(end, -1, partition.leader_epoch)
        if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
            epoch = log.leader_epochs.epoch_of(log.log_start_offset)
            return FoundOffset(log.log_start_offset, -1, epoch)
        if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
            return _NOTHING
        by_time = search_max_timestamp(log) if timestamp == _MAX_TIMESTAMP else search_by_timestamp(log, timestamp)
        found = await self._searched(by_time)
        # A record that is not committed yet must not be revealed.
        if found is not None and found.offset < end:
            return found
        return None if uncertain else _NOTHING

    async def _searched(self, searches: Searches) -> FoundOffset | None:
        while True:
            try:
                search = next(searches)
            except StopIteration as end:
                found: FoundOffset | None = end.value
                return found
            if search is None:
                await self._spend(UNITS)
                continue
            self._units = search.advance(self._units, ROOM_AT_ONCE)
            if not search.finished:
                await self._broker.replicas.long_work.finish(search)
                self._units = UNITS

    async def _spend(self, units: int) -> None:
        self._units -= units
        if self._units <= 0:
            await asyncio.sleep(0)
            self._units = UNITS


def _error(index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error, timestamp=-1, offset=-1)
