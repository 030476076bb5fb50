"""DeleteTopics: delete topics, by name or by id."""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Int16, Int32, Message, String, Struct, Uuid, field


class DeleteTopicsRequest(Message, versions="1-6", flexible="4+"):
    topics: list[DeleteTopicState] = field("6+", default=())
    topic_names: list[String] = field("0-5", default=())
    timeout_ms: Int32 = field("0+")


class DeleteTopicState(Struct):
    name: String | None = field("6+", nullable="6+", default=None)
    topic_id: Uuid = field("6+")


class DeleteTopicsResponse(Message, versions="1-6", flexible="4+"):
    throttle_time_ms: Int32 = field("1+", default=0)
    responses: list[DeletableTopicResult] = field("0+")


class DeletableTopicResult(Struct):
    name: String | None = field("0+", nullable="6+")
    topic_id: Uuid = field("6+", default=ZERO_UUID)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("5+", nullable="5+", default=None)
