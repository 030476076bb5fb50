"""The records of __transaction_state: packed by hand, and held equal to what the declared messages give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.broker.transaction.records import read_record, tombstone, transaction_record
from barnabas.broker.transaction.states import TransactionState as State
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from tests.broker.transaction.harness import T0, T1, metadata

INT16, INT32, INT64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))

METADATA = st.builds(
    TransactionMetadata,
    transactional_id=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    producer_id=INT64,
    producer_epoch=INT16,
    timeout_ms=INT32,
    state=st.sampled_from([state for state in State if state != State.EMPTY]),
    partitions=st.frozensets(st.tuples(st.sampled_from(["t", "u" * 200, "ü"]), st.integers(0, 2**31 - 1))),
    start_ms=INT64,
    last_update_ms=INT64,
    client_version=st.sampled_from([0, 1, 2]),
    previous_producer_id=st.one_of(st.just(-1), INT64),
    next_producer_id=st.one_of(st.just(-1), INT64),
    last_producer_epoch=st.just(-1),
)


def declared(metadata):
    """The same record by the generated encoder."""
    topics = {}
    for topic, index in sorted(metadata.partitions):
        topics.setdefault(topic, []).append(index)
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None
        if metadata.state == State.EMPTY
        else [PartitionsSchema(topic=topic, partition_ids=indexes) for topic, indexes in topics.items()],
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        client_transaction_version=metadata.client_version,
    )
    key = b"\0\0" + encode(TransactionLogKey(transactional_id=metadata.transactional_id), 0)
    return key, b"\0\1" + encode(value, 1)


@given(METADATA)
def test_what_is_written_is_what_is_declared_and_reads_back(metadata):
    record = transaction_record(metadata)
    assert (record.key, record.value) == declared(metadata)
    assert read_record(record) == record.read == (metadata.transactional_id, metadata)


def test_an_id_without_a_transaction_has_no_partitions_at_all():
    record = transaction_record(metadata(State.EMPTY))
    assert (record.key, record.value) == declared(metadata(State.EMPTY))
    assert read_record(record)[1] == metadata(State.EMPTY)


def test_which_epoch_came_before_is_not_written():
    record = transaction_record(metadata(last_producer_epoch=2))
    assert read_record(record)[1] == metadata()
    assert record.read[1].last_producer_epoch == 2


def test_a_tombstone_forgets_an_id():
    record = tombstone("orders")
    assert record.value is None
    assert read_record(record) == record.read == ("orders", None)
    assert record.key == transaction_record(metadata()).key


def test_version_0_is_read_too():
    """As Kafka writes it before transaction.version 1: without the previous and next ids."""
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=3,
        transaction_timeout_ms=60_000,
        transaction_status=State.ONGOING,
        transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[0, 1])],
        transaction_last_update_timestamp_ms=1000,
        transaction_start_timestamp_ms=900,
    )
    record = CoordinatorRecord(tombstone("orders").key, b"\0\0" + encode(value, 0))
    assert read_record(record)[1] == metadata(State.ONGOING, partitions=(T0, T1), previous_producer_id=-1)


def test_records_of_other_kinds_are_skipped():
    assert read_record(CoordinatorRecord(b"\0\1whatever", b"")) is None


@pytest.mark.parametrize(
    "value",
    [b"", b"\0", b"\0\2" + bytes(50), b"\xff\xff", b"\0\1", transaction_record(metadata()).value[:-1]],
    ids=["nothing", "half a version", "version 2", "version -1", "no value", "cut short"],
)
def test_what_cannot_be_read_is_an_error(value):
    with pytest.raises(ProtocolError):
        read_record(CoordinatorRecord(tombstone("orders").key, value))


def test_a_state_that_does_not_exist_is_an_error():
    value = bytearray(transaction_record(metadata(State.ONGOING)).value)
    value[16] = 9
    with pytest.raises(ProtocolError, match="state 9"):
        read_record(CoordinatorRecord(tombstone("orders").key, bytes(value)))
