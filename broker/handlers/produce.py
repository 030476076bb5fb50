"""Produce (key 0): append record batches to partitions.

Kafka accepts versions from 3 on, which carry batches of magic 2, but advertises 0 as the lowest, because older
librdkafka decides by that what a broker can do. Version 7 allows zstd; 8 names invalid records; 9 is flexible; 10 names
the current leader; 12 is for transactions without AddPartitionsToTxn; 13 names topics by id.

A batch is opaque here: it is checked, given its offset and written by the log, with all others of this turn of the
loop. One that starts a transaction in its partition first waits for the transaction's coordinator
(transaction/admission). acks=all waits until the batches are committed, at most as long as the request says. acks=0
gets no answer; if such a request fails, its connection is closed, which is all that its client can notice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from barnabas.broker.clock import Timer
from barnabas.broker.coordinator.result import ProducerIdAndEpoch
from barnabas.broker.errors import error_code_of
from barnabas.broker.handlers.current_leader import current_leader, endpoints_of
from barnabas.broker.replica.commit_waits import CommitWait
from barnabas.broker.replica.errors import NotLeader
from barnabas.broker.replica.partition import Partition
from barnabas.broker.security.authorizer import CheckedAccess
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Pause, Request
from barnabas.broker.transaction.admission import Transaction, TransactionalBatch
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    HEADER_SIZE,
    NO_PRODUCER_ID,
    TRANSACTIONAL_FLAG,
    read_header,
)
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.errors import CorruptRecords, NotOneBatch, UnsupportedMagic
from barnabas.protocol.schema import Records
from barnabas.storage.errors import InvalidRecord, InvalidTimestamp, LogFailure, RecordBatchTooLarge, RecordTooLarge
from barnabas.storage.write import AppendResult, Refusal

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_ALL: Final = -1
# A request with more parts is started in pieces.
_PARTS_AT_ONCE: Final = 500
_ZSTD_FROM_VERSION: Final = 7
_ABORTABLE_FROM_VERSION: Final = 11
_ADDS_PARTITIONS_FROM_VERSION: Final = 12
_TELLS_LEADER_FROM_VERSION: Final = 10
_TOPIC_IDS_FROM_VERSION: Final = 13
# Errors of a transaction's coordinator that not every client expects here. Every client retries NOT_ENOUGH_REPLICAS.
_COORDINATOR_ERRORS: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_NOT_ADDED: Final = "The partition has not been added to the transaction."
# The only client that may write to internal topics.
_ADMIN_CLIENT: Final = "__admin_client"
# Refusals without the log start offset: Kafka detects these before it looks at the log.
_WITHOUT_LOG_START_OFFSET: Final = (
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

    __slots__ = (
        "_begun",
        "_broker",
        "_failed",
        "_left",
        "_may_write_in_transaction",
        "_message",
        "_pause",
        "_request",
        "_responses",
        "_timer",
        "_to_admit",
        "_uncommitted",
    )

    def __init__(self, broker: Broker, request: Request, message: ProduceRequest) -> None:
        self._broker = broker
        self._request = request
        self._message = message
        self._left = 0
        self._may_write_in_transaction: bool | None = None  # None: not decided yet
        self._failed = False
        self._begun = False
        self._pause: Pause | None = None
        self._responses: list[TopicProduceResponse] = []
        self._to_admit: list[tuple[ProducerIdAndEpoch, TransactionalBatch]] = []
        self._uncommitted: dict[int, tuple[CommitWait, PartitionProduceResponse]] = {}
        self._timer: Timer | None = None

    def begin(self) -> None:
        connection = self._request.connection
        parts = self._begin_parts()
        if sum([len(topic.partition_data) for topic in self._message.topic_data]) > _PARTS_AT_ONCE:
            # Later requests of the client wait, so that nothing overtakes the parts that have not started yet.
            self._pause = Pause(connection)
            connection.requests.append(self._pause)
            self._left = 1
            connection.append_is_due()
            self._broker.server.dispatcher.pieces.begin(self._guarded(parts))
            return
        for _ in parts:
            pass
        if self._left:
            connection.append_is_due()
        else:
            self._answer()

    def _guarded(self, parts: Steps[None]) -> Steps[None]:
        """They are started even if the client is gone: one that expects no answer may be."""
        try:
            yield from parts
        except Exception:
            self._request.failed()

    def _begin_parts(self) -> Steps[None]:
        """Queue the records of each partition, or refuse them, one partition at a time."""
        find = self._broker.replicas.find
        request = self._request
        transactional = self._message.transactional_id is not None
        by_id = request.version >= _TOPIC_IDS_FROM_VERSION
        access = request.connection.access
        for topic in self._message.topic_data:
            denied = ErrorCode.NONE if access is None else self._denial(access, topic)
            responses: list[PartitionProduceResponse] = []
            self._responses.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=responses)
            )
            for data in topic.partition_data:
                yield
                response = PartitionProduceResponse(index=data.index, base_offset=-1)
                responses.append(response)
                if denied:
                    self._fail(response, denied)
                    continue
                partition = find(topic.topic_id if by_id else topic.name, data.index)
                if partition is None:
                    self._fail(
                        response, self._broker.replicas.missing(topic.topic_id if by_id else topic.name, data.index)
                    )
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
        if self._pause is not None:
            self._pause.end()
            self._part_is_done()

    def _denial(self, access: CheckedAccess, topic: TopicProduceData) -> ErrorCode:
        """Why the client may not write to a topic. An id that no topic has is unknown to everybody."""
        if self._may_write_in_transaction is None:
            self._may_write_in_transaction = self._decide_about_transaction(access)
        if not self._may_write_in_transaction:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        by_id = self._request.version >= _TOPIC_IDS_FROM_VERSION
        name = self._broker.cluster.name_of(topic.topic_id) if by_id else topic.name
        allowed = name is None or access.writable_topics[name]
        return ErrorCode.NONE if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def _decide_about_transaction(self, access: CheckedAccess) -> bool:
        """Whether the client may use its transactional id, if any of its batches is part of a transaction."""
        transactional_id = self._message.transactional_id
        if transactional_id is None or access.transactional_id(AclOperation.WRITE, transactional_id):
            return True
        return not any(
            data.records is not None and _attributes(cast(memoryview, data.records)) & TRANSACTIONAL_FLAG
            for topic in self._message.topic_data
            for data in topic.partition_data
        )

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
        if error in _COORDINATOR_ERRORS or (
            error == ErrorCode.CONCURRENT_TRANSACTIONS and self._request.version < _ADDS_PARTITIONS_FROM_VERSION
        ):
            message = f"The partition could not be verified to be part of the transaction: {error.name}"
            self._fail(response, ErrorCode.NOT_ENOUGH_REPLICAS, message)
        else:
            self._fail(response, error, _NOT_ADDED if error == ErrorCode.INVALID_TXN_STATE else None)
        self._left -= 1
        if not self._left and self._begun:
            self._all_written()

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
            if self._message.acks == _ALL:
                self._wait_for_commit(partition, response, result.last_offset + 1)
        else:
            self._failed = True
            refuse(response, partition, result)
        self._part_is_done()

    def _part_is_done(self) -> None:
        self._left -= 1
        if not self._left:
            self._all_written()

    def _all_written(self) -> None:
        self._request.connection.appended()
        if not self._uncommitted:
            self._answer()
            return
        self._timer = self._broker.clock.call_later(max(self._message.timeout_ms, 0) / 1000, self._expired)
        self._request.on_abandon = self._stop_waiting

    # --- acks=all ---

    def _wait_for_commit(self, partition: Partition, response: PartitionProduceResponse, offset: int) -> None:
        if partition.log.high_watermark >= offset:
            if not partition.has_enough_replicas():
                response.error_code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            return
        wait = partition.when_committed(offset, partial(self._committed, partition, response))
        if wait is not None:
            self._uncommitted[id(response)] = wait, response

    def _committed(self, partition: Partition, response: PartitionProduceResponse, failure: LogFailure | None) -> None:
        # The answer keeps the offset, as in Kafka: the batch is in this log, though the client must not rely on it.
        response.error_code = commit_error(partition, failure)
        self._failed = self._failed or response.error_code != 0
        self._uncommitted.pop(id(response), None)
        if not self._uncommitted and self._timer is not None:
            self._stop_waiting()
            self._answer()

    def _expired(self) -> None:
        for _, response in self._uncommitted.values():
            response.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._stop_waiting()
        self._answer()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for wait, _ in self._uncommitted.values():
            wait.cancel()
        self._uncommitted = {}
        self._request.on_abandon = None

    def _answer(self) -> None:
        if self._message.acks != 0:
            answer = ProduceResponse(responses=self._responses)
            if self._failed and self._request.version >= _TELLS_LEADER_FROM_VERSION:
                tell_leaders(self._broker, self._request, answer)
            if self._pause is None:
                self._request.answer(answer)
            else:
                self._broker.server.dispatcher.answer(self._request, answer)
        elif self._failed:
            self._request.fail("a Produce with acks=0 failed")
        else:
            self._request.drop_answer()


def tell_leaders(broker: Broker, request: Request, answer: ProduceResponse) -> None:
    """Name the leaders of partitions that another broker leads, so that the client need not ask for metadata."""
    leaders: set[int] = set()
    for topic in answer.responses:
        for response in topic.partition_responses:
            if response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                by_id = request.version >= _TOPIC_IDS_FROM_VERSION
                leader = current_leader(broker, topic.topic_id if by_id else topic.name, response.index)
                if leader is not None:
                    response.current_leader = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
                    leaders.add(leader[0])
    if leaders:
        answer.node_endpoints = [
            NodeEndpoint(node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack)
            for each in endpoints_of(broker, request.connection, leaders)
        ]


def objection(
    partition: Partition,
    records: Records | None,
    acks: int,
    version: int,
    client_id: str | None,
    transactional: bool,
) -> ErrorCode:
    """Why these records are refused before the log sees them."""
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
    if partition.leadership is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if acks == _ALL and not partition.has_enough_replicas():
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode.NONE


def commit_error(partition: Partition, failure: LogFailure | None) -> ErrorCode:
    """The outcome of a batch with acks=all that had to wait for its commit."""
    if failure is not None:
        return error_code_of(failure)
    return ErrorCode.NONE if partition.has_enough_replicas() else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def refuse(response: PartitionProduceResponse, partition: Partition, error: Refusal) -> None:
    """Put into the answer why the log refused the records."""
    partition.traffic.failed_produces += 1
    response.error_code = error_code_of(error)
    response.error_message = None if isinstance(error, NotLeader) else str(error)
    if not isinstance(error, _WITHOUT_LOG_START_OFFSET):
        response.log_start_offset = partition.log.log_start_offset
    if isinstance(error, InvalidRecord | InvalidTimestamp):
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=fault.batch_index, batch_index_error_message=fault.message)
            for fault in error.record_errors
        ]


def _attributes(records: memoryview) -> int:
    """The batch's attributes that have a meaning, if it is long enough to have any."""
    return records[ATTRIBUTES_POSITION + 1] if len(records) >= HEADER_SIZE else 0
