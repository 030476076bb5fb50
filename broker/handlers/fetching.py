"""One Fetch request, until it is answered: it reads its partitions, and waits at them if there is not enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.clock import Timer
from barnabas.broker.errors import error_code_of
from barnabas.broker.handlers.current_leader import current_leader, endpoints_of
from barnabas.broker.replica.fetch_sessions import (
    FetchContext,
    FetchedPartition,
    PartitionKey,
    follower_of,
    size_of,
)
from barnabas.broker.replica.partition import NO_LEADER, Partition
from barnabas.broker.replica.replica_selector import ReplicaView
from barnabas.broker.replica.surroundings import Waiter
from barnabas.broker.security.authorizer import CheckedAccess
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from barnabas.storage.aborted_lookup import aborted_in_slice
from barnabas.storage.errors import OffsetOutOfRange, StorageError
from barnabas.storage.segment import FileSlice

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_TELLS_LEADER_FROM_VERSION: Final = 16
_FROM_FOLLOWERS_FROM_VERSION: Final = 11
_TOPIC_IDS_FROM_VERSION: Final = 13
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class _NoTopic(dict[str, bool]):
    """No topic may be read."""

    def __missing__(self, name: str) -> bool:
        return False


_NO_TOPIC: Final = _NoTopic()

Answers = list[tuple[PartitionKey, PartitionData]]
_Items = Iterable[tuple[PartitionKey, FetchedPartition]]


class Fetch:
    """One request, until it is answered. It waits at its partitions for news."""

    __slots__ = (
        "_broker",
        "_by_id",
        "_context",
        "_follower_epoch",
        "_follower_id",
        "_is_believed",
        "_is_new",
        "_is_replica",
        "_leaders",
        "_left",
        "_message",
        "_missing",
        "_readable",
        "_request",
        "_size",
        "_stable",
        "_timer",
        "_waits_at",
    )

    def __init__(self, broker: Broker, request: Request, message: FetchRequest, context: FetchContext) -> None:
        self._broker = broker
        self._request = request
        self._message = message
        self._context = context
        self._by_id = request.version >= _TOPIC_IDS_FROM_VERSION
        # A broker that follows, or a negative id.
        self._follower_id, self._follower_epoch = follower_of(message)
        self._is_replica = self._follower_id >= 0
        # Anybody else who claims to follow would move the high watermark past what replicas have.
        self._is_believed = not self._is_replica or request.connection.is_from_broker
        if self._is_replica and self._is_believed:
            request.meter = None  # brokers have no quotas
        # Whether topics may be read, by name; None: all of them may.
        self._readable = self._readable_topics(request.connection.access)
        self._is_new = True  # whether partitions are read for the first time
        # How much was read, may still be read, and is missing for an answer.
        self._size = self._left = self._missing = 0
        self._leaders: set[int] = set()  # those that the answer names
        self._timer: Timer | None = None
        self._waits_at: list[Partition] = []
        self._stable: list[int] = []  # for a reader of committed records: the last stable offset of each partition

    @property
    def reads_committed(self) -> bool:
        return self._message.isolation_level == READ_COMMITTED and not self._is_replica

    @property
    def client_id(self) -> str:
        return self._request.connection.client_id or ""

    def _readable_topics(self, access: CheckedAccess | None) -> Mapping[str, bool] | None:
        if access is None:
            return None
        if not self._is_replica:
            return access.readable_topics
        return None if access.cluster(AclOperation.CLUSTER_ACTION) else _NO_TOPIC

    def begin(self) -> FetchResponse | None:
        answers, enough = self._read()
        self._is_new = False
        if self._is_replica and not enough and self._was_appended_to():
            answers, enough = self._read()
        if enough or self._message.max_wait_ms <= 0 or not answers:
            return self._answer(answers)
        self._wait_at_partitions()
        self._timer = self._broker.clock.call_later(self._message.max_wait_ms / 1000, self._expired)
        self._request.on_abandon = self._stop_waiting
        return None

    def _was_appended_to(self) -> bool:
        """Whether there is something to read that was not there before.

        A follower's fetch position in one partition may commit records. Code that waited for that commit may append to
        a partition that this fetch has already read.
        """
        for key, wanted in self._context.partitions.items():
            partition = self._find(key)
            if not isinstance(partition, Partition) or partition.leadership is None:
                continue
            if wanted.fetch_offset < partition.log.end_offset:
                return True
        return False

    # --- reading ---

    def _read(self) -> tuple[Answers, bool]:
        """What every partition has, and whether that justifies an immediate answer."""
        self._begin_reading()
        partitions = self._context.partitions.items()
        answers: Answers = []
        enough = self._read_some(partitions, answers) or self._missing <= 0
        return answers, enough or (self._size > 0 and self._have_later_segments(partitions))

    def _begin_reading(self) -> None:
        limit = min(self._message.max_bytes, self._broker.config.fetch_max_bytes)
        if self._request.meter is not None:
            limit = min(limit, self._request.meter.most_fetched)
        self._size, self._left = 0, limit
        self._missing = min(self._message.min_bytes, limit)

    def _read_some(self, partitions: _Items, answers: Answers) -> bool:
        """Read some partitions. Returns whether something justifies an immediate answer, however little was read."""
        size, left = 0, self._left
        noteworthy = False
        for key, wanted in partitions:
            answer = self._read_partition(key, wanted, left, self._size + size == 0)
            answers.append((key, answer))
            if answer.records:
                read = size_of(answer)
                size += read
                left = max(0, left - read)
            noteworthy = (
                noteworthy
                or answer.error_code != 0
                or answer.diverging_epoch is not None
                or answer.preferred_read_replica != NO_LEADER
            )
        self._left = left
        self._size += size
        self._missing -= size
        return noteworthy

    def _read_partition(
        self, key: PartitionKey, wanted: FetchedPartition, limit: int, min_one_message: bool
    ) -> PartitionData:
        """Read up to `limit` bytes. If nothing was read yet, the first batch is read whatever its size."""
        partition = self._find(key)
        if self._readable is not None and not self._may_read(self._readable, key, partition):
            return failed(key.partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED, aborted_transactions=())
        if isinstance(partition, ErrorCode):
            answer = failed(key.partition, partition, aborted_transactions=())
            if partition == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self._name_leader(answer, current_leader(self._broker, self._name(key), key.partition))
            return answer
        epoch = wanted.current_leader_epoch
        if epoch >= 0 and epoch != partition.leader_epoch:
            error = partition.check_leader_epoch(epoch)
            if error == ErrorCode.FENCED_LEADER_EPOCH:
                return self._led_otherwise(partition, error)
            return failed(key.partition, error)
        log = partition.log
        if partition.leadership is None and not self._may_read_from_follower(partition):
            return self._led_otherwise(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self._is_replica and not (self._is_believed and partition.has_follower(self._follower_id)):
            # A follower that knows the leader's epoch may know about a reassignment that this leader will soon learn
            # about.
            if epoch >= 0:
                return failed(key.partition, ErrorCode.UNKNOWN_LEADER_EPOCH)
            return self._led_otherwise(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self._request.version < 10 and log.config.compression_type == "zstd":
            return failed(key.partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if wanted.last_fetched_epoch >= 0:
            diverged = self._diverged(partition, wanted)
            if diverged is not None:
                return diverged
        if self._is_replica:
            error = self._follower_has(partition, wanted)
            if error:
                return failed(key.partition, error)
        elif self._message.rack_id:
            closer = self._closer_replica(partition, wanted.fetch_offset)
            if closer != NO_LEADER:
                return _elsewhere(partition, closer)
        max_bytes = min(wanted.max_bytes, limit)
        if max_bytes < 0:
            return failed(key.partition, ErrorCode.UNKNOWN_SERVER_ERROR)
        committed = self._message.isolation_level == READ_COMMITTED and not self._is_replica
        upper_bound = self._upper_bound(partition)
        partition.traffic.fetches += 1
        try:
            records = log.read(wanted.fetch_offset, max_bytes, upper_bound=upper_bound, min_one_message=min_one_message)
            aborted = _aborted(partition, wanted.fetch_offset, records, upper_bound) if committed else None
        except (StorageError, OSError) as failure:
            if not isinstance(failure, OffsetOutOfRange):  # which is the reader's own mistake
                partition.traffic.failed_fetches += 1
            return failed(key.partition, error_code_of(failure))
        return PartitionData(
            partition_index=key.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            records=b"" if records is None else records,
        )

    def _may_read(self, readable: Mapping[str, bool], key: PartitionKey, partition: Partition | ErrorCode) -> bool:
        if isinstance(partition, Partition):
            return readable[partition.topic]
        name = self._broker.cluster.name_of(key.topic_id) if self._by_id else key.topic
        # An id that no topic has is unknown to everybody, except to a client that only claims to be a broker.
        return readable is not _NO_TOPIC if name is None else readable[name]

    def _may_read_from_follower(self, partition: Partition) -> bool:
        """A consumer may; a broker follows only the leader."""
        following = partition.leader_id != NO_LEADER
        return following and not self._is_replica and self._request.version >= _FROM_FOLLOWERS_FROM_VERSION

    def _follower_has(self, partition: Partition, wanted: FetchedPartition) -> ErrorCode:
        """Note how far a follower has come, once for each request."""
        log = partition.log
        if not log.log_start_offset <= wanted.fetch_offset <= log.end_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if not self._is_new:
            return ErrorCode.NONE
        return self._broker.replicas.follower_fetched(
            partition, self._follower_id, wanted.fetch_offset, wanted.follower_start_offset, self._follower_epoch
        )

    def _closer_replica(self, partition: Partition, offset: int) -> int:
        """A replica in sync that the consumer should read this offset from, or -1."""
        leadership, select = partition.leadership, self._broker.replicas.selector
        if leadership is None or select is None:
            return NO_LEADER
        brokers = self._broker.cluster.brokers
        followers = [
            ReplicaView(follower.end_offset, follower.caught_up_ms, broker_id, brokers[broker_id].rack)
            for broker_id, follower in leadership.followers.items()
            if broker_id in leadership.isr
            and broker_id in brokers
            and follower.log_start_offset <= offset <= follower.end_offset
        ]
        own = self._broker.config
        leader = ReplicaView(partition.log.end_offset, 0, own.node_id, own.broker_rack)
        selected = select(self._message.rack_id, leader, followers).broker_id
        return NO_LEADER if selected == own.node_id else selected

    def _led_otherwise(self, partition: Partition, error: ErrorCode) -> PartitionData:
        """An error that names the current leader, so that the client need not ask for metadata."""
        answer = failed(partition.index, error)
        if partition.leader_id != NO_LEADER:
            self._name_leader(answer, (partition.leader_id, partition.leader_epoch))
        return answer

    def _name_leader(self, answer: PartitionData, leader: tuple[int, int] | None) -> None:
        if leader is not None and self._request.version >= _TELLS_LEADER_FROM_VERSION:
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
            if not self._is_replica:  # brokers know each other
                self._leaders.add(leader[0])

    def _upper_bound(self, partition: Partition) -> int:
        log = partition.log
        if self._is_replica:
            return log.end_offset
        committed = self._message.isolation_level == READ_COMMITTED
        return log.last_stable_offset if committed else log.high_watermark

    def _have_later_segments(self, partitions: _Items) -> bool:
        """Whether the data ends with its segment: the next one exists already, and waiting would bring nothing."""
        for key, wanted in partitions:
            partition = self._find(key)
            if isinstance(partition, Partition):
                segments = partition.log.segments
                last = segments.floor(self._upper_bound(partition))
                if segments.floor(wanted.fetch_offset).base_offset < last.base_offset:
                    return True
        return False

    def _name(self, key: PartitionKey) -> str | bytes:
        return key.topic_id if self._by_id else key.topic

    def _find(self, key: PartitionKey) -> Partition | ErrorCode:
        topic = key.topic_id if self._by_id else key.topic
        replicas = self._broker.replicas
        return replicas.find(topic, key.partition) or replicas.missing(topic, key.partition)

    def _diverged(self, partition: Partition, wanted: FetchedPartition) -> PartitionData | None:
        """Whether the reader's log diverges from this one, and where."""
        log = partition.log
        end = log.leader_epochs.end_offset_for(wanted.last_fetched_epoch, log.end_offset)
        if end.epoch < 0:
            return failed(partition.index, ErrorCode.OFFSET_OUT_OF_RANGE)
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
            self._line_at(partition)[self] = None
        self._stable = self._last_stable_offsets()

    def _line_at(self, partition: Partition) -> dict[Waiter, None]:
        """Followers wait for what is written, consumers for what is committed."""
        return partition.append_waiters if self._is_replica else partition.waiters

    def _last_stable_offsets(self) -> list[int]:
        if self._is_replica or self._message.isolation_level != READ_COMMITTED:
            return []
        return [partition.log.last_stable_offset for partition in self._waits_at]

    def on_news(self, size: int) -> None:
        self._missing -= size
        if size and not self._may_be_enough():
            return
        answers, enough = self._read()
        if enough or not size:
            self._finish(answers)

    def _may_be_enough(self) -> bool:
        if self._is_replica or self._message.isolation_level != READ_COMMITTED:
            return self._missing <= 0
        # The few bytes that end a transaction let a reader of committed records see much more than themselves; data in
        # an open transaction, however much, lets it see nothing.
        before, self._stable = self._stable, self._last_stable_offsets()
        return self._stable != before

    def _expired(self) -> None:
        self._finish(self._read()[0])

    def _finish(self, answers: Answers) -> None:
        self._stop_waiting()
        self._request.answer(self._answer(answers))

    def _is_held_back(self, answers: Answers) -> bool:
        """Whether the client gets nothing now, because it is over its quota."""
        meter = self._request.meter
        if meter is None:
            return False
        return meter.is_over_with(lambda: self._request.route.size_of_answer(self._context.draft(answers)))

    def _answer(self, answers: Answers) -> FetchResponse:
        if self._is_held_back(answers):
            return self._context.empty_answer()
        if self._size:
            self._count(answers)
        response = self._context.answer(answers)
        self._tell_leader(response)
        return response

    def _count(self, answers: Iterable[tuple[PartitionKey, PartitionData]]) -> None:
        """Count what is sent, for the metrics."""
        for key, answer in answers:
            size = size_of(answer)
            if size:
                partition = self._find(key)
                if isinstance(partition, Partition):
                    if self._is_replica:
                        partition.traffic.replication_bytes_out += size
                    else:
                        partition.traffic.bytes_out += size

    def _tell_leader(self, response: FetchResponse) -> None:
        if self._leaders:
            response.node_endpoints = [
                NodeEndpoint(node_id=e.broker_id, host=e.host, port=e.port, rack=e.rack)
                for e in endpoints_of(self._broker, self._request.connection, self._leaders)
            ]

    def _stop_waiting(self) -> None:
        for partition in self._waits_at:
            self._line_at(partition).pop(self, None)
        self._waits_at = []
        if self._timer is not None:
            self._timer.cancel()


def failed(
    index: int, error: ErrorCode, aborted_transactions: Sequence[AbortedTransaction] | None = None
) -> PartitionData:
    """For an unknown partition, Kafka sends an empty list of aborted transactions; otherwise it sends null."""
    return PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=aborted_transactions,  # type: ignore[arg-type]
        records=b"",
    )


def _elsewhere(partition: Partition, broker_id: int) -> PartitionData:
    """Tell the consumer to read from another replica."""
    log = partition.log
    return PartitionData(
        partition_index=partition.index,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        preferred_read_replica=broker_id,
        aborted_transactions=None,
        records=b"",
    )


def _aborted(
    partition: Partition, fetch_offset: int, records: FileSlice | None, upper_bound: int
) -> list[AbortedTransaction]:
    if records is None:
        return []
    return [
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in aborted_in_slice(partition.log.segments, fetch_offset, records, upper_bound)
    ]
