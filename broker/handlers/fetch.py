"""Fetch (key 1): read record batches, waiting for some if there are none.

Version 5 tells the log start offset; 7 brings sessions (replica/fetch_sessions); 9 leader epochs; 10 allows zstd; 11
racks; 12 is flexible and tells where logs diverge; 13 names topics by id; 15 moves the replica's id; 16 tells where the
leader is.

What is read is a slice of a segment file, which the server sends from there. A request is answered at once if it has
enough (min_bytes), has an error to tell, or does not want to wait; else when appends have brought enough, or when
max_wait_ms have passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from broker.clock import Timer
from broker.endpoints import endpoints_for
from broker.errors import error_code_of
from broker.replica.fetch_sessions import FetchContext, FetchedPartition, PartitionKey, size_of
from broker.replica.partition import Partition
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from storage.aborted_lookup import aborted_in_stretch
from storage.errors import StorageError
from storage.segment import FileSlice

if TYPE_CHECKING:
    from broker.broker import Broker

_TELLS_LEADER_FROM_VERSION: Final = 16
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1


def handle(broker: Broker, request: Request, message: FetchRequest) -> FetchResponse | None:
    if message.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return _refusal(request.version, message)
    context = broker.fetch_sessions.context(request.version, message, broker.clock.now_ms())
    if isinstance(context, ErrorCode):
        return FetchResponse(error_code=context, responses=[])
    return _Fetch(broker, request, message, context).begin()


def _refusal(version: int, message: FetchRequest) -> FetchResponse:
    """Nothing is read for an isolation level that nobody knows: it might be more than the client is to see."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    return FetchResponse(
        error_code=error,
        session_id=message.session_id,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[_error(wanted.partition, error, aborted_transactions=()) for wanted in topic.partitions],
            )
            for topic in message.topics
            if version < 13
        ],
    )


Answers = list[tuple[PartitionKey, PartitionData]]


class _Fetch:
    """One request, until it is answered. It waits at its partitions for news of them."""

    __slots__ = (
        "_broker",
        "_context",
        "_is_replica",
        "_message",
        "_missing",
        "_request",
        "_stable",
        "_tells_leader",
        "_timer",
        "_waits_at",
    )

    def __init__(self, broker: Broker, request: Request, message: FetchRequest, context: FetchContext) -> None:
        self._broker = broker
        self._request = request
        self._message = message
        self._context = context
        state = message.replica_state
        # Whether another broker asks, which wants to follow.
        self._is_replica = (message.replica_id if state is None else state.replica_id) >= 0
        self._missing = 0
        self._tells_leader = False
        self._timer: Timer | None = None
        self._waits_at: list[Partition] = []
        self._stable: list[int] = []  # for a reader of committed records: how far each partition was stable

    def begin(self) -> FetchResponse | None:
        answers, enough = self._read()
        if enough or self._message.max_wait_ms <= 0 or not answers:
            return self._answer(answers)
        self._wait_at_partitions()
        self._timer = self._broker.clock.call_later(self._message.max_wait_ms / 1000, self._expired)
        self._request.on_abandon = self._stop_waiting
        return None

    # --- reading ---

    def _read(self) -> tuple[Answers, bool]:
        """What every partition has, and whether that is worth an answer at once."""
        answers: Answers = []
        size = 0
        noteworthy = False
        limit = min(self._message.max_bytes, self._broker.config.fetch_max_bytes)
        wanted_bytes = min(self._message.min_bytes, limit)
        for key, wanted in self._context.partitions.items():
            answer = self._read_partition(key, wanted, limit, size == 0)
            answers.append((key, answer))
            read = size_of(answer)
            if read:
                size += read
                limit = max(0, limit - read)
            noteworthy = noteworthy or answer.error_code != 0 or answer.diverging_epoch is not None
        self._missing = wanted_bytes - size
        enough = noteworthy or self._missing <= 0 or (size > 0 and self._has_later_segments())
        return answers, enough

    def _read_partition(
        self, key: PartitionKey, wanted: FetchedPartition, limit: int, min_one_message: bool
    ) -> PartitionData:
        """Read up to `limit` bytes. If nothing was read yet, the first batch is read whatever its size."""
        partition = self._find(key)
        if isinstance(partition, ErrorCode):
            return _error(key.partition, partition, aborted_transactions=())
        if wanted.current_leader_epoch >= 0:
            error = partition.check_leader_epoch(wanted.current_leader_epoch)
            if error == ErrorCode.FENCED_LEADER_EPOCH:
                return self._led_otherwise(partition, error)
            if error:
                return _error(key.partition, error)
        if self._is_replica:
            # No partition has a replica but the one here.
            return self._led_otherwise(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = partition.log
        if log.config.compression_type == "zstd" and self._request.version < 10:
            return _error(key.partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if wanted.last_fetched_epoch >= 0:
            diverged = self._diverged(partition, wanted)
            if diverged is not None:
                return diverged
        max_bytes = min(wanted.max_bytes, limit)
        if max_bytes < 0:
            return _error(key.partition, ErrorCode.UNKNOWN_SERVER_ERROR)
        committed = self._message.isolation_level == _READ_COMMITTED
        upper_bound = self._upper_bound(partition)
        try:
            records = log.read(wanted.fetch_offset, max_bytes, upper_bound=upper_bound, min_one_message=min_one_message)
        except StorageError as failure:
            return _error(key.partition, error_code_of(failure))
        return PartitionData(
            partition_index=key.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=_aborted(partition, wanted.fetch_offset, records, upper_bound) if committed else None,
            records=b"" if records is None else records,
        )

    def _led_otherwise(self, partition: Partition, error: ErrorCode) -> PartitionData:
        """An error that comes with the leader as it is now, so that the client need not ask for metadata."""
        answer = _error(partition.index, error)
        if self._request.version >= _TELLS_LEADER_FROM_VERSION:
            node_id = self._broker.config.node_id
            answer.current_leader = LeaderIdAndEpoch(leader_id=node_id, leader_epoch=partition.leader_epoch)
            self._tells_leader = not self._is_replica  # brokers know one another
        return answer

    def _upper_bound(self, partition: Partition) -> int:
        committed = self._message.isolation_level == _READ_COMMITTED
        return partition.log.last_stable_offset if committed else partition.log.high_watermark

    def _has_later_segments(self) -> bool:
        """Whether what was read ends with its segment: the next one is there already, and waiting brings nothing."""
        for key, wanted in self._context.partitions.items():
            partition = self._find(key)
            if isinstance(partition, Partition):
                segments = partition.log.segments
                last = segments.floor(self._upper_bound(partition))
                if segments.floor(wanted.fetch_offset).base_offset < last.base_offset:
                    return True
        return False

    def _find(self, key: PartitionKey) -> Partition | ErrorCode:
        found = self._broker.replicas.find(key.topic or key.topic_id, key.partition)
        if found is not None:
            return found
        known = self._request.version < 13 or self._broker.cluster.topic_by_id(key.topic_id) is not None
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.UNKNOWN_TOPIC_ID

    def _diverged(self, partition: Partition, wanted: FetchedPartition) -> PartitionData | None:
        """Whether the reader's log went another way than this one, and from where on."""
        log = partition.log
        end = log.leader_epochs.end_offset_for(wanted.last_fetched_epoch, log.end_offset)
        if end.epoch < 0:
            return _error(partition.index, ErrorCode.OFFSET_OUT_OF_RANGE)
        if end.epoch == wanted.last_fetched_epoch and end.start_offset >= wanted.fetch_offset:
            return None
        return PartitionData(
            partition_index=partition.index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            diverging_epoch=EpochEndOffset(epoch=end.epoch, end_offset=end.start_offset),
            aborted_transactions=None,
            records=b"",
        )

    # --- waiting ---

    def _wait_at_partitions(self) -> None:
        self._waits_at = [p for p in map(self._find, self._context.partitions) if isinstance(p, Partition)]
        for partition in self._waits_at:
            partition.waiters[self] = None
        self._stable = self._last_stable_offsets()

    def _last_stable_offsets(self) -> list[int]:
        if self._message.isolation_level != _READ_COMMITTED:
            return []
        return [partition.log.last_stable_offset for partition in self._waits_at]

    def on_news(self, size: int) -> None:
        self._missing -= size
        if size and not self._is_worth_a_look():
            return
        answers, enough = self._read()
        if enough or not size:
            self._finish(answers)

    def _is_worth_a_look(self) -> bool:
        if self._message.isolation_level != _READ_COMMITTED:
            return self._missing <= 0
        # The few bytes that end a transaction let a reader of committed records see much more than themselves; and what
        # is written within one, however much it is, lets it see nothing.
        before, self._stable = self._stable, self._last_stable_offsets()
        return self._stable != before

    def _expired(self) -> None:
        self._finish(self._read()[0])

    def _finish(self, answers: Answers) -> None:
        self._stop_waiting()
        self._request.answer(self._answer(answers))

    def _answer(self, answers: Answers) -> FetchResponse:
        response = self._context.answer(answers)
        if self._tells_leader:
            response.node_endpoints = [
                NodeEndpoint(node_id=e.broker_id, host=e.host, port=e.port, rack=e.rack)
                for e in endpoints_for(self._broker, self._request.connection)
                if e.broker_id == self._broker.config.node_id
            ]
        return response

    def _stop_waiting(self) -> None:
        for partition in self._waits_at:
            partition.waiters.pop(self, None)
        self._waits_at = []
        if self._timer is not None:
            self._timer.cancel()


def _error(
    index: int, error: ErrorCode, aborted_transactions: Sequence[AbortedTransaction] | None = None
) -> PartitionData:
    """Where Kafka does not know the partition, it lists no aborted transactions; else it leaves out the list."""
    return PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=aborted_transactions,  # type: ignore[arg-type]
        records=b"",
    )


def _aborted(
    partition: Partition, fetch_offset: int, records: FileSlice | None, upper_bound: int
) -> list[AbortedTransaction]:
    if records is None:
        return []
    return [
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in aborted_in_stretch(partition.log.segments, fetch_offset, records, upper_bound)
    ]
