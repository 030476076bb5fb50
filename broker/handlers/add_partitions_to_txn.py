"""AddPartitionsToTxn (key 24): partitions become part of a producer's transaction, which begins with that.

Up to version 3 a producer sends it for one transaction. Versions 4 and 5 are for brokers, which ask about several at
once, and may only want to know whether the partitions are part of a transaction (verify only). If one partition of a
transaction does not exist, none is added. Up to version 1 a fenced producer is told INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from broker.controller.topic_names import is_internal
from broker.server.request import Request
from broker.transaction.metadata import TopicPartition
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from broker.broker import Broker

Errors = dict[TopicPartition, ErrorCode]


def handle(broker: Broker, request: Request, message: AddPartitionsToTxnRequest) -> None:
    if request.version >= 4:
        _Batch(broker, request, message.transactions)
        return
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=message.v3_and_below_transactional_id,
        producer_id=message.v3_and_below_producer_id,
        producer_epoch=message.v3_and_below_producer_epoch,
        topics=message.v3_and_below_topics,
    )

    def done(errors: Errors) -> None:
        for partition, error in errors.items():
            if error == ErrorCode.PRODUCER_FENCED and request.version < 2:
                errors[partition] = ErrorCode.INVALID_PRODUCER_EPOCH
        results = _results(transaction.topics, errors)
        request.answer(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))

    _add(broker, request.version, transaction, done)


class _Batch:
    """Several transactions in one request, until all of them are answered."""

    def __init__(self, broker: Broker, request: Request, transactions: Sequence[AddPartitionsToTxnTransaction]) -> None:
        self._request = request
        self._results = [
            AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=[]) for each in transactions
        ]
        self._left = len(transactions) + 1
        for each, result in zip(transactions, self._results, strict=True):
            self._begin(broker, each, result)
        self._one_is_done()

    def _begin(
        self, broker: Broker, transaction: AddPartitionsToTxnTransaction, result: AddPartitionsToTxnResult
    ) -> None:
        def done(errors: Errors) -> None:
            result.topic_results = _results(transaction.topics, errors)
            self._one_is_done()

        _add(broker, self._request.version, transaction, done)

    def _one_is_done(self) -> None:
        self._left -= 1
        if not self._left:
            self._request.answer(AddPartitionsToTxnResponse(results_by_transaction=self._results))


def _add(
    broker: Broker, version: int, transaction: AddPartitionsToTxnTransaction, done: Callable[[Errors], None]
) -> None:
    partitions = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    errors = {partition: _objection(broker, version, partition) for partition in partitions}
    if any(errors.values()):
        done({partition: error or ErrorCode.OPERATION_NOT_ATTEMPTED for partition, error in errors.items()})
        return
    transactional_id = transaction.transactional_id
    producer_id, producer_epoch = transaction.producer_id, transaction.producer_epoch
    if transaction.verify_only:
        done(broker.transactions.verify(transactional_id, producer_id, producer_epoch, partitions))
        return
    broker.transactions.add_partitions(
        transactional_id,
        producer_id,
        producer_epoch,
        partitions,
        lambda error: done(dict.fromkeys(partitions, error)),
        client_version=2 if version >= 4 else 0,
    )


def _objection(broker: Broker, version: int, partition: TopicPartition) -> ErrorCode:
    topic, index = partition
    if version < 4 and is_internal(topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    exists = broker.replicas.find(topic, index) is not None
    return ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _results(topics: Sequence[AddPartitionsToTxnTopic], errors: Errors) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=errors[topic.name, index])
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
