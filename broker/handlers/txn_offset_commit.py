"""TxnOffsetCommit (key 28): commit how far a group has read as part of a transaction.

The offsets hold when the transaction is committed; until then they are pending. Version 2 adds leader epochs; 3 says
for which member of the group the producer commits, so that one whose partitions have gone to another is refused; 4
knows TRANSACTION_ABORTABLE; from 5 on the group's partition of __consumer_offsets is added to the transaction here,
without AddOffsetsToTxn. A partition that does not exist, or metadata that are too long, fail alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker.coordinator.decision import ProducerIdAndEpoch
from broker.group.records import CommittedOffset
from broker.handlers.offset_commit import length_of
from broker.internal_topics import CONSUMER_OFFSETS
from broker.server.request import Request
from broker.transaction.admission import Transaction, is_under_way
from protocol.errors import ErrorCode
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from broker.broker import Broker

_ABORTABLE_FROM_VERSION: Final = 4
_ADDS_PARTITIONS_FROM_VERSION: Final = 5


def handle(broker: Broker, request: Request, message: TxnOffsetCommitRequest) -> None:
    now_ms = broker.clock.now_ms()
    response = TxnOffsetCommitResponse(topics=[])
    accepted: list[TxnOffsetCommitResponsePartition] = []
    too_long: list[TxnOffsetCommitResponsePartition] = []
    offsets = []
    for topic in message.topics:
        image = broker.cluster.topic(topic.name)
        answers = TxnOffsetCommitResponseTopic(name=topic.name, partitions=[])
        response.topics.append(answers)
        for wanted in topic.partitions:
            answer = TxnOffsetCommitResponsePartition(partition_index=wanted.partition_index)
            answers.partitions.append(answer)
            if image is None or not 0 <= wanted.partition_index < len(image.partitions):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            accepted.append(answer)
            metadata = wanted.committed_metadata or ""
            if length_of(metadata) > broker.config.offset_metadata_max_bytes:
                too_long.append(answer)
            else:
                committed = CommittedOffset(
                    wanted.committed_offset,
                    wanted.committed_leader_epoch,
                    metadata,
                    now_ms,
                    topic_id=image.topic_id,
                )
                offsets.append(((image.name, wanted.partition_index), committed))

    def done(error: ErrorCode) -> None:
        for answer in accepted:
            answer.error_code = error
        if not error:
            for answer in too_long:
                answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
        request.answer(response)

    if not accepted:
        request.answer(response)
        return
    error = ErrorCode.NONE if message.group_id else ErrorCode.INVALID_GROUP_ID
    error = error or broker.groups.objection(message.group_id)
    if error:
        done(error)
        return

    def commit() -> None:
        broker.groups.commit_in_transaction(
            message.group_id,
            message.member_id,
            message.group_instance_id,
            message.generation_id,
            ProducerIdAndEpoch(message.producer_id, message.producer_epoch),
            offsets,
            done,
        )

    name = (CONSUMER_OFFSETS, broker.groups.partition_of(message.group_id))

    def answered(errors: Mapping[tuple[str, int], ErrorCode]) -> None:
        if errors[name]:
            done(_as_told(errors[name]))
        else:
            commit()

    transaction = Transaction(
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        adds_partitions=request.version >= _ADDS_PARTITIONS_FROM_VERSION,
        knows_abortable=request.version >= _ABORTABLE_FROM_VERSION,
    )
    partition = broker.replicas.find(*name)
    if partition is not None and is_under_way(partition, transaction):
        commit()
    else:
        broker.admission.ask(transaction, [name], answered)


def _as_told(error: ErrorCode) -> ErrorCode:
    """Clients expect no such errors here as mean that the coordinator of transactions cannot be asked."""
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if error == ErrorCode.NETWORK_EXCEPTION else error
