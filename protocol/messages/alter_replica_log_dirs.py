"""AlterReplicaLogDirs: move replicas between the log directories of one broker."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, Struct, field


class AlterReplicaLogDirsRequest(Message, versions="1-2", flexible="2+"):
    dirs: list[AlterReplicaLogDir] = field("0+")


class AlterReplicaLogDir(Struct):
    path: String = field("0+")
    topics: list[AlterReplicaLogDirTopic] = field("0+")


class AlterReplicaLogDirTopic(Struct):
    name: String = field("0+")
    partitions: list[Int32] = field("0+")


class AlterReplicaLogDirsResponse(Message, versions="1-2", flexible="2+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    results: list[AlterReplicaLogDirTopicResult] = field("0+")


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: String = field("0+")
    partitions: list[AlterReplicaLogDirPartitionResult] = field("0+")


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
