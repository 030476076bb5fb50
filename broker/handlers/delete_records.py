"""DeleteRecords (key 21): give up the records of partitions below an offset; -1 stands for the high watermark.

When the answer goes out, the new log start offsets are on disk: no restart brings the records back. There is one
replica of each partition, so that nothing is left to wait for, and the timeout does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from broker.controller.topic_names import is_internal
from broker.errors import error_code_of
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from storage.errors import OffsetOutOfRange, StorageError

if TYPE_CHECKING:
    from broker.broker import Broker

logger = structlog.get_logger()

_HIGH_WATERMARK: Final = -1
_NO_LOW_WATERMARK: Final = -1


async def handle(broker: Broker, request: Request, message: DeleteRecordsRequest) -> DeleteRecordsResponse:
    # Of a partition that is named twice, the last word counts.
    wanted = {(topic.name, p.partition_index): p.offset for topic in message.topics for p in topic.partitions}
    topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for (topic, index), offset in wanted.items():
        topics.setdefault(topic, []).append(_delete(broker, topic, index, offset))
    deleted = [result for results in topics.values() for result in results if not result.error_code]
    if deleted:
        try:
            await broker.replicas.worker.call(broker.replicas.directory.start_checkpoint().write)
        except OSError as error:
            logger.error("log start offsets could not be written down", error=str(error))
            for result in deleted:
                result.error_code, result.low_watermark = ErrorCode.KAFKA_STORAGE_ERROR, _NO_LOW_WATERMARK
    return DeleteRecordsResponse(
        topics=[DeleteRecordsTopicResult(name=name, partitions=partitions) for name, partitions in topics.items()]
    )


def _delete(broker: Broker, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    partition = broker.replicas.find(topic, index)
    if partition is None:
        return _error(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if is_internal(topic):
        return _error(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    log = partition.log
    if not log.config.delete:
        return _error(index, ErrorCode.POLICY_VIOLATION)
    try:
        if offset < _HIGH_WATERMARK:
            raise OffsetOutOfRange(f"{log.topic_partition}: offset {offset}")
        log.increment_log_start_offset(log.high_watermark if offset == _HIGH_WATERMARK else offset)
    except (StorageError, OSError) as error:
        return _error(index, error_code_of(error))
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=log.log_start_offset)


def _error(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=error)
