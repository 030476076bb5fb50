"""The run-time of a coordinator: decide, append, replay, answer.

A coordinator's state is spread over the partitions of a topic of its own, a shard for each. Its methods decide and
change nothing durable; what they decide is a list of records. Those are appended to the shard's partition, then
replayed, and once they are committed whoever asked is answered. Loading a shard is the same replay over the whole
partition. There is no await between deciding and replaying: nothing is decided on a state that is about to change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, Generic, Protocol, TypeVar

import structlog

from broker.coordinator.decision import CoordinatorRecord, Decision, Operation
from broker.coordinator.transactional import InTransaction, TransactionEnd
from broker.errors import error_code_of
from broker.replica.partition import Partition
from broker.replica.replicas import Replicas
from protocol.errors import ErrorCode, ProtocolError
from protocol.records.batch import HEADER_SIZE, BatchHeader, read_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.control import ControlType, read_end_transaction_marker
from protocol.records.record import read_records
from storage.errors import LogFailure
from storage.segment import FileSlice
from storage.write import AppendResult

log = structlog.get_logger()

# How much is read at a time while a shard is loaded: the loop has its turn in between.
_LOAD_BYTES: Final = 128 * 1024
_RECORDS_A_PART: Final = 1000
_SHORT: Final = 100  # characters of a group's or a transactional id
_PRODUCERS_FAULT: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)


class Shard(Protocol):
    def replay(self, read: Any) -> None:
        """Make a record's change.

        Where transactions write to the partition (__consumer_offsets), also `InTransaction` and `TransactionEnd`.
        """

    def loaded(self) -> None:
        """All records have been replayed."""

    def unloaded(self) -> None:
        """The partition is gone: whoever waits for an answer is to look for another coordinator."""


S = TypeVar("S", bound=Shard)


class CoordinatorRuntime(Generic[S]):
    def __init__(
        self,
        topic: str,
        replicas: Replicas,
        make_shard: Callable[[Callable[[Decision], None]], S],
        read_record: Callable[[CoordinatorRecord], object | None],
    ) -> None:
        """`make_shard` gets a function that carries out what the shard decides of its own accord."""
        self.topic = topic
        self._replicas = replicas
        self._make_shard = make_shard
        self._read_record = read_record
        self._shards: dict[int, S] = {}
        self._loading: set[int] = set()
        self._asked: dict[int, list[Operation]] = {}

    def load(self) -> None:
        """Have a shard for every partition of the topic; those that are new are loaded."""
        for partition in self._replicas.of_topic(self.topic):
            index = partition.index
            if index not in self._shards and index not in self._loading:
                self._loading.add(index)
                shard = self._make_shard(lambda decision, index=index: self.carry_out(index, decision))  # type: ignore[misc]
                self._load(partition, shard, partition.log.log_start_offset)

    def unload(self) -> None:
        """The topic has been deleted, and all that was kept in it with it."""
        shards, self._shards = self._shards, {}
        self._loading.clear()
        asked, self._asked = self._asked, {}
        for operation in chain.from_iterable(asked.values()):
            operation.done(ErrorCode.NOT_COORDINATOR)
        for shard in shards.values():
            shard.unloaded()

    def _load(self, partition: Partition, shard: S, offset: int) -> None:
        """Replay from an offset on, a stretch at a time: read and parsed on a worker thread, replayed here."""
        if self._replicas.find(self.topic, partition.index) is not partition:
            return  # deleted meanwhile
        stretch = partition.log.read(offset, _LOAD_BYTES, upper_bound=partition.log.end_offset)
        if stretch is None:
            self._loading.discard(partition.index)
            self._shards[partition.index] = shard
            shard.loaded()
            return

        def parsed(outcome: tuple[int, list[object]] | Exception) -> None:
            if isinstance(outcome, Exception):
                name = str(partition.log.topic_partition)
                log.error("coordinator could not be loaded", partition=name, error=str(outcome))
                self._loading.discard(partition.index)  # and tried again when somebody looks for the coordinator
                return
            next_offset, found = outcome
            for read in found:
                shard.replay(read)
            self._load(partition, shard, next_offset)

        self._replicas.worker.run(lambda: self._parse(stretch, offset), parsed)

    def _parse(self, stretch: FileSlice, offset: int) -> tuple[int, list[object]]:
        """The records of the whole batches in a stretch of the log, and the offset after them."""
        data = memoryview(os.pread(stretch.handle.fileno(), stretch.size, stretch.position))
        found: list[object] = []
        for batch, header in whole_batches(data):
            offset = header.next_offset
            if header.is_control:
                marker = read_end_transaction_marker(batch, header)
                if marker is not None:
                    found.append(TransactionEnd(header.producer_id, marker.control_type is ControlType.COMMIT))
                continue
            for record in read_records(batch, header):
                try:
                    read = self._read_record(CoordinatorRecord(record.key or b"", record.value))
                except ProtocolError as error:
                    log.error("unreadable record passed over", topic=self.topic, offset=record.offset, error=str(error))
                    continue
                if read is not None:
                    found.append(InTransaction(header.producer_id, read) if header.is_transactional else read)
        return offset, found

    # --- asking ---

    def shard_of(self, key: str) -> tuple[int, S] | ErrorCode:
        """The shard that a group or transactional id belongs to, and its number."""
        count = len(self._replicas.of_topic(self.topic))
        if not count:
            return ErrorCode.NOT_COORDINATOR
        index = partition_of(key, count)
        shard = self._shards.get(index)
        if shard is not None:
            return index, shard
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if index in self._loading else ErrorCode.NOT_COORDINATOR

    @property
    def shards(self) -> dict[int, S]:
        return self._shards

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def carry_out(self, index: int, decision: Decision) -> None:
        """Append, replay, and tell when it is committed."""
        if not decision.records:
            decision.done(ErrorCode.NONE)
            return
        partition = self._replicas.find(self.topic, index)
        if partition is None:
            decision.done(ErrorCode.NOT_COORDINATOR)
            return
        now_ms = self._replicas.clock.now_ms()
        batch = _batch(decision, now_ms)
        if len(batch) > partition.log.config.max_message_bytes:
            decision.done(ErrorCode.MESSAGE_TOO_LARGE)
            return
        result = partition.append_now(memoryview(batch), now_ms)
        if not isinstance(result, AppendResult):
            error = error_code_of(result)
            if error not in _PRODUCERS_FAULT:
                name = str(partition.log.topic_partition)
                log.error("coordinator could not append", partition=name, error=str(result))
            decision.done(_error_for_clients(error))
            return
        shard = self._shards[index]
        producer = decision.producer
        for record in decision.records:
            read = record.read or self._read_record(record)
            if read is not None:
                shard.replay(read if producer is None else InTransaction(producer.producer_id, read))
        partition.when_committed(result.last_offset + 1, lambda failure: decision.done(_committed(failure)))

    def end_transaction(self, index: int, end: TransactionEnd) -> None:
        """A marker has been appended to a shard's partition. A shard that is being loaded finds it there itself."""
        shard = self._shards.get(index)
        if shard is not None:
            shard.replay(end)

    def carry_out_in_parts(self, index: int, records: Sequence[CoordinatorRecord]) -> None:
        """Make true what need not be true all at once, and may be more than fits into a batch."""
        for start in range(0, len(records), _RECORDS_A_PART):
            self.carry_out(index, Decision(records[start : start + _RECORDS_A_PART]))

    # --- several at once ---

    @property
    def has_asked(self) -> bool:
        return bool(self._asked)

    def ask(self, index: int, operation: Operation) -> None:
        """Have an operation decided by `carry_out_asked`, with all else that is asked of the shard till then."""
        asked = self._asked.get(index)
        if asked is None:
            self._asked[index] = [operation]
        else:
            asked.append(operation)

    def carry_out_asked(self) -> None:
        """Decide what was asked for, in its order; what a shard decides is one append, and told after it.

        An operation whose key has been decided on already waits until that is replayed: it is decided on what is true.
        """
        while self._asked:
            asked, self._asked = self._asked, {}
            for index, operations in asked.items():
                self._carry_out_operations(index, operations)

    def _carry_out_operations(self, index: int, operations: list[Operation]) -> None:
        partition = self._replicas.find(self.topic, index)
        shard = self._shards.get(index)
        if partition is None or shard is None:
            for operation in operations:
                operation.done(ErrorCode.NOT_COORDINATOR)
            return
        decided: list[tuple[Operation, CoordinatorRecord]] = []
        keys: set[str] = set()
        for operation in operations:
            if operation.key in keys:
                self._append_decided(partition, shard, decided)
                decided = []
                keys.clear()
            outcome = operation.decide(shard)
            if isinstance(outcome, CoordinatorRecord):
                decided.append((operation, outcome))
                keys.add(operation.key)
            else:
                self._tell_when_committed(partition, ((operation, outcome),))
        if decided:
            self._append_decided(partition, shard, decided)

    def _append_decided(
        self, partition: Partition, shard: S, decided: Sequence[tuple[Operation, CoordinatorRecord]]
    ) -> None:
        now_ms = self._replicas.clock.now_ms()
        batch = build_batch([NewRecord(now_ms, record.key, record.value) for _, record in decided])
        if len(batch) > partition.log.config.max_message_bytes:
            if len(decided) == 1:
                decided[0][0].done(ErrorCode.UNKNOWN_SERVER_ERROR)
                return
            middle = len(decided) // 2
            self._append_decided(partition, shard, decided[:middle])
            self._append_decided(partition, shard, decided[middle:])
            return
        result = partition.append_now(memoryview(batch), now_ms)
        if not isinstance(result, AppendResult):
            log.error("coordinator could not append", partition=str(partition.log.topic_partition), error=str(result))
            error = _error_for_clients(error_code_of(result))
            for operation, _ in decided:
                operation.done(error)
            return
        for _, record in decided:
            shard.replay(record.read)
        self._tell_when_committed(partition, [(operation, ErrorCode.NONE) for operation, _ in decided])

    def _tell_when_committed(self, partition: Partition, told: Sequence[tuple[Operation, ErrorCode]]) -> None:
        """Tell when all that was decided up to now is committed: an answer may rest on any of it."""

        def tell(failure: LogFailure | None) -> None:
            error = _committed(failure)
            for operation, outcome in told:
                operation.done(error or outcome)

        partition.when_committed(partition.log.end_offset, tell)

    def is_settled(self, index: int) -> bool:
        """Whether nothing is under way in a shard, so that what its state says now may be relied on."""
        partition = self._replicas.find(self.topic, index)
        return not self._asked and partition is not None and partition.log.high_watermark == partition.log.end_offset

    def leader_epoch(self, index: int) -> int:
        """The epoch in which this broker coordinates a shard."""
        partition = self._replicas.find(self.topic, index)
        return -1 if partition is None else partition.leader_epoch


def partition_of(key: str, partitions: int) -> int:
    """As every client and broker computes it: Java's String.hashCode, without its sign."""
    # What clients make long is not worth the memory.
    signed = _remembered_hash_code(key) if len(key) <= _SHORT else _hash_code(key)
    return (0 if signed == -(2**31) else abs(signed)) % partitions


def _hash_code(key: str) -> int:
    value = 0
    utf16 = key.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(utf16), 2):
        value = (31 * value + int.from_bytes(utf16[position : position + 2], "big")) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


_remembered_hash_code = lru_cache(10_000)(_hash_code)


def whole_batches(data: memoryview) -> Iterator[tuple[memoryview, BatchHeader]]:
    position = 0
    while len(data) - position >= HEADER_SIZE:
        header = read_header(data, position)
        if header.size > len(data) - position:
            return
        yield data[position : position + header.size], header
        position += header.size


def _batch(decision: Decision, now_ms: int) -> bytearray:
    records = [NewRecord(now_ms, record.key, record.value) for record in decision.records]
    if decision.producer is None:
        return build_batch(records)
    producer_id, epoch = decision.producer
    return build_batch(records, producer_id=producer_id, producer_epoch=epoch, transactional=True)


def _committed(failure: LogFailure | None) -> ErrorCode:
    return ErrorCode.NONE if failure is None else _error_for_clients(error_code_of(failure))


def _error_for_clients(error: ErrorCode) -> ErrorCode:
    """What a failed append means to a client of the coordinator: to ask again, perhaps another one.

    Unless it is the client's own fault: it writes in a transaction that is not its own any more.
    """
    if error in _PRODUCERS_FAULT:
        return error
    disk = error == ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NOT_COORDINATOR if disk else ErrorCode.COORDINATOR_NOT_AVAILABLE
