"""The run-time of a coordinator: decide, append, replay, answer.

A coordinator's state is spread over the partitions of its own topic, one shard per partition that this broker leads.
Its methods decide but change nothing durable; a decision is a list of records. These are appended to the shard's
partition, then replayed, and once they are committed the client is answered. There is no await between deciding and
replaying, so nothing is decided on a state that is about to change.

A shard may be ahead of what is committed. So an answer that only reads it waits as well, until everything decided so
far is committed: a new leader may not have the rest. When leadership is lost, the shard is dropped as a whole, and
waiting clients get NOT_COORDINATOR. Nothing has to be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import structlog

from barnabas.broker.clock import Timer
from barnabas.broker.coordinator.at_offset import AtOffset
from barnabas.broker.coordinator.key_hash import partition_of
from barnabas.broker.coordinator.loading import Load, ReadRecord
from barnabas.broker.coordinator.result import (
    NOTHING_TO_DO,
    CoordinatorRecord,
    CoordinatorResult,
    Operation,
    ProducerIdAndEpoch,
)
from barnabas.broker.coordinator.transactional import InTransaction, TransactionEnd
from barnabas.broker.errors import error_code_of
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.replicas import Replicas
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.storage.write import AppendResult

log = structlog.get_logger()

_RECORDS_PER_PART: Final = 1000
_FEW_KEYS: Final = 100
_FEW_CHARACTERS: Final = 10_000  # in all of them; a hash reads every character, and ids may have 32,767
_PRODUCER_ERRORS: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
# The partition has moved, or cannot be written here: another broker will coordinate.
_ELSEWHERE: Final = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR)

# What is set aside under the name of a partition: all of it, or records in it that cannot be read.
_SHARD: Final = "coordinator"
_RECORDS: Final = "coordinator's records"

Tell = Callable[[ErrorCode], None]


class Shard(Protocol):
    def replay(self, read: Any) -> None:
        """Make a record's change.

        Where transactions write to the partition (__consumer_offsets), also `InTransaction` and `TransactionEnd`.
        """

    def loaded(self) -> None:
        """All records have been replayed."""

    def unloaded(self) -> None:
        """The partition is led elsewhere, or gone: clients that wait must look for another coordinator.

        The shard does nothing from now on, whatever it still waits for.
        """


S = TypeVar("S", bound=Shard)


class _Led(Generic[S]):
    """A partition that this broker leads, and its shard, from the load until leadership is lost."""

    __slots__ = ("ends", "index", "is_loaded", "leader_epoch", "name", "partition", "shard")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.index = partition.index
        self.name = str(partition.log.topic_partition)
        self.leader_epoch = partition.leader_epoch
        self.shard: S
        self.is_loaded = False
        self.ends: list[TransactionEnd] = []  # were written behind what is being loaded


class CoordinatorRuntime(Generic[S]):
    def __init__(
        self,
        topic: str,
        replicas: Replicas,
        make_shard: Callable[[Callable[[CoordinatorResult], None]], S],
        read_record: ReadRecord,
        *,
        kind: str,
        in_transactions: bool = False,
        with_offsets: bool = False,
        timeout_ms: Callable[[], int] | None = None,
        too_large: ErrorCode = ErrorCode.MESSAGE_TOO_LARGE,
    ) -> None:
        """`make_shard` gets a function that carries out what the shard decides by itself.

        `kind` is what the keys of operations are: what the set-aside list calls one that fails. Shards see transactions
        and their ends only if those write to the topic (`in_transactions`). With `with_offsets`, records are replayed
        as `AtOffset`. `timeout_ms` is how long a client waits for replicas; `too_large` is the error that it gets if a
        decision does not fit into a batch.
        """
        self.topic = topic
        self.kind = kind
        self._replicas = replicas
        self._set_aside = replicas.set_aside
        self._make_shard = make_shard
        self._read_record = read_record
        self._in_transactions = in_transactions
        self._with_offsets = with_offsets
        self._timeout_ms = timeout_ms
        self._too_large = too_large
        self._led: dict[int, _Led[S]] = {}
        self._shards: dict[int, S] = {}  # those that are loaded
        self._asked: dict[int, list[Operation]] = {}

    # --- leading ---

    def on_leader(self, partition: Partition) -> None:
        """This broker leads a partition, perhaps in a new epoch. Loads its shard, unless it is already loaded.

        A loaded shard stays in the next epoch of the same leader: nobody else has written meanwhile.
        """
        if partition.topic != self.topic:
            return
        led = self._led.get(partition.index)
        if led is not None:
            same = led.partition is partition
            if same and (led.is_loaded or led.leader_epoch == partition.leader_epoch):
                led.leader_epoch = partition.leader_epoch
                return
            self._drop(led)
        self._begin(_Led(partition))

    def on_not_leader(self, partition: Partition) -> None:
        """Another broker leads the partition, or it was deleted."""
        led = self._led.get(partition.index) if partition.topic == self.topic else None
        if led is not None and led.partition is partition:
            self._drop(led)

    def load(self) -> None:
        """Check all partitions that this broker leads again: loading one may have failed."""
        for partition in self._replicas.of_topic(self.topic):
            if leads(partition):
                self.on_leader(partition)

    def unload(self) -> None:
        """Drop every shard: the topic has been deleted, or the broker stops."""
        for led in list(self._led.values()):
            self._drop(led)

    def _begin(self, led: _Led[S]) -> None:
        self._led[led.index] = led
        led.shard = self._make_shard(lambda decision: self._carry_out(led, decision))

        def done(failure: Exception | None) -> None:
            self._loaded(led, load.passed_over, failure)

        load = Load(
            led.partition,
            self._replicas.worker,
            self._read_record,
            self._in_transactions,
            self._with_offsets,
            led.shard.replay,
            lambda: self._led.get(led.index) is led,
            done,
        )
        load.begin()

    def _loaded(self, led: _Led[S], passed_over: str, failure: Exception | None) -> None:
        if failure is None:
            led.is_loaded = True
            self._shards[led.index] = led.shard
            self._set_aside.remove(_SHARD, led.name)
            if passed_over:
                self._set_aside.add(_RECORDS, led.name, passed_over)
            try:
                for end in led.ends:
                    led.shard.replay(end)
                led.shard.loaded()
            except Exception as error:
                failure = error
        if failure is not None:
            # The shard has no coordinator. The others continue, and loading is retried when a client looks for it.
            self._drop(led)
            if leads(led.partition):  # otherwise another broker loads it: nothing is wrong here
                self._set_aside.add(_SHARD, led.name, failure)

    def _drop(self, led: _Led[S]) -> None:
        del self._led[led.index]
        self._shards.pop(led.index, None)
        for operation in self._asked.pop(led.index, ()):
            operation.done(ErrorCode.NOT_COORDINATOR)
        led.shard.unloaded()
        count = self._replicas.partition_count(self.topic)
        for kind, name, _ in self._set_aside.entries():
            if (kind in (_SHARD, _RECORDS) and name == led.name) or (
                kind == self.kind and (not count or partition_of(name, count) == led.index)
            ):
                self._set_aside.remove(kind, name)

    # --- asking ---

    def shard_of(self, key: str) -> tuple[int, S] | ErrorCode:
        """The shard that a group or transactional id belongs to, and its number."""
        count = self._replicas.partition_count(self.topic)
        if not count:
            return ErrorCode.NOT_COORDINATOR
        index = partition_of(key, count)
        shard = self._shards.get(index)
        if shard is not None:
            return index, shard
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if index in self._led else ErrorCode.NOT_COORDINATOR

    @property
    def shards(self) -> dict[int, S]:
        return self._shards

    @property
    def is_loading(self) -> bool:
        return len(self._shards) < len(self._led)

    def leader_epoch(self, index: int) -> int:
        """The epoch in which this broker coordinates a shard."""
        led = self._led.get(index)
        return -1 if led is None else led.partition.leader_epoch

    # --- waiting ---

    def when_committed(self, index: int, tell: Tell) -> None:
        """Call back when everything that was decided so far in a shard is committed, because an answer may depend on
        any of it: with NONE, or with the error that a client gets instead of the answer.
        """
        led = self._led.get(index)
        if led is None:
            tell(ErrorCode.NOT_COORDINATOR)
        else:
            self._when_committed(led, tell)

    def _when_committed(self, led: _Led[S], tell: Tell) -> None:
        waiting = _Waiting(tell, lambda: self._look_at(led))
        partition = led.partition
        partition.when_committed(partition.log.end_offset, waiting.committed)
        if waiting.tell is not None and self._timeout_ms is not None:
            delay = self._timeout_ms() / 1000
            waiting.timer = self._replicas.clock.call_later(delay, waiting.timed_out)

    def _look_at(self, led: _Led[S]) -> None:
        """Something failed to be committed. If that is because the partition is lost, so is the shard, before anybody
        acts on the failure."""
        if self._led.get(led.index) is led and not leads(led.partition):
            self._drop(led)

    def is_settled(self, index: int) -> bool:
        """Whether nothing is in flight in a shard, so that its state is final."""
        led = self._led.get(index)
        return led is not None and index not in self._asked and self._is_committed(led)

    def _is_committed(self, led: _Led[S]) -> bool:
        return led.partition.log.high_watermark >= led.partition.log.end_offset

    def indexes_of(self, keys: Collection[str] | None) -> Collection[int]:
        """The shards of these keys; for many or long keys, and with None, all of them."""
        count = self._replicas.partition_count(self.topic)
        if keys is None or len(keys) > _FEW_KEYS or sum(map(len, keys)) > _FEW_CHARACTERS or not count:
            return list(self._shards)
        return {partition_of(key, count) for key in keys}

    def all_committed(self, indexes: Iterable[int]) -> bool:
        """Whether answers that depend on these shards need not wait."""
        for index in indexes:
            led = self._led.get(index)
            if led is not None and not self._is_committed(led):
                return False
        return True

    def when_all_committed(self, indexes: Collection[int], then: Callable[[bool], None]) -> None:
        """Call back when everything decided so far in these shards is committed; with False if some of it never is."""
        left, committed = 1, True

        def one(error: ErrorCode) -> None:
            nonlocal left, committed
            left -= 1
            committed = committed and not error
            if not left:
                then(committed)

        for index in indexes:
            led = self._led.get(index)
            if led is not None:
                left += 1
                self._when_committed(led, one)
        one(ErrorCode.NONE)

    # --- decisions of a shard's own, or for one client ---

    def carry_out(self, index: int, decision: CoordinatorResult) -> None:
        """Append, replay, and report when it is committed."""
        led = self._led.get(index)
        if led is None:
            decision.done(ErrorCode.NOT_COORDINATOR)
        else:
            self._carry_out(led, decision)

    def _carry_out(self, led: _Led[S], decision: CoordinatorResult) -> None:
        if self._shards.get(led.index) is not led.shard:
            decision.done(ErrorCode.NOT_COORDINATOR)
        elif decision is not NOTHING_TO_DO:
            self._make_true(led, [decision])

    def carry_out_in_parts(self, index: int, records: Sequence[CoordinatorRecord]) -> None:
        """Append records that need not take effect together and may not fit into one batch."""
        for start in range(0, len(records), _RECORDS_PER_PART):
            self.carry_out(index, CoordinatorResult(records[start : start + _RECORDS_PER_PART]))

    def end_transaction(self, index: int, end: TransactionEnd) -> None:
        """A marker has been appended to a shard's partition. A load does not read what was appended after it
        started."""
        led = self._led.get(index)
        if led is None:
            return
        if led.is_loaded:
            led.shard.replay(end)
        else:
            led.ends.append(end)

    # --- operations, several at once ---

    @property
    def has_asked(self) -> bool:
        return bool(self._asked)

    def ask(self, index: int, operation: Operation) -> None:
        """Queue an operation; `carry_out_asked` decides it together with the others of the shard."""
        asked = self._asked.get(index)
        if asked is None:
            self._asked[index] = [operation]
        else:
            asked.append(operation)

    def carry_out_asked(self) -> None:
        """Decide the queued operations in order; the decisions of a shard are one append, and are answered after it.

        A second operation on the same key waits until the first is replayed, so that it sees the true state.
        """
        while self._asked:
            asked, self._asked = self._asked, {}
            for index, operations in asked.items():
                self._carry_out_operations(index, operations)

    def _carry_out_operations(self, index: int, operations: list[Operation]) -> None:
        led = self._led.get(index)
        if led is None or not led.is_loaded:
            for operation in operations:
                operation.done(ErrorCode.NOT_COORDINATOR)
            return
        decided: list[CoordinatorResult] = []
        keys: set[str] = set()
        for operation in operations:
            if operation.key in keys:
                self._make_true(led, decided)
                decided = []
                keys.clear()
            try:
                decision = operation.decide(led.shard)
            except Exception as error:
                self._set_aside.add(self.kind, operation.key, error)
                decision = CoordinatorResult(
                    done=operation.done, error=ErrorCode.UNKNOWN_SERVER_ERROR, key=operation.key
                )
            if decision.records:
                decided.append(decision)
                keys.add(operation.key)
            else:
                self._make_true(led, [decision])
        if decided:
            self._make_true(led, decided)

    # --- what was decided ---

    def _make_true(self, led: _Led[S], decided: Sequence[CoordinatorResult]) -> None:
        """Append the records of decisions as one batch, replay them, and report when they are committed.

        A decision that belongs to a producer's transaction comes alone, because its batch is the producer's.
        """
        records = [record for decision in decided for record in decision.records]
        if not records and self._is_committed(led):
            self._tell(decided, ErrorCode.NONE)
            return
        error = self._append(led, records, decided[0].producer) if records else ErrorCode.NONE
        if error == ErrorCode.MESSAGE_TOO_LARGE and len(decided) > 1:
            middle = len(decided) // 2
            self._make_true(led, decided[:middle])
            self._make_true(led, decided[middle:])
        elif error:
            self._tell(decided, self._too_large if error == ErrorCode.MESSAGE_TOO_LARGE else error)
        else:
            self._when_committed(led, lambda error: self._tell(decided, error))

    def _tell(self, decided: Sequence[CoordinatorResult], error: ErrorCode) -> None:
        for decision in decided:
            try:
                decision.done(error or decision.error)
            except Exception as raised:
                self._set_aside.add(self.kind, decision.key, raised)

    def _append(
        self, led: _Led[S], records: Sequence[CoordinatorRecord], producer: ProducerIdAndEpoch | None
    ) -> ErrorCode:
        """Append records and replay them. Or return the error; then nothing has changed."""
        partition = led.partition
        now_ms = self._replicas.clock.now_ms()
        reads = [record.read or self._read_record(record) for record in records]
        batch = _batch(records, producer, now_ms)
        if len(batch) > partition.log.config.max_message_bytes:
            return ErrorCode.MESSAGE_TOO_LARGE
        if not partition.has_enough_replicas():
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        result = partition.append_now(memoryview(batch), now_ms)
        if not isinstance(result, AppendResult):
            error = error_code_of(result)
            if error not in _PRODUCER_ERRORS:
                log.error("coordinator could not append", partition=led.name, error=str(result))
            return _error_for_clients(error)
        for offset, read in enumerate(reads, result.base_offset):
            if read is None:
                continue
            if self._with_offsets:
                led.shard.replay(AtOffset(offset, read))
            else:
                led.shard.replay(read if producer is None else InTransaction(producer.producer_id, read))
        return ErrorCode.NONE


class _Waiting:
    """Called back once: when something is committed, when it never will be, or when it takes too long."""

    __slots__ = ("failed", "tell", "timer")

    def __init__(self, tell: Tell, failed: Callable[[], None]) -> None:
        """`failed` is called before a failure is reported."""
        self.tell: Tell | None = tell
        self.failed = failed
        self.timer: Timer | None = None

    def committed(self, failure: Exception | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if failure is not None:
            self.failed()
        self._tell(ErrorCode.NONE if failure is None else _error_for_clients(error_code_of(failure)))

    def timed_out(self) -> None:
        self._tell(_error_for_clients(ErrorCode.REQUEST_TIMED_OUT))

    def _tell(self, error: ErrorCode) -> None:
        tell, self.tell = self.tell, None
        if tell is not None:
            tell(error)


def leads(partition: Partition) -> bool:
    """Whether this broker leads a partition that it has."""
    return partition.leadership is not None


def _batch(records: Sequence[CoordinatorRecord], producer: ProducerIdAndEpoch | None, now_ms: int) -> bytearray:
    new = [NewRecord(now_ms, record.key, record.value) for record in records]
    if producer is None:
        return build_batch(new)
    producer_id, epoch = producer
    return build_batch(new, producer_id=producer_id, producer_epoch=epoch, transactional=True)


def _error_for_clients(error: ErrorCode) -> ErrorCode:
    """The error for a client of the coordinator after a failed append: it must ask again, perhaps another broker.

    Unless it is the client's own fault: it writes in a transaction that is no longer its own.
    """
    if error in _PRODUCER_ERRORS:
        return error
    return ErrorCode.NOT_COORDINATOR if error in _ELSEWHERE else ErrorCode.COORDINATOR_NOT_AVAILABLE
