"""DescribeLogDirs (key 35): the data directory, and how much each partition takes of it.

Version 1 is the first that is served; 3 adds an error for the whole answer, 4 the size of the disk, 5 whether the
directory accepts new partitions. Unknown partitions are left out. Replicas here are never behind and never move to
another directory.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.replica.partition import Partition
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: DescribeLogDirsRequest) -> Steps[DescribeLogDirsResponse]:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in list(broker.replicas) if message.topics is None else (yield from _named(broker, message.topics)):
        yield
        topics.setdefault(partition.topic, []).append(
            DescribeLogDirsPartition(
                partition_index=partition.index, partition_size=partition.log.size, offset_lag=0, is_future_key=False
            )
        )
    result = DescribeLogDirsResult(
        log_dir=broker.replicas.directory.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )
    try:
        disk = os.statvfs(result.log_dir)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    else:
        result.total_bytes = disk.f_blocks * disk.f_frsize
        result.usable_bytes = disk.f_bavail * disk.f_frsize
    return DescribeLogDirsResponse(results=[result])


def _named(broker: Broker, topics: Sequence[DescribableLogDirTopic]) -> Steps[Collection[Partition]]:
    """The partitions that exist here, each once."""
    found: dict[Partition, None] = {}
    for topic in topics:
        for index in topic.partitions:
            partition = broker.replicas.find(topic.topic, index)
            if partition is not None:
                found[partition] = None
            yield
        yield
    return found
