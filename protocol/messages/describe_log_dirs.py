"""DescribeLogDirs: the log directories of a broker and the sizes of their partitions."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int16, Int32, Int64, Message, String, Struct, field


class DescribeLogDirsRequest(Message, versions="1-5", flexible="2+"):
    topics: list[DescribableLogDirTopic] | None = field("0+", nullable="0+")


class DescribableLogDirTopic(Struct):
    topic: String = field("0+")
    partitions: list[Int32] = field("0+")


class DescribeLogDirsResponse(Message, versions="1-5", flexible="2+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("3+", default=0)
    results: list[DescribeLogDirsResult] = field("0+")


class DescribeLogDirsResult(Struct):
    error_code: Int16 = field("0+", default=0)
    log_dir: String = field("0+")
    topics: list[DescribeLogDirsTopic] = field("0+")
    total_bytes: Int64 = field("4+", default=-1)
    usable_bytes: Int64 = field("4+", default=-1)
    is_cordoned: Bool = field("5+", default=False)


class DescribeLogDirsTopic(Struct):
    name: String = field("0+")
    partitions: list[DescribeLogDirsPartition] = field("0+")


class DescribeLogDirsPartition(Struct):
    partition_index: Int32 = field("0+")
    partition_size: Int64 = field("0+")
    offset_lag: Int64 = field("0+")
    is_future_key: Bool = field("0+")
