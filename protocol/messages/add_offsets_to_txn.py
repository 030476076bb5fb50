"""AddOffsetsToTxn: add the offsets of a consumer group to a transaction."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Int64, Message, String, field


class AddOffsetsToTxnRequest(Message, versions="0-4", flexible="3+"):
    transactional_id: String = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    group_id: String = field("0+")


class AddOffsetsToTxnResponse(Message, versions="0-4", flexible="3+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
