"""Requests of transactional producers, in one line each, and which version of each goes with the others.

An `age` is that of a client. The first five are classic ones, from the oldest to the latest, which add partitions by
themselves; the NEWEST leaves that to the broker (KIP-890). Together they cover every version that a client may send.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from protocol.api import ApiKey
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

AGES = range(6)
OLDEST, LATEST_CLASSIC, NEWEST = 0, 4, 5
CLASSIC = range(5)

VERSIONS = {
    ApiKey.INIT_PRODUCER_ID: (0, 1, 2, 3, 4, 5),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 1, 2, 3, 4, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 1, 2, 3, 4, 4),
    ApiKey.END_TXN: (0, 1, 2, 3, 4, 5),
    ApiKey.TXN_OFFSET_COMMIT: (0, 1, 2, 3, 4, 5),
    ApiKey.PRODUCE: (3, 5, 7, 8, 11, 12),
    ApiKey.FETCH: (4, 5, 7, 11, 12, 18),
    ApiKey.LIST_OFFSETS: (2, 3, 4, 5, 7, 10),
    ApiKey.WRITE_TXN_MARKERS: (1, 1, 1, 1, 1, 2),
    ApiKey.LIST_TRANSACTIONS: (0, 0, 0, 0, 1, 2),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0, 0, 0, 0, 0),
    ApiKey.FIND_COORDINATOR: (1, 2, 3, 4, 5, 6),
}

# A topic and a partition of it; or with the offset that is committed for it.
Part = tuple[str, int]
Offset = tuple[str, int, int]


def topics_of(parts: Sequence[Part]) -> list[AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnTopic(name=topic, partitions=[index for _, index in group])
        for topic, group in groupby(parts, key=lambda part: part[0])
    ]


def add_partitions(
    version: int, transactional_id: str, producer_id: int, producer_epoch: int, *parts: Part, verify_only: bool = False
) -> AddPartitionsToTxnRequest:
    if version >= 4:
        transaction = transaction_of(transactional_id, producer_id, producer_epoch, *parts, verify_only=verify_only)
        return AddPartitionsToTxnRequest(transactions=[transaction])
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=producer_epoch,
        v3_and_below_topics=topics_of(parts),
    )


def transaction_of(
    transactional_id: str, producer_id: int, producer_epoch: int, *parts: Part, verify_only: bool = False
) -> AddPartitionsToTxnTransaction:
    """One of those that a broker adds together."""
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        verify_only=verify_only,
        topics=topics_of(parts),
    )


def commit_offsets(
    transactional_id: str,
    group: str,
    producer_id: int,
    producer_epoch: int,
    *offsets: Offset,
    member: str = "",
    generation: int = -1,
    metadata: str | None = "",
    group_instance_id: str | None = None,
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        generation_id=generation,
        member_id=member,
        group_instance_id=group_instance_id,
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
            for topic, parts in groupby(offsets, key=lambda part: part[0])
        ],
    )


def markers(
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
                    for topic, group in groupby(parts, key=lambda part: part[0])
                ],
            )
        ]
    )
