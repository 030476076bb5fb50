"""From the decision through the markers to the completion, with time in between, failures, and another coordinator."""

import pytest
from structlog.testing import capture_logs

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.transaction.ending import Ending
from barnabas.broker.transaction.records import read_record, transaction_record
from barnabas.broker.transaction.shard import TransactionShard
from barnabas.broker.transaction.states import TransactionState as State
from barnabas.protocol.errors import ErrorCode
from tests.broker.group.harness import ManualTimers
from tests.broker.transaction.harness import ID, T0, T1, metadata

MOVED = ErrorCode.NOT_LEADER_OR_FOLLOWER
NONE = ErrorCode.NONE


class Markers:
    """The partitions' leaders: what was sent to them, and answers that a test gives."""

    def __init__(self):
        self.local = False
        self.sent = []

    def are_local(self, partitions):
        return self.local

    def send(self, marker, done, is_wanted):
        if self.local:
            done(dict.fromkeys(marker.partitions, NONE))
        else:
            self.sent.append((marker, done))

    def answer(self, **errors):
        """Answer the oldest, with the errors of t0 and t1."""
        marker, done = self.sent.pop(0)
        done({partition: errors.get(f"t{partition[1]}", NONE) for partition in marker.partitions})
        return marker


class Coordinator:
    """Has one shard, and appends to a list that the next coordinator is given."""

    def __init__(self, markers, records=(), epoch=4):
        self.markers = markers
        self.records = list(records)
        self.epoch = epoch
        self.append_error = NONE
        self.timers = ManualTimers(0)
        self.told = []
        self.shard = TransactionShard(self.finish, self.timers)
        for record in records:
            self.shard.replay(read_record(CoordinatorRecord(record.key, record.value)))
        self.leads = True
        self.shard.loaded()

    def finish(self, prepared):
        Ending(self, self.markers, 0, self.shard, prepared, self.told.append).begin()

    def decide(self, state=State.PREPARE_COMMIT, partitions=(T0, T1), **fields):
        """The end is decided and committed."""
        prepared = metadata(state, partitions=partitions, **fields)
        self.write(transaction_record(prepared))
        self.finish(prepared)

    def write(self, record):
        self.records.append(record)
        self.shard.replay(record.read)

    def lose(self):
        self.leads = False
        self.shard.unloaded()

    @property
    def state(self):
        return self.shard.transactions[ID].state

    # --- what an ending needs ---

    def now_ms(self):
        return 1000

    def ask(self, index, operation):
        if not self.leads:
            operation.done(ErrorCode.NOT_COORDINATOR)
            return
        decision = operation.decide(self.shard)
        if decision.records and self.append_error:
            decision.done(self.append_error)
            return
        for record in decision.records:
            self.write(record)
        decision.done(decision.error)

    def coordinator_epoch(self, index):
        return self.epoch

    def coordinates(self, index, shard):
        return self.leads and shard is self.shard


@pytest.fixture
def markers():
    return Markers()


@pytest.fixture
def coordinator(markers):
    return Coordinator(markers)


def test_on_one_broker_it_is_complete_at_once(coordinator, markers):
    markers.local = True
    coordinator.decide()
    assert coordinator.told == [True]
    assert coordinator.state == State.COMPLETE_COMMIT


def test_without_partitions_nobody_has_to_be_told(coordinator):
    coordinator.decide(State.PREPARE_ABORT, partitions=())
    assert coordinator.told == [True]
    assert coordinator.state == State.COMPLETE_ABORT


def test_for_other_brokers_its_client_does_not_wait(coordinator, markers):
    coordinator.decide()
    assert coordinator.told == [False]
    assert coordinator.state == State.PREPARE_COMMIT
    marker = markers.answer()
    assert (marker.commit, marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (True, 7, 3, 4)
    assert set(marker.partitions) == {T0, T1}
    assert coordinator.state == State.COMPLETE_COMMIT
    assert coordinator.told == [False]


def test_only_markers_that_were_not_accepted_are_sent_again(coordinator, markers):
    coordinator.decide()
    with capture_logs() as logs:
        markers.answer(t1=MOVED)
        assert coordinator.state == State.PREPARE_COMMIT
        assert markers.sent == []
        coordinator.timers.advance(100)
        assert markers.answer(t1=MOVED).partitions == (T1,)
    assert [entry["log_level"] for entry in logs] == ["info"]  # and not with each look
    coordinator.timers.advance(100)
    markers.answer()
    assert coordinator.state == State.COMPLETE_COMMIT


def test_a_leader_that_cannot_write_is_asked_again_after_a_second(coordinator, markers):
    coordinator.decide()
    with capture_logs() as logs:
        markers.answer(t0=ErrorCode.KAFKA_STORAGE_ERROR)
    assert [entry["log_level"] for entry in logs] == ["error"]
    coordinator.timers.advance(999)
    assert markers.sent == []
    coordinator.timers.advance(1)
    assert markers.answer().partitions == (T0,)


def test_the_leaders_answer_one_by_one(coordinator, markers):
    coordinator.decide()
    _, done = markers.sent.pop()
    done({T0: MOVED})
    assert coordinator.state == State.PREPARE_COMMIT
    done({T1: NONE})
    assert coordinator.state == State.PREPARE_COMMIT  # nothing is lost of the first
    coordinator.timers.advance(100)
    assert markers.answer().partitions == (T0,)
    assert coordinator.state == State.COMPLETE_COMMIT


def test_where_something_newer_was_seen_no_marker_is_needed(coordinator, markers):
    coordinator.decide()
    markers.answer(t0=ErrorCode.INVALID_PRODUCER_EPOCH, t1=ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    assert coordinator.state == State.COMPLETE_COMMIT


def test_a_completion_that_cannot_be_written_is_written_later(coordinator, markers):
    coordinator.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    coordinator.decide()
    markers.answer()
    assert coordinator.state == State.PREPARE_COMMIT
    coordinator.append_error = NONE
    coordinator.timers.advance(1000)
    assert coordinator.state == State.COMPLETE_COMMIT
    assert markers.sent == []


def test_in_a_new_epoch_of_the_same_coordinator_markers_carry_that(coordinator, markers):
    coordinator.decide()
    markers.answer(t0=MOVED)
    coordinator.epoch = 6
    coordinator.timers.advance(100)
    assert markers.answer().coordinator_epoch == 6


class TestTheCoordinatorMoves:
    """The next one finds the decision in its log. No marker is lost, and the old one stops."""

    def test_before_any_marker_is_accepted(self, coordinator, markers):
        coordinator.decide(State.PREPARE_ABORT)
        old, old_done = markers.sent.pop()
        coordinator.lose()
        new = Coordinator(markers, coordinator.records, epoch=5)
        marker = markers.answer()
        assert marker == old._replace(coordinator_epoch=5, partitions=marker.partitions)
        assert set(marker.partitions) == {T0, T1}
        assert new.state == State.COMPLETE_ABORT
        old_done({T0: NONE, T1: NONE})  # an answer that comes late
        assert coordinator.state == State.PREPARE_ABORT

    def test_between_two_markers(self, coordinator, markers):
        coordinator.decide()
        markers.answer(t1=MOVED)
        coordinator.lose()
        coordinator.timers.advance(10_000)
        assert markers.sent == []
        new = Coordinator(markers, coordinator.records, epoch=5)
        assert set(markers.answer().partitions) == {T0, T1}
        assert new.state == State.COMPLETE_COMMIT

    def test_before_the_completion_is_committed(self, coordinator, markers):
        """What the old one wrote is truncated: every partition gets its marker twice, which changes nothing there."""
        coordinator.decide()
        decided = list(coordinator.records)
        markers.answer()
        assert coordinator.state == State.COMPLETE_COMMIT
        coordinator.lose()
        new = Coordinator(markers, decided, epoch=5)
        markers.answer()
        assert new.state == State.COMPLETE_COMMIT

    def test_and_comes_back(self, coordinator, markers):
        """Two endings of one transaction must not get in each other's way."""
        coordinator.decide()
        _, old_done = markers.sent.pop()
        coordinator.lose()
        again = Coordinator(markers, coordinator.records, epoch=6)
        old_done({T0: MOVED, T1: NONE})
        coordinator.timers.advance(10_000)
        assert len(markers.sent) == 1
        assert markers.answer().coordinator_epoch == 6
        assert again.state == State.COMPLETE_COMMIT
