"""Requests of idempotent and transactional producers, and of their administrators."""

from __future__ import annotations

from typing import Any

from barnabas.client.requests.topics import by_topic
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

# A topic and one of its partitions.
Part = tuple[str, int]


def init_producer_id(
    transactional_id: str | None, producer_id: int = -1, producer_epoch: int = -1, timeout_ms: int = 60_000
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def add_partitions_to_txn(
    version: int, transactional_id: str, producer_id: int, producer_epoch: int, *parts: Part, verify_only: bool = False
) -> AddPartitionsToTxnRequest:
    added = transaction_to_add(transactional_id, producer_id, producer_epoch, *parts, verify_only=verify_only)
    if version >= 4:
        return AddPartitionsToTxnRequest(transactions=[added])
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=producer_epoch,
        v3_and_below_topics=added.topics,
    )


def transaction_to_add(
    transactional_id: str, producer_id: int, producer_epoch: int, *parts: Part, verify_only: bool = False
) -> AddPartitionsToTxnTransaction:
    """One of several transactions that a broker adds in one request."""
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        verify_only=verify_only,
        topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=[index for _, index in group])
            for topic, group in by_topic(parts)
        ],
    )


def add_offsets_to_txn(
    transactional_id: str, producer_id: int, producer_epoch: int, group: str
) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=producer_epoch, group_id=group
    )


def txn_offset_commit(
    transactional_id: str,
    group: str,
    producer_id: int,
    producer_epoch: int,
    *offsets: tuple[str, int, int],
    member: str = "",
    generation: int = -1,
    metadata: str | None = "",
    **fields: Any,
) -> TxnOffsetCommitRequest:
    """Commit (topic, partition, offset) when the transaction commits."""
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        generation_id=generation,
        member_id=member,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=metadata
                    )
                    for _, index, offset in parts
                ],
            )
            for topic, parts in by_topic(offsets)
        ],
        **fields,
    )


def end_txn(transactional_id: str, producer_id: int, producer_epoch: int, *, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=producer_epoch, committed=commit
    )


def write_txn_markers(
    producer_id: int,
    producer_epoch: int,
    *parts: Part,
    commit: bool = True,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WriteTxnMarkersRequest:
    """One marker, for some partitions."""
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transaction_result=commit,
                coordinator_epoch=coordinator_epoch,
                transaction_version=transaction_version,
                topics=[
                    WritableTxnMarkerTopic(name=topic, partition_indexes=[index for _, index in group])
                    for topic, group in by_topic(parts)
                ],
            )
        ]
    )
