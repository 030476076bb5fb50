"""DescribeLogDirs (key 35): the data directory, and how much each partition takes of it.

Version 1 is the first that is served; 3 adds an error for the whole answer, 4 how large the disk is, 5 whether the
directory takes new partitions. Partitions that are not there are left out. No replica is ever behind here, nor on its
way to another directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker.replica.partition import Partition
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in _asked_for(broker, message):
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


def _asked_for(broker: Broker, message: DescribeLogDirsRequest) -> Iterator[Partition]:
    if message.topics is None:
        yield from broker.replicas
        return
    asked = [(topic.topic, index) for topic in message.topics for index in topic.partitions]
    for name, index in dict.fromkeys(asked):
        partition = broker.replicas.find(name, index)
        if partition is not None:
            yield partition
