"""What a reader sees of the batches in a Fetch answer: gaps, codecs, and transactions that were aborted."""

import pytest

from barnabas.client.errors import ClientError
from barnabas.client.fetched import cut, read_fetched
from barnabas.protocol.messages.fetch import AbortedTransaction
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker

A, B = 100, 200  # producers


def batch(offset, *values, **options):
    return build_batch([NewRecord(0, None, value) for value in values], base_offset=offset, **options)


def transactional(offset, producer, *values):
    return batch(offset, *values, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)


def end(offset, producer, kind):
    return build_end_transaction_marker(
        kind, timestamp=0, producer_id=producer, producer_epoch=0, coordinator_epoch=0, base_offset=offset
    )


def read(*batches, position=0, aborted=None):
    data = memoryview(b"".join(batches))
    gave_up = None if aborted is None else [AbortedTransaction(producer_id=p, first_offset=o) for p, o in aborted]
    records, next_offset = read_fetched(data, position, gave_up, "t-0")
    return [record.value for record in records], next_offset


def test_all_records_and_the_offset_after_them():
    assert read(batch(5, b"a", b"b"), batch(7, b"c"), position=5) == ([b"a", b"b", b"c"], 8)


def test_an_empty_answer_has_no_records():
    assert read(position=3) == ([], 3)


@pytest.mark.parametrize("codec", CompressionType)
def test_every_codec(codec):
    assert read(batch(0, b"a" * 1000, b"b", compression=codec)) == ([b"a" * 1000, b"b"], 2)


def test_records_before_the_position_are_left_out():
    """A broker returns whole batches, even to a client that asks for an offset in the middle of one."""
    assert read(batch(0, b"a", b"b", b"c"), position=2) == ([b"c"], 3)


def test_a_last_batch_that_is_cut_off_is_left_for_the_next_time():
    for missing in (1, 20, 60, 65):
        assert read(batch(0, b"a"), batch(1, b"bcdef")[:-missing]) == ([b"a"], 1)


def test_a_first_batch_that_is_cut_off_is_an_error():
    with pytest.raises(ClientError, match="an incomplete batch at offset 4"):
        read(batch(4, b"a")[:-1], position=4)


def test_damage_is_reported():
    damaged = bytearray(batch(0, b"a"))
    damaged[-1] ^= 1
    with pytest.raises(ClientError, match="t-0: cannot read the batch at offset 0"):
        read(damaged)


def test_control_records_are_not_returned():
    assert read(transactional(0, A, b"a"), end(1, A, ControlType.COMMIT)) == ([b"a"], 2)


def test_a_reader_of_everything_gets_aborted_records_too():
    assert read(transactional(0, A, b"a"), end(1, A, ControlType.ABORT)) == ([b"a"], 2)


def test_what_was_aborted_is_hidden_up_to_its_end():
    values, position = read(
        transactional(0, A, b"aborted"),
        transactional(1, B, b"kept"),
        batch(2, b"plain"),
        transactional(3, A, b"aborted as well"),
        end(4, A, ControlType.ABORT),
        transactional(5, A, b"the next transaction"),
        end(6, B, ControlType.COMMIT),
        end(7, A, ControlType.COMMIT),
        aborted=[(A, 0)],
    )
    assert values == [b"kept", b"plain", b"the next transaction"]
    assert position == 8


def test_the_same_producer_can_abort_twice():
    values, _ = read(
        transactional(0, A, b"x"),
        end(1, A, ControlType.ABORT),
        transactional(2, A, b"kept"),
        end(3, A, ControlType.COMMIT),
        transactional(4, A, b"y"),
        end(5, A, ControlType.ABORT),
        aborted=[(A, 4), (A, 0)],
    )
    assert values == [b"kept"]


def test_a_transaction_that_started_before_the_fetched_range():
    assert read(transactional(5, A, b"x"), end(6, A, ControlType.ABORT), position=5, aborted=[(A, 0)]) == ([], 7)


def test_the_first_few():
    records, _ = read_fetched(memoryview(batch(5, b"a", b"b", b"c")), 0, None, "t-0")
    kept = cut(records, 2)
    assert ([record.value for record in kept.records], kept.next_offset) == ([b"a", b"b"], 7)
