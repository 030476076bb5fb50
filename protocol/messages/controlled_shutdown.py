"""ControlledShutdown: a broker asks the controller to move its leaders elsewhere before it stops."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Int64, Message, String, Struct, field


class ControlledShutdownRequest(Message, versions="1-3", flexible="3+"):
    broker_id: Int32 = field("1+")
    broker_epoch: Int64 = field("2+", default=-1)


class ControlledShutdownResponse(Message, versions="1-3", flexible="3+"):
    error_code: Int16 = field("1+", default=0)
    remaining_partitions: list[RemainingPartition] = field("1+", default=())


class RemainingPartition(Struct):
    topic_name: String = field("1+")
    partition_index: Int32 = field("1+")
