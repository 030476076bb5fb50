"""barnabas.storage.producer_state: who may append what, and which transactions are open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.control import (
    ControlType,
    EndTransactionMarker,
    build_end_transaction_marker,
    read_end_transaction_marker,
)
from barnabas.storage.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from barnabas.storage.indexes.transaction_index import AbortedTransaction
from barnabas.storage.producer_snapshot import decode_snapshot, encode_snapshot
from barnabas.storage.producer_state import AppendOrigin, ProducerBatch, ProducerState, ProducerUpdate

PRODUCER = 7


class Partition:
    """A log reduced to what a producer state needs of it."""

    def __init__(self, state: ProducerState | None = None) -> None:
        self.state = state or ProducerState()
        self.end_offset = 0
        self.write: ProducerUpdate | None = None  # which takes all batches, if there is one

    def send(
        self,
        sequence: int,
        count: int = 1,
        *,
        epoch: int = 0,
        producer_id: int = PRODUCER,
        transactional: bool = False,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> ProducerBatch | int:
        """Append a batch and give its offset, or the batch that it repeats."""
        header = read_header(
            build_batch(
                [NewRecord(1000, None, b"")] * count,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=transactional,
            )
        )
        update = self.write or ProducerUpdate(self.state)
        duplicate = update.add_data(header, self.end_offset, origin)
        if duplicate is not None:
            return duplicate
        if self.write is None:
            self.state.apply(update)
        self.end_offset += count
        return self.end_offset - count

    def end(
        self,
        control_type: ControlType,
        *,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        producer_id: int = PRODUCER,
        version: int = 0,
    ) -> list[AbortedTransaction]:
        batch = build_end_transaction_marker(
            control_type,
            timestamp=1000,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
        )
        header = read_header(batch)
        marker = read_end_transaction_marker(memoryview(batch), header)
        assert isinstance(marker, EndTransactionMarker)
        update = self.write or ProducerUpdate(self.state)
        update.add_marker(header, marker, self.end_offset, AppendOrigin.COORDINATOR, version)
        self.end_offset += 1
        return self.state.apply(update) if self.write is None else []


@pytest.fixture
def partition() -> Partition:
    return Partition()


def test_sequences_follow_on_one_another(partition: Partition) -> None:
    assert [partition.send(0, 3), partition.send(3), partition.send(4, 2)] == [0, 3, 4]
    for sequence in (0, 5, 7):
        with pytest.raises(OutOfOrderSequence):
            partition.send(sequence)
    assert partition.send(6) == 6


def test_a_producer_that_is_not_known_may_begin_anywhere(partition: Partition) -> None:
    assert partition.send(12) == 0
    assert partition.send(13) == 1


def test_sequences_wrap_around(partition: Partition) -> None:
    partition.send(2**31 - 2)
    partition.send(2**31 - 1, 3)
    assert partition.send(2) == 4
    assert isinstance(partition.send(2**31 - 1, 3), ProducerBatch)


def test_the_last_five_batches_are_known_again(partition: Partition) -> None:
    for sequence in range(0, 14, 2):
        partition.send(sequence, 2)
    for sequence in range(4, 14, 2):
        duplicate = partition.send(sequence, 2)
        assert isinstance(duplicate, ProducerBatch)
        assert (duplicate.first_offset, duplicate.last_offset) == (sequence, sequence + 1)
    with pytest.raises(OutOfOrderSequence):
        partition.send(2, 2)


def test_a_batch_of_another_size_is_not_a_duplicate(partition: Partition) -> None:
    partition.send(0, 3)
    with pytest.raises(OutOfOrderSequence):
        partition.send(0, 2)


def test_a_new_epoch_begins_at_zero_and_fences_the_old(partition: Partition) -> None:
    partition.send(0, 5)
    with pytest.raises(OutOfOrderSequence):
        partition.send(5, epoch=1)
    partition.send(0, epoch=1)
    with pytest.raises(InvalidProducerEpoch):
        partition.send(5, epoch=0)
    assert partition.send(1, epoch=1) == 6


def test_what_a_leader_has_checked_is_taken_as_it_is(partition: Partition) -> None:
    partition.send(0, epoch=3)
    assert partition.send(99, epoch=3, origin=AppendOrigin.REPLICATION) == 1
    assert partition.send(5, epoch=2, origin=AppendOrigin.REPLICATION) == 2


sends = st.fixed_dictionaries(
    {
        "sequence": st.integers(0, 6),
        "count": st.integers(1, 2),
        "epoch": st.integers(0, 1),
        "producer_id": st.integers(1, 2),
        "transactional": st.booleans(),
        "origin": st.sampled_from([AppendOrigin.CLIENT, AppendOrigin.REPLICATION]),
    }
)
ends = st.fixed_dictionaries(
    {"control_type": st.sampled_from(ControlType), "epoch": st.integers(0, 1), "producer_id": st.integers(1, 2)}
)


@given(st.lists(sends, max_size=8), st.lists(sends | ends, max_size=25))
def test_batches_of_one_write_are_taken_as_if_each_had_its_own(before, story) -> None:
    one, each = Partition(), Partition()
    for partition in (one, each):
        told(partition, before)
    one.write = ProducerUpdate(one.state)
    assert told(one, story) == told(each, story)
    one.state.apply(one.write)
    assert one.state.producers == each.state.producers
    assert one.state.first_unstable_offset == each.state.first_unstable_offset


def told(partition: Partition, story) -> list[object]:
    """Where each batch went, or why it did not."""
    outcomes: list[object] = []
    for event in story:
        try:
            if "control_type" in event:
                partition.end(**event)
                outcomes.append(partition.end_offset)
            else:
                outcomes.append(partition.send(**event))
        except (InvalidProducerEpoch, InvalidTransactionState, OutOfOrderSequence) as error:
            outcomes.append(str(error))
    return outcomes


def test_an_update_that_is_not_applied_changes_nothing(partition: Partition) -> None:
    partition.send(0)
    before = dict(partition.state.producers)
    header = read_header(
        build_batch(
            [NewRecord(0, None, b"")], producer_id=PRODUCER, producer_epoch=0, base_sequence=1, transactional=True
        )
    )
    ProducerUpdate(partition.state).add_data(header, 1, AppendOrigin.CLIENT)
    assert partition.state.producers == before
    assert partition.state.first_unstable_offset is None


def test_a_transaction_is_unstable_until_its_marker_is_replicated(partition: Partition) -> None:
    partition.send(0)
    partition.send(1, transactional=True)
    partition.send(2, transactional=True)
    assert partition.state.first_unstable_offset == 1
    assert partition.end(ControlType.COMMIT) == []
    assert partition.state.first_unstable_offset == 1
    partition.state.forget_replicated_transactions(high_watermark=3)
    assert partition.state.first_unstable_offset == 1
    partition.state.forget_replicated_transactions(high_watermark=4)
    assert partition.state.first_unstable_offset is None


def test_an_aborted_transaction_is_reported_with_the_last_stable_offset(partition: Partition) -> None:
    partition.send(0, transactional=True)
    partition.send(0, producer_id=8, transactional=True)
    partition.send(0, producer_id=9, transactional=True)
    assert partition.end(ControlType.ABORT, producer_id=8) == [AbortedTransaction(8, 1, 3, 0)]
    assert partition.end(ControlType.ABORT) == [AbortedTransaction(7, 0, 4, 2)]
    assert partition.end(ControlType.ABORT, producer_id=9) == [AbortedTransaction(9, 2, 5, 6)]


def test_the_end_of_a_transaction_that_wrote_nothing_here(partition: Partition) -> None:
    assert partition.end(ControlType.ABORT) == []
    assert partition.state.first_unstable_offset is None


def test_no_record_outside_of_a_transaction_under_way(partition: Partition) -> None:
    partition.send(0, transactional=True)
    with pytest.raises(InvalidTransactionState):
        partition.send(1)


def test_a_coordinator_of_an_older_epoch_is_fenced(partition: Partition) -> None:
    partition.send(0, transactional=True)
    partition.end(ControlType.COMMIT, coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFenced):
        partition.end(ControlType.COMMIT, coordinator_epoch=4)


def test_markers_of_an_older_epoch_are_refused(partition: Partition) -> None:
    partition.send(0, epoch=2, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        partition.end(ControlType.COMMIT, epoch=1)
    partition.end(ControlType.COMMIT, epoch=2)


def test_from_version_2_on_a_marker_has_an_epoch_of_its_own(partition: Partition) -> None:
    partition.send(0, epoch=2, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        partition.end(ControlType.COMMIT, epoch=2, version=2)
    partition.end(ControlType.COMMIT, epoch=3, version=2)
    # The same marker again, because its answer was lost: nothing is open any more, so it does no harm.
    partition.end(ControlType.COMMIT, epoch=3, version=2)
    partition.send(0, epoch=3, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        partition.end(ControlType.COMMIT, epoch=3, version=2)


def test_producers_expire_but_not_within_a_transaction(partition: Partition) -> None:
    partition.send(0)
    partition.send(0, producer_id=8, transactional=True)
    partition.state.forget_expired(now_ms=1999, expiration_ms=1000)
    assert set(partition.state.producers) == {7, 8}
    partition.state.forget_expired(now_ms=2000, expiration_ms=1000)
    assert set(partition.state.producers) == {8}


def test_a_snapshot_keeps_what_is_needed_to_go_on(partition: Partition) -> None:
    partition.send(0, 3)
    partition.send(0, 2, producer_id=8, transactional=True)
    partition.send(2**31 - 1, 2, producer_id=9)
    partition.end(ControlType.ABORT, producer_id=10)
    entries = decode_snapshot(encode_snapshot(partition.state.snapshot()))
    restored = Partition(ProducerState.of_snapshot(entries))
    restored.end_offset = partition.end_offset
    assert restored.state.snapshot() == partition.state.snapshot()
    assert restored.state.first_unstable_offset == 3
    assert isinstance(restored.send(0, 3), ProducerBatch)
    assert isinstance(restored.send(2**31 - 1, 2, producer_id=9), ProducerBatch)
    assert restored.send(3) == 8
    assert restored.send(1, producer_id=9) == 9
    assert restored.end(ControlType.ABORT, producer_id=8) == [AbortedTransaction(8, 3, 10, 11)]
