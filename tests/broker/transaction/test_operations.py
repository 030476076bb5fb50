"""Operations on transactional ids: whole scenarios, and random ones with crashes in between."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.transaction.records import read_record, transaction_record
from barnabas.broker.transaction.shard import TransactionShard
from barnabas.broker.transaction.states import COMPLETED, PREDECESSORS
from barnabas.broker.transaction.states import TransactionState as State
from barnabas.protocol.errors import ErrorCode
from tests.broker.transaction.harness import T0, T1, Coordinator, metadata
from tests.support.effort import examples


@pytest.fixture
def coordinator():
    return Coordinator()


def states(coordinator):
    return [read_record(record)[1].state.label for record in coordinator.records]


# --- stories ---


def test_a_transaction_with_an_epoch_of_its_own(coordinator):
    producer = coordinator.begin_transaction(T0, T1)
    assert coordinator.end(producer) == (ErrorCode.NONE, producer[0], 1)
    assert states(coordinator) == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    (marker,) = coordinator.markers
    assert (marker.partitions, marker.producer_epoch) == ({T0, T1}, 1)


def test_a_transaction_in_the_classic_way(coordinator):
    producer = coordinator.begin_transaction(T0, version=0)
    assert coordinator.end(producer, False, version=0) == (ErrorCode.NONE, *producer)
    assert coordinator.add(producer, T1, version=0) == ErrorCode.NONE
    assert coordinator.end(producer, version=0) == (ErrorCode.NONE, *producer)
    assert states(coordinator)[1:] == [
        *("Ongoing", "PrepareAbort", "CompleteAbort"),
        *("Ongoing", "PrepareCommit", "CompleteCommit"),
    ]


def test_an_end_is_answered_when_its_markers_are_written(coordinator):
    producer = coordinator.begin_transaction()
    coordinator.hold_markers = True
    assert coordinator.end(producer) is None
    assert coordinator.init() == (ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)
    coordinator.write_markers()
    assert coordinator.known().state == State.COMPLETE_COMMIT


def test_an_end_whose_answer_was_lost_is_answered_again(coordinator):
    producer = coordinator.begin_transaction()
    first = coordinator.end(producer)
    written = len(coordinator.records)
    assert coordinator.end(producer) == first
    assert coordinator.reloaded().end(producer) == first
    assert len(coordinator.records) == written


def test_a_new_producer_aborts_what_the_previous_one_left_open(coordinator):
    zombie = coordinator.begin_transaction()
    error, *producer = coordinator.init()
    assert (error, producer) == (ErrorCode.NONE, [zombie[0], 2])  # one epoch for the abort, one for the new one
    assert states(coordinator)[2:] == ["PrepareAbort", "CompleteAbort", "Empty"]
    assert coordinator.add(zombie, T0) == ErrorCode.PRODUCER_FENCED
    assert coordinator.end(zombie) == (ErrorCode.PRODUCER_FENCED, -1, -1)


def test_a_producer_that_continues_takes_over_the_epoch_of_the_abort(coordinator):
    producer = coordinator.begin_transaction()
    assert coordinator.init(expected=producer) == (ErrorCode.NONE, producer[0], 1)


def test_a_new_producer_when_the_epochs_are_used_up():
    coordinator = Coordinator([transaction_record(metadata(State.ONGOING, epoch=32766, partitions=[T0]))])
    error, producer_id, epoch = coordinator.init()
    assert (error, epoch) == (ErrorCode.NONE, 1)
    assert producer_id >= 1000
    assert coordinator.markers[0].producer_epoch == 32767


def test_with_its_last_epoch_a_producer_gets_a_new_id():
    coordinator = Coordinator([transaction_record(metadata(State.ONGOING, epoch=32766, partitions=[T0]))])
    error, producer_id, epoch = coordinator.end((7, 32766))
    assert (error, epoch) == (ErrorCode.NONE, 0)
    assert producer_id >= 1000
    assert (coordinator.markers[0].producer_id, coordinator.markers[0].producer_epoch) == (7, 32767)
    assert coordinator.end((7, 32766)) == (ErrorCode.NONE, producer_id, 0)
    assert coordinator.add((producer_id, 0), T0) == ErrorCode.NONE


def test_a_transaction_whose_time_is_over_is_aborted(coordinator):
    producer = coordinator.begin_transaction()
    coordinator.time += 60_000
    coordinator.abort_timed_out()
    assert coordinator.known().state == State.ONGOING
    coordinator.time += 1
    coordinator.abort_timed_out()
    assert coordinator.known().state == State.COMPLETE_ABORT
    assert coordinator.add(producer, T0) == ErrorCode.PRODUCER_FENCED


def test_an_idle_id_is_forgotten(coordinator):
    producer = coordinator.begin_transaction()
    coordinator.time += 1000
    coordinator.expire(1000)
    assert coordinator.known() is not None
    coordinator.end(producer)
    coordinator.time += 1000
    coordinator.expire(1000)
    assert coordinator.known() is None
    assert coordinator.records[-1].value is None
    assert coordinator.reloaded().known() is None


def test_what_cannot_be_written_has_not_happened(coordinator):
    producer = coordinator.begin_transaction()
    before = coordinator.known()
    coordinator.append_error = ErrorCode.NOT_COORDINATOR
    assert coordinator.add(producer, T1) == ErrorCode.NOT_COORDINATOR
    assert coordinator.end(producer) == (ErrorCode.NOT_COORDINATOR, -1, -1)
    assert coordinator.init() == (ErrorCode.NOT_COORDINATOR, -1, -1)
    coordinator.time += 10**6
    coordinator.abort_timed_out()
    assert coordinator.known() == before
    assert coordinator.markers == []
    coordinator.append_error = ErrorCode.NONE
    assert coordinator.end(producer)[0] == ErrorCode.NONE


@pytest.mark.parametrize("state", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_what_was_decided_is_finished_after_a_restart(state):
    coordinator = Coordinator([transaction_record(metadata(state, partitions=[T0]))])
    assert coordinator.known().state == COMPLETED[state]
    assert coordinator.markers[0].partitions == {T0}


def test_what_was_open_continues_after_a_restart(coordinator):
    producer = coordinator.begin_transaction(T0)
    after = coordinator.reloaded()
    assert after.markers == []
    assert after.add(producer, T1) == ErrorCode.NONE
    after.end(producer)
    assert after.markers[0].partitions == {T0, T1}


# --- any story ---

IDS = st.sampled_from(["a", "b"])
PARTITIONS = st.frozensets(st.sampled_from([T0, T1, ("u", 0)]), max_size=2)


class Stories(RuleBasedStateMachine):
    """Producers of two ids send requests in any order; markers may wait; the broker may crash at any point."""

    @initialize(epoch=st.sampled_from([0, 32763]))
    def begin(self, epoch):
        self.coordinator = Coordinator(
            [transaction_record(metadata(epoch=epoch, transactional_id=id)) for id in ("a", "b")]
        )
        self.seen = len(self.coordinator.records)
        self.last = {id: self.coordinator.known(id) for id in ("a", "b")}

    def producer(self, id, stale):
        known = self.coordinator.known(id)
        return (known.producer_id, known.producer_epoch - stale) if known else (7, 0)

    @rule(id=IDS, goes_on=st.booleans(), stale=st.sampled_from([0, 0, 1]))
    def init(self, id, goes_on, stale):
        expected = self.producer(id, stale) if goes_on else (-1, -1)
        before = self.coordinator.known(id)
        answer = self.coordinator.init(id, expected)
        if answer is not None and answer[0] == ErrorCode.NONE:
            known = self.coordinator.known(id)
            assert (known.state, known.producer_id, known.producer_epoch) == (State.EMPTY, *answer[1:])
            assert answer[2] <= 32766
            if not goes_on and before is not None:
                assert answer[1:] != (before.producer_id, before.producer_epoch)

    @rule(id=IDS, partitions=PARTITIONS, version=st.sampled_from([0, 2]), stale=st.sampled_from([0, 0, 0, 1]))
    def add(self, id, partitions, version, stale):
        producer = self.producer(id, stale)
        error = self.coordinator.add(producer, *partitions, transactional_id=id, version=version)
        if error == ErrorCode.NONE:
            known = self.coordinator.known(id)
            assert known.state == State.ONGOING
            assert partitions <= known.partitions
            assert stale == 0

    @rule(id=IDS, commit=st.booleans(), version=st.sampled_from([0, 2]), stale=st.sampled_from([0, 0, 0, 1]))
    def end(self, id, commit, version, stale):
        answer = self.coordinator.end(self.producer(id, stale), commit, transactional_id=id, version=version)
        if answer is not None and answer[0] == ErrorCode.NONE:
            known = self.coordinator.known(id)
            assert known.state == (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)
            if version == 2:
                assert answer[1:] == (known.producer_id, known.producer_epoch)

    @rule(ms=st.sampled_from([1, 70_000]))
    def time_passes(self, ms):
        self.coordinator.time += ms
        self.coordinator.abort_timed_out()

    @rule()
    def expire(self):
        self.coordinator.expire(100_000)

    @rule()
    def hold_markers(self):
        self.coordinator.hold_markers = True

    @rule()
    def write_markers(self):
        self.coordinator.write_markers()

    @rule()
    def crash(self):
        """Everything in the log is known again, and what was decided is finished."""
        before = dict(self.coordinator.shard.transactions)
        self.coordinator = self.coordinator.reloaded()
        for id, known in before.items():
            again = self.coordinator.known(id)
            if known.state.is_prepared:
                assert again.state == COMPLETED[known.state]
            else:
                assert again == known._replace(last_producer_epoch=-1)

    @invariant()
    def every_step_may_follow_the_one_before(self):
        for record in self.coordinator.records[self.seen :]:
            id, known = read_record(record)
            before = self.last.get(id)
            if known is None:
                assert before.state in PREDECESSORS[State.DEAD]
            elif before is not None:
                assert before.state in PREDECESSORS[known.state]
                if known.producer_id == before.producer_id:
                    assert before.producer_epoch <= known.producer_epoch <= before.producer_epoch + 1
                else:
                    assert before.producer_epoch >= 32766
                    assert known.producer_epoch == 0
                    assert known.previous_producer_id == before.producer_id
                if known.state.is_prepared and before.state == State.ONGOING:
                    assert known.partitions == before.partitions
            self.last[id] = known
        self.seen = len(self.coordinator.records)

    @invariant()
    def the_log_says_what_is_known(self):
        shard = TransactionShard(lambda prepared: None, None)
        for record in self.coordinator.records:
            shard.replay(read_record(CoordinatorRecord(record.key, record.value)))
        known = self.coordinator.shard.transactions
        assert shard.transactions == {id: each._replace(last_producer_epoch=-1) for id, each in known.items()}


Stories.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestStories = Stories.TestCase
