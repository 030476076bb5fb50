"""Asks a transaction's coordinator, on whichever broker, whether partitions take part, or has them added.

This is for the leaders of the partitions that a producer writes to (KIP-890). The coordinator on this broker is asked
directly. Others are asked in AddPartitionsToTxn, one request at a time for each broker: what accumulates meanwhile goes
together in the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol

import structlog

from barnabas.broker.coordinator.cluster import Cluster, Peers
from barnabas.broker.coordinator.key_hash import partition_of
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.internal_topics import TRANSACTION_STATE
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.topic_partition import TopicPartition

log = structlog.get_logger()

_MOST_IN_A_REQUEST: Final = 1000

Answer = Callable[[Mapping[TopicPartition, ErrorCode]], None]


class Coordinator(Protocol):
    """The transaction coordinator of this broker."""

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        done: Answer,
    ) -> None: ...

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        done: Callable[[ErrorCode], None],
    ) -> None: ...


class _Question(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[TopicPartition]
    verify_only: bool
    answer: Answer

    def fail(self, error: ErrorCode) -> None:
        self.answer(dict.fromkeys(self.partitions, error))


class PartitionAdder:
    def __init__(
        self,
        node_id: int,
        cluster: Cluster,
        coordinator: Coordinator,
        peers: Peers,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        timeout_ms: Callable[[], int],
        version: int = 5,
    ) -> None:
        """`version` of AddPartitionsToTxn is 4 where there are brokers that know no other."""
        self._node_id = node_id
        self._cluster = cluster
        self._coordinator = coordinator
        self._peers = peers
        self._spawn = spawn
        self._timeout_ms = timeout_ms
        self._version = version
        self._waiting: dict[int, list[_Question]] = {}  # by broker; a broker is here while a request is under way

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        answer: Answer,
    ) -> None:
        """Report for each partition whether it is part of the producer's transaction."""
        leader = self._leader(transactional_id)
        if leader == self._node_id:
            self._coordinator.verify(transactional_id, producer_id, producer_epoch, partitions, answer)
        else:
            self._ask(leader, _Question(transactional_id, producer_id, producer_epoch, partitions, True, answer))

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        answer: Answer,
    ) -> None:
        """Add partitions to the producer's transaction, and start one if there is none."""
        leader = self._leader(transactional_id)
        question = _Question(transactional_id, producer_id, producer_epoch, partitions, False, answer)
        if leader == self._node_id:
            self._coordinator.add_partitions(transactional_id, producer_id, producer_epoch, partitions, question.fail)
        else:
            self._ask(leader, question)

    def _leader(self, transactional_id: str) -> int:
        topic = self._cluster.topic(TRANSACTION_STATE)
        if topic is None or not topic.partitions:
            return -1
        return topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader_id

    def _ask(self, broker_id: int, question: _Question) -> None:
        waiting = self._waiting.get(broker_id)
        if waiting is not None:
            waiting.append(question)
        elif broker_id < 0 or self._peers.channel(broker_id) is None:
            question.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            self._waiting[broker_id] = [question]
            self._spawn(self._ask_waiting(broker_id))

    async def _ask_waiting(self, broker_id: int) -> None:
        try:
            while some := self._take(broker_id):
                await self._request(broker_id, some)
        finally:
            for question in self._waiting.pop(broker_id, ()):
                question.fail(ErrorCode.NETWORK_EXCEPTION)

    def _take(self, broker_id: int) -> dict[str, _Question]:
        """What goes into the next request: one question about an id, because the answer names ids."""
        taken: dict[str, _Question] = {}
        left = []
        for question in self._waiting[broker_id]:
            if question.transactional_id in taken or len(taken) == _MOST_IN_A_REQUEST:
                left.append(question)
            else:
                taken[question.transactional_id] = question
        self._waiting[broker_id] = left
        return taken

    async def _request(self, broker_id: int, questions: Mapping[str, _Question]) -> None:
        channel = self._peers.channel(broker_id)
        error = ErrorCode.NONE
        results: dict[str, dict[TopicPartition, ErrorCode]] = {}
        if channel is None:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        else:
            request = AddPartitionsToTxnRequest(transactions=list(map(_transaction, questions.values())))
            try:
                response: AddPartitionsToTxnResponse = await channel.request(
                    ApiKey.ADD_PARTITIONS_TO_TXN, request, self._version, AddPartitionsToTxnResponse, self._timeout_ms()
                )
                error = ErrorCode(response.error_code)
                results = _results(response)
            except ChannelError:
                error = ErrorCode.NETWORK_EXCEPTION
            except Exception:  # this is unexpected; the client has to retry
                log.exception("a coordinator could not be asked", broker=broker_id)
                error = ErrorCode.NETWORK_EXCEPTION
        if error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:  # is not the client's concern
            error = ErrorCode.INVALID_TXN_STATE
        for question in questions.values():
            found = {} if error else results.get(question.transactional_id, {})
            otherwise = error or ErrorCode.UNKNOWN_SERVER_ERROR
            try:
                question.answer({each: found.get(each, otherwise) for each in question.partitions})
            except Exception:
                log.exception("an answer of a coordinator was not followed", transactional_id=question.transactional_id)


def _transaction(question: _Question) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.producer_epoch,
        verify_only=question.verify_only,
        topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=[index for _, index in partitions])
            for topic, partitions in groupby(sorted(question.partitions), key=itemgetter(0))
        ],
    )


def _results(response: AddPartitionsToTxnResponse) -> dict[str, dict[TopicPartition, ErrorCode]]:
    return {
        result.transactional_id: {
            TopicPartition(topic.name, each.partition_index): ErrorCode(each.partition_error_code)
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }
