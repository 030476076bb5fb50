"""A coordinator's shard without a broker: time is moved by hand, records are kept in a list, markers too."""

from __future__ import annotations

from itertools import count

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.transaction.decisions import complete, needs_producer_id
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.broker.transaction.operations import AbortTimedOut, AddPartitions, EndTransaction, Expire, InitProducerId
from barnabas.broker.transaction.records import read_record, transaction_record
from barnabas.broker.transaction.shard import TransactionShard
from barnabas.broker.transaction.states import TransactionState as State
from barnabas.protocol.errors import ErrorCode
from tests.broker.group.harness import ManualTimers

ID = "orders"
T0, T1 = ("t", 0), ("t", 1)


def metadata(state=State.EMPTY, *, producer_id=7, epoch=3, partitions=(), **fields) -> TransactionMetadata:
    """What is known about an id, in some state; its transaction started at 900."""
    began = state not in (State.EMPTY, State.DEAD)
    return TransactionMetadata(
        **{
            "transactional_id": ID,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "timeout_ms": 60_000,
            "state": state,
            "partitions": frozenset(partitions),
            "start_ms": 900 if began else -1,
            "last_update_ms": 1000,
            "previous_producer_id": producer_id,
            **fields,
        }
    )


class Coordinator:
    """What a producer sees of a shard. Operations are carried out as the run-time does: decide, append, replay, report.

    It starts with what another shard has appended, if that is given. With `hold_markers`, markers are written when a
    test says so (`write_markers`); else at once.
    """

    def __init__(self, records=(), now_ms=1_000_000):
        self.time = now_ms
        self.records: list[CoordinatorRecord] = list(records)
        self.markers: list[TransactionMetadata] = []
        self.hold_markers = False
        self.append_error = ErrorCode.NONE
        self._held = []
        self._producer_ids = count(1000 + len(self.records))
        self.shard = TransactionShard(lambda prepared: self.finish(0, prepared), ManualTimers(now_ms))
        for record in records:
            self.shard.replay(read_record(record))
        self.shard.loaded()

    def known(self, transactional_id=ID):
        return self.shard.transactions.get(transactional_id)

    def reloaded(self):
        """Another coordinator that has replayed what this one appended, and finishes what it finds decided."""
        return Coordinator(self.records, self.time)

    # --- what operations need from a coordinator ---

    def now_ms(self):
        return self.time

    def ask(self, index, operation):
        decision = operation.decide(self.shard)
        if decision.records and self.append_error:
            decision.done(self.append_error)
            return
        for record in decision.records:
            self.records.append(record)
            self.shard.replay(record.read)
        decision.done(decision.error)

    def finish(self, index, prepared, then=lambda complete: None):
        if self.hold_markers:
            self._held.append((prepared, then))
            return
        self.markers.append(prepared)
        record = transaction_record(complete(prepared, self.time))
        self.records.append(record)
        self.shard.replay(record.read)
        then(True)

    def write_markers(self):
        held, self._held = self._held, []
        self.hold_markers = False
        for prepared, then in held:
            self.finish(0, prepared, then)

    # --- requests ---

    def _new_producer_id(self, transactional_id):
        return next(self._producer_ids) if needs_producer_id(self.known(transactional_id)) else None

    def init(self, transactional_id=ID, expected=(-1, -1), timeout_ms=60_000):
        """(error, producer id, epoch); nothing if it waits."""
        answers = []
        new_id = self._new_producer_id(transactional_id)
        answer = lambda *answer: answers.append(answer)  # noqa: E731
        self.ask(0, InitProducerId(self, 0, transactional_id, timeout_ms, expected, new_id, answer))
        return answers[0] if answers else None

    def add(self, producer, *partitions, transactional_id=ID, version=2):
        errors = []
        added = frozenset(partitions)
        self.ask(0, AddPartitions(transactional_id, *producer, added, version, self.time, errors.append))
        return errors[0]

    def end(self, producer, commit=True, *, transactional_id=ID, version=2):
        """(error, producer id, epoch); nothing if it waits for markers."""
        answers = []
        new_id = self._new_producer_id(transactional_id)
        answer = lambda *answer: answers.append(answer)  # noqa: E731
        self.ask(0, EndTransaction(self, 0, transactional_id, *producer, commit, version, new_id, answer))
        return answers[0] if answers else None

    def abort_timed_out(self):
        for transactional_id in list(self.shard.transactions):
            self.ask(0, AbortTimedOut(self, 0, transactional_id))

    def expire(self, kept_ms):
        for transactional_id in list(self.shard.transactions):
            self.ask(0, Expire(transactional_id, kept_ms, self.time, lambda: None))

    # --- whole stories ---

    def begin_transaction(self, *partitions, version=2):
        """A producer with a transaction under way: its id and epoch."""
        _, *producer = self.init()
        assert self.add(producer, *(partitions or (T0,)), version=version) == ErrorCode.NONE
        return tuple(producer)
