"""AddPartitionsToTxn: add partitions to a transaction."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int16, Int32, Int64, Message, String, Struct, field


class AddPartitionsToTxnRequest(Message, versions="0-5", flexible="3+"):
    transactions: list[AddPartitionsToTxnTransaction] = field("4+", default=())
    v3_and_below_transactional_id: String = field("0-3", default="")
    v3_and_below_producer_id: Int64 = field("0-3", default=0)
    v3_and_below_producer_epoch: Int16 = field("0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field("0-3", default=())


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: String = field("4+")
    producer_id: Int64 = field("4+")
    producer_epoch: Int16 = field("4+")
    verify_only: Bool = field("4+", default=False)
    topics: list[AddPartitionsToTxnTopic] = field("4+")


class AddPartitionsToTxnTopic(Struct):
    name: String = field("0+")
    partitions: list[Int32] = field("0+")


class AddPartitionsToTxnResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("4+", default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = field("4+", default=())
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field("0-3", default=())


class AddPartitionsToTxnResult(Struct):
    transactional_id: String = field("4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = field("4+")


class AddPartitionsToTxnTopicResult(Struct):
    name: String = field("0+")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field("0+")


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: Int32 = field("0+")
    partition_error_code: Int16 = field("0+")
