"""DeleteRecords (key 21): delete the records of partitions below an offset; -1 stands for the high watermark.

When the answer goes out, the new log start offsets are on disk: no restart brings the records back. It waits, at most
as long as the request says, until all live followers have deleted the records too.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from barnabas.broker.controller.topic_names import is_internal
from barnabas.broker.errors import error_code_of
from barnabas.broker.replica.commit_waits import CommitWait
from barnabas.broker.replica.partition import Partition
from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.pieces import Steps, spread
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.errors import LogFailure, OffsetOutOfRange, StorageError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = structlog.get_logger()

_HIGH_WATERMARK: Final = -1
_NO_LOW_WATERMARK: Final = -1


async def handle(broker: Broker, request: Request, message: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return await delete_records(broker, request.access, message)


async def delete_records(broker: Broker, access: Access, message: DeleteRecordsRequest) -> DeleteRecordsResponse:
    topics = await broker.pieces.result(_delete_all(broker, access, message))
    deleted = []
    async for results in spread(topics.values()):
        deleted += [each for each in results if not each.result.error_code]
    if deleted:
        try:
            await broker.replicas.worker.call(broker.replicas.directory.start_checkpoint().write)
        except OSError as error:
            logger.error("log start offsets could not be written", error=str(error))
            for each in deleted:
                each.fail(ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            await _wait_for_followers(broker, deleted, message.timeout_ms)
    answers = []
    async for name, partitions in spread(topics.items()):
        answers.append(DeleteRecordsTopicResult(name=name, partitions=[each.result for each in partitions]))
    return DeleteRecordsResponse(topics=answers)


class _Deletion:
    """The deletion in one partition."""

    def __init__(self, partition: Partition | None, offset: int, result: DeleteRecordsPartitionResult) -> None:
        self.partition = partition
        self.offset = offset
        self.result = result

    def fail(self, error: ErrorCode) -> None:
        self.result.error_code, self.result.low_watermark = error, _NO_LOW_WATERMARK


async def _wait_for_followers(broker: Broker, deletions: list[_Deletion], timeout_ms: int) -> None:
    left: dict[_Deletion, CommitWait] = {}
    over: asyncio.Future[None] | None = None  # set when all have started

    def end() -> None:
        if over is not None and not over.done():
            over.set_result(None)

    def done(deletion: _Deletion, failure: LogFailure | None) -> None:
        left.pop(deletion, None)
        if failure is not None:
            deletion.fail(error_code_of(failure))
        if not left:
            end()

    async for deletion in spread(deletions):
        if deletion.partition is not None:
            wait = deletion.partition.when_deleted(deletion.offset, partial(done, deletion))
            if wait is not None:
                left[deletion] = wait
    if left:
        over = asyncio.get_running_loop().create_future()
        timer = broker.clock.call_later(max(timeout_ms, 0) / 1000, end)
        try:
            await over
        finally:
            timer.cancel()
            for wait in left.values():
                wait.cancel()
    for deletion in deletions:
        if deletion.partition is not None and not deletion.result.error_code:
            deletion.result.low_watermark = deletion.partition.low_watermark()
    for deletion in left:
        deletion.result.error_code = ErrorCode.REQUEST_TIMED_OUT


def _delete_all(broker: Broker, access: Access, message: DeleteRecordsRequest) -> Steps[dict[str, list[_Deletion]]]:
    wanted: dict[TopicPartition, int] = {}
    for topic in message.topics:
        for partition in topic.partitions:
            # If a partition is named twice, the last entry counts.
            wanted[TopicPartition(topic.name, partition.partition_index)] = partition.offset
            yield
    topics: dict[str, list[_Deletion]] = {}
    for (name, index), offset in wanted.items():
        deletion = (
            _delete(broker, name, index, offset)
            if access.topic(AclOperation.DELETE, name)
            else _refused(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        )
        topics.setdefault(name, []).append(deletion)
        yield
    return topics


def _delete(broker: Broker, topic: str, index: int, offset: int) -> _Deletion:
    partition = broker.replicas.find(topic, index)
    if partition is None:
        return _refused(index, broker.replicas.missing(topic, index))
    if is_internal(topic):
        return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if partition.leadership is None:
        return _refused(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    log = partition.log
    if not log.config.delete:
        return _refused(index, ErrorCode.POLICY_VIOLATION)
    try:
        if offset < _HIGH_WATERMARK:
            raise OffsetOutOfRange(f"{log.topic_partition}: offset {offset}")
        offset = log.high_watermark if offset == _HIGH_WATERMARK else offset
        log.increment_log_start_offset(offset)
    except (StorageError, OSError) as error:
        return _refused(index, error_code_of(error))
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=log.log_start_offset)
    return _Deletion(partition, offset, result)


def _refused(index: int, error: ErrorCode) -> _Deletion:
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=error)
    return _Deletion(None, _NO_LOW_WATERMARK, result)
