"""AddPartitionsToTxn (key 24): partitions become part of a producer's transaction, which starts with the first of them.

Up to version 3 a producer sends it for one transaction. Versions 4 and 5 are for brokers, which ask about several at
once, and may only want to know whether the partitions are part of a transaction (verify only). If one partition of a
transaction does not exist, none is added. Up to version 1 a fenced producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.controller.topic_names import is_internal
from barnabas.broker.internal_topics import TRANSACTION_STATE
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

Errors = Mapping[TopicPartition, ErrorCode]


def handle(broker: Broker, request: Request, message: AddPartitionsToTxnRequest) -> Steps[None]:
    if request.version >= 4:
        if not request.access.cluster(AclOperation.CLUSTER_ACTION):
            request.answer(AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
            return None
        return (yield from _add_several(broker, request, message.transactions))
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=message.v3_and_below_transactional_id,
        producer_id=message.v3_and_below_producer_id,
        producer_epoch=message.v3_and_below_producer_epoch,
        topics=message.v3_and_below_topics,
    )

    def done(errors: Errors) -> None:
        broker.server.dispatcher.go_on(request, answer(errors))

    def answer(errors: Errors) -> Steps[AddPartitionsToTxnResponse]:
        if request.version < 2:
            errors = {partition: _before_version_2(error) for partition, error in errors.items()}
        results = yield from _results(transaction.topics, errors)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)

    if not request.access.transactional_id(AclOperation.WRITE, transaction.transactional_id):
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        done({TopicPartition(topic.name, index): error for topic in transaction.topics for index in topic.partitions})
        return None
    return (yield from _add(broker, request, transaction, done))


def _add_several(
    broker: Broker, request: Request, transactions: Sequence[AddPartitionsToTxnTransaction]
) -> Steps[None]:
    """Several transactions in one request, which is answered when all of them are."""
    found: list[Errors] = [{} for _ in transactions]
    left = 1  # and one more for each transaction

    def done(place: int, errors: Errors) -> None:
        found[place] = errors
        one_is_done()

    def one_is_done() -> None:
        nonlocal left
        left -= 1
        if not left:
            broker.server.dispatcher.go_on(request, answer())

    def answer() -> Steps[AddPartitionsToTxnResponse]:
        results = []
        for each, errors in zip(transactions, found, strict=True):
            topic_results = yield from _results(each.topics, errors)
            results.append(
                AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=topic_results)
            )
            yield
        return AddPartitionsToTxnResponse(results_by_transaction=results)

    for place, each in enumerate(transactions):
        left += 1
        yield from _add(broker, request, each, partial(done, place))
        yield
    one_is_done()


def _add(
    broker: Broker, request: Request, transaction: AddPartitionsToTxnTransaction, done: Callable[[Errors], None]
) -> Steps[None]:
    version, access = request.version, request.access
    errors: dict[TopicPartition, ErrorCode] = {}
    refused = False
    for topic in transaction.topics:
        allowed = version >= 4 or access.topic(AclOperation.WRITE, topic.name)  # brokers may add any
        for index in topic.partitions:
            partition = TopicPartition(topic.name, index)
            error = _objection(broker, version, partition) if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            errors[partition] = error
            refused = refused or error != ErrorCode.NONE
            yield
    if refused:
        done({partition: error or ErrorCode.OPERATION_NOT_ATTEMPTED for partition, error in errors.items()})
        return
    partitions = errors.keys()
    transactional_id = transaction.transactional_id
    producer_id, producer_epoch = transaction.producer_id, transaction.producer_epoch
    if transaction.verify_only:
        broker.transactions.verify(transactional_id, producer_id, producer_epoch, partitions, done)
        return
    broker.transactions.add_partitions(
        transactional_id,
        producer_id,
        producer_epoch,
        partitions,
        lambda error: done(dict.fromkeys(partitions, error)),
        client_version=2 if version >= 4 else 0,
    )


def _before_version_2(error: ErrorCode) -> ErrorCode:
    return ErrorCode.INVALID_PRODUCER_EPOCH if error == ErrorCode.PRODUCER_FENCED else error


def _objection(broker: Broker, version: int, partition: TopicPartition) -> ErrorCode:
    topic, index = partition
    if topic == TRANSACTION_STATE or (version < 4 and is_internal(topic)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    exists = broker.cluster.partition(topic, index) is not None
    return ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _results(topics: Sequence[AddPartitionsToTxnTopic], errors: Errors) -> Steps[list[AddPartitionsToTxnTopicResult]]:
    results = []
    for topic in topics:
        partitions = []
        for index in topic.partitions:
            error = errors[TopicPartition(topic.name, index)]
            partitions.append(AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error))
            yield
        results.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=partitions))
        yield
    return results
