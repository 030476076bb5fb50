"""TxnOffsetCommit (key 28): commit how far a group has read as part of a transaction.

The offsets become valid when the transaction is committed; until then they are pending. Version 2 adds leader epochs; 3
names the member for which the producer commits, so that one whose partitions have moved to another is refused; 4 adds
TRANSACTION_ABORTABLE; from 5 on the group's partition of __consumer_offsets is added to the transaction here,
without AddOffsetsToTxn. An unknown partition, or metadata that is too long, fails alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.coordinator.result import ProducerIdAndEpoch
from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.broker.handlers.committing import Commit, Done, Offsets
from barnabas.broker.handlers.offset_commit import length_of
from barnabas.broker.internal_topics import CONSUMER_OFFSETS
from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.broker.transaction.admission import Transaction, is_under_way
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_ABORTABLE_FROM_VERSION: Final = 4
_ADDS_PARTITIONS_FROM_VERSION: Final = 5


def handle(broker: Broker, request: Request, message: TxnOffsetCommitRequest) -> Steps[None]:
    now_ms = broker.clock.now_ms()
    response = TxnOffsetCommitResponse(topics=[])
    by = Committer(
        message.member_id, message.group_instance_id, message.generation_id, request.version, in_transaction=True
    )
    producer = ProducerIdAndEpoch(message.producer_id, message.producer_epoch)

    def commit(offsets: Offsets, done: Done) -> None:
        # The transaction may have ended since its coordinator was asked, or since the previous part. Then nothing would
        # end it here.
        if offsets and (partition is None or not is_under_way(partition, transaction)):
            done(ErrorCode.INVALID_TXN_STATE)
            return
        broker.groups.commit(message.group_id, by, offsets, done, producer)

    def answer() -> None:
        broker.server.dispatcher.answer(request, response)

    transaction = Transaction(
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        adds_partitions=request.version >= _ADDS_PARTITIONS_FROM_VERSION,
        knows_abortable=request.version >= _ABORTABLE_FROM_VERSION,
    )
    name = TopicPartition(CONSUMER_OFFSETS, broker.groups.partition_of(message.group_id))
    partition = broker.replicas.find(*name)
    committing = Commit(commit, answer)
    access = request.access
    denied = _denial(access, message)
    for topic in message.topics:
        image = broker.cluster.topic(topic.name)
        not_readable = denied
        if not denied and not access.topic(AclOperation.READ, topic.name):
            not_readable = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        answers = TxnOffsetCommitResponseTopic(name=topic.name, partitions=[])
        response.topics.append(answers)
        for wanted in topic.partitions:
            partition_answer = TxnOffsetCommitResponsePartition(partition_index=wanted.partition_index)
            answers.partitions.append(partition_answer)
            if not_readable:
                partition_answer.error_code = not_readable
            elif image is None or not 0 <= wanted.partition_index < len(image.partitions):
                partition_answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                metadata = wanted.committed_metadata or ""
                committing.add(
                    TopicPartition(image.name, wanted.partition_index),
                    CommittedOffset(
                        wanted.committed_offset,
                        wanted.committed_leader_epoch,
                        metadata,
                        now_ms,
                        topic_id=image.topic_id,
                    ),
                    partition_answer,
                    too_long=length_of(metadata) > broker.config.offset_metadata_max_bytes,
                )
            yield
        yield
    if committing.is_empty:
        answer()
        return
    error = ErrorCode.NONE if message.group_id else ErrorCode.INVALID_GROUP_ID
    error = error or broker.groups.objection(message.group_id)
    if error:
        committing.refuse(error)
        return

    def admitted(errors: Mapping[TopicPartition, ErrorCode]) -> None:
        if errors[name]:
            committing.refuse(_as_told(errors[name]))
        elif partition is not None and not partition.admissions.admit(message.producer_id, message.producer_epoch):
            ask()  # a transaction of this producer has ended here since, perhaps the one before
        else:
            broker.server.dispatcher.go_on(request, committing.steps())

    def ask() -> None:
        if partition is not None:
            partition.admissions.try_out(
                message.producer_id, message.producer_epoch, 0, from_zero=False, now_ms=broker.clock.now_ms()
            )
        broker.admission.ask(transaction, [name], admitted)

    if partition is not None and is_under_way(partition, transaction):
        yield from committing.steps()
        return
    ask()


def _denial(access: Access, message: TxnOffsetCommitRequest) -> ErrorCode:
    """Why the client may not commit anything."""
    if not access.transactional_id(AclOperation.WRITE, message.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    allowed = access.group(AclOperation.READ, message.group_id)
    return ErrorCode.NONE if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED


def _as_told(error: ErrorCode) -> ErrorCode:
    """Clients do not expect the errors of an unavailable transaction coordinator here."""
    if error == ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error
