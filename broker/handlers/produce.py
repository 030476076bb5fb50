"""Produce (key 0): append record batches to partitions.

Kafka takes versions from 3 on, which carry batches of magic 2, and names 0 as the lowest, because older librdkafka
decides by that what a broker can do. Version 7 allows zstd; 8 names the records at fault; 9 is flexible; 10 tells where
the leader is now; 12 is for transactions without AddPartitionsToTxn; 13 names topics by id.

A batch is opaque here: it is checked, given its offset and written by the log, with all others of this turn of the
loop. One that begins a transaction in its partition first waits for the transaction's coordinator
(transaction/admission). acks=0 gets no answer; if such a request fails, its connection is closed: nothing else can its
client notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from broker.coordinator.decision import ProducerIdAndEpoch
from broker.errors import error_code_of
from broker.replica.partition import Partition
from broker.server.request import Request
from broker.transaction.admission import Transaction, TransactionalBatch
from protocol.errors import ErrorCode
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from protocol.records.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    HEADER_SIZE,
    NO_PRODUCER_ID,
    TRANSACTIONAL_FLAG,
    read_header,
)
from protocol.records.compression import CompressionType
from protocol.records.errors import CorruptRecords, NotOneBatch, UnsupportedMagic
from protocol.schema import Records
from storage.errors import InvalidRecord, InvalidTimestamp, LogFailure, RecordBatchTooLarge, RecordTooLarge
from storage.write import AppendResult, Refusal

if TYPE_CHECKING:
    from broker.broker import Broker

_ALL: Final = -1
_ZSTD_FROM_VERSION: Final = 7
_ABORTABLE_FROM_VERSION: Final = 11
_ADDS_PARTITIONS_FROM_VERSION: Final = 12
# Errors of a transaction's coordinator that not every client knows here. On "not enough replicas" each tries again.
_OF_THE_COORDINATOR: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_NOT_ADDED: Final = "The partition has not been added to the transaction."
# The only client that may write to internal topics.
_ADMIN_CLIENT: Final = "__admin_client"
# Refusals that do not come with the log start offset: Kafka finds these before it looks at the log.
_NOT_BY_THE_LOG: Final = (
    CorruptRecords,
    LogFailure,
    NotOneBatch,
    RecordBatchTooLarge,
    RecordTooLarge,
    UnsupportedMagic,
)


def handle(broker: Broker, request: Request, message: ProduceRequest) -> None:
    _Produce(broker, request, message).begin()


class _Produce:
    """One request, until all of its partitions are done."""

    __slots__ = ("_begun", "_broker", "_failed", "_left", "_message", "_request", "_responses", "_to_admit")

    def __init__(self, broker: Broker, request: Request, message: ProduceRequest) -> None:
        self._broker = broker
        self._request = request
        self._message = message
        self._left = 0
        self._failed = False
        self._begun = False
        self._responses: list[TopicProduceResponse] = []
        self._to_admit: list[tuple[ProducerIdAndEpoch, TransactionalBatch]] = []

    def begin(self) -> None:
        find = self._broker.replicas.find
        request = self._request
        transactional = self._message.transactional_id is not None
        for topic in self._message.topic_data:
            responses: list[PartitionProduceResponse] = []
            self._responses.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=responses)
            )
            for data in topic.partition_data:
                response = PartitionProduceResponse(index=data.index, base_offset=-1)
                responses.append(response)
                partition = find(topic.name or topic.topic_id, data.index)
                if partition is None:
                    self._fail(response, self._unknown(topic))
                    continue
                error = objection(
                    partition, data.records, self._message.acks, request.version, request.client_id, transactional
                )
                if error:
                    self._fail(response, error)
                elif transactional:
                    self._append_or_admit(partition, data.records, response)  # type: ignore[arg-type]
                else:
                    self._left += 1
                    partition.append_soon(data.records, self, response)  # type: ignore[arg-type]
        if self._to_admit:
            self._admit()
        self._begun = True
        if self._left:
            self._request.connection.append_is_due()
        else:
            self._answer()

    def _unknown(self, topic: TopicProduceData) -> ErrorCode:
        known = self._request.version < 13 or self._broker.cluster.topic_by_id(topic.topic_id) is not None
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.UNKNOWN_TOPIC_ID

    def _append_or_admit(self, partition: Partition, records: memoryview, response: PartitionProduceResponse) -> None:
        self._left += 1
        if _attributes(records) & TRANSACTIONAL_FLAG:
            header = read_header(records)
            if header.producer_id != NO_PRODUCER_ID:
                batch = TransactionalBatch(partition, header.base_sequence, records, self, response)
                self._to_admit.append((ProducerIdAndEpoch(header.producer_id, header.producer_epoch), batch))
                return
        partition.append_soon(records, self, response)

    def _admit(self) -> None:
        producer = self._to_admit[0][0]
        batches = [batch for _, batch in self._to_admit]
        if any(other != producer for other, _ in self._to_admit):
            for batch in batches:
                self.not_admitted(batch.place, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            return
        version = self._request.version
        transaction = Transaction(
            self._message.transactional_id or "",
            *producer,
            adds_partitions=version >= _ADDS_PARTITIONS_FROM_VERSION,
            knows_abortable=version >= _ABORTABLE_FROM_VERSION,
        )
        self._broker.admission.admit(transaction, batches)

    def not_admitted(self, response: PartitionProduceResponse, error: ErrorCode) -> None:
        if error in _OF_THE_COORDINATOR or (
            error == ErrorCode.CONCURRENT_TRANSACTIONS and self._request.version < _ADDS_PARTITIONS_FROM_VERSION
        ):
            message = f"The partition could not be verified to be part of the transaction: {error.name}"
            self._fail(response, ErrorCode.NOT_ENOUGH_REPLICAS, message)
        else:
            self._fail(response, error, _NOT_ADDED if error == ErrorCode.INVALID_TXN_STATE else None)
        self._left -= 1
        if not self._left and self._begun:
            self._request.connection.appended()
            self._answer()

    def _fail(self, response: PartitionProduceResponse, error: ErrorCode, message: str | None = None) -> None:
        response.error_code = error
        response.error_message = message
        self._failed = True

    def appended(
        self, partition: Partition, response: PartitionProduceResponse, result: AppendResult | Refusal
    ) -> None:
        if isinstance(result, AppendResult):
            response.base_offset = result.base_offset
            response.log_append_time_ms = result.log_append_time
            response.log_start_offset = partition.log.log_start_offset
        else:
            self._failed = True
            refuse(response, partition, result)
        self._left -= 1
        if not self._left:
            self._request.connection.appended()
            self._answer()

    def _answer(self) -> None:
        if self._message.acks != 0:
            self._request.answer(ProduceResponse(responses=self._responses))
        elif self._failed:
            self._request.fail("a Produce with acks=0 failed")
        else:
            self._request.drop_answer()


def objection(
    partition: Partition,
    records: Records | None,
    acks: int,
    version: int,
    client_id: str | None,
    transactional: bool,
) -> ErrorCode:
    """Why these records may not even be tried."""
    if records is None:
        return ErrorCode.INVALID_RECORD
    attributes = _attributes(cast(memoryview, records))
    if attributes & TRANSACTIONAL_FLAG and not transactional:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if version < _ZSTD_FROM_VERSION and attributes & COMPRESSION_MASK == CompressionType.ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if acks not in (_ALL, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if partition.is_internal and client_id != _ADMIN_CLIENT:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if acks == _ALL and not partition.has_enough_replicas():
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode.NONE


def refuse(response: PartitionProduceResponse, partition: Partition, error: Refusal) -> None:
    """Say in the answer why the log did not take the records."""
    response.error_code = error_code_of(error)
    response.error_message = str(error)
    if not isinstance(error, _NOT_BY_THE_LOG):
        response.log_start_offset = partition.log.log_start_offset
    if isinstance(error, InvalidRecord | InvalidTimestamp):
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=fault.batch_index, batch_index_error_message=fault.message)
            for fault in error.record_errors
        ]


def _attributes(records: memoryview) -> int:
    """Those of the batch that have a meaning, if it is long enough to have any."""
    return records[ATTRIBUTES_POSITION + 1] if len(records) >= HEADER_SIZE else 0
