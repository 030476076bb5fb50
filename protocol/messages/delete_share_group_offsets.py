"""DeleteShareGroupOffsets: delete a share group's offsets for topics."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, Struct, Uuid, field


class DeleteShareGroupOffsetsRequest(Message, versions="0", flexible="0+"):
    group_id: String = field("0+")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field("0+")


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: String = field("0+")


class DeleteShareGroupOffsetsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field("0+")


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: String = field("0+")
    topic_id: Uuid = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
