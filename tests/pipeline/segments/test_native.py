"""The compiled decoder agrees with the slow, obvious one of protocol/records, for any batches."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")
pytest.importorskip("pyspark")

from barnabas.pipeline.segments.arrow import Decoded, decode_chunk
from barnabas.pipeline.segments.batches import Chunk, walk
from barnabas.pipeline.segments.native import scan
from barnabas.protocol.records.batch import LOG_APPEND_TIME_FLAG, read_header, set_log_append_time
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.errors import RecordsError
from barnabas.protocol.records.record import read_records
from tests.support.effort import examples

COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]

blobs = st.none() | st.binary(max_size=20) | st.sampled_from([b"", bytes(63), bytes(64), bytes(8191), bytes(8192)])
records = st.builds(
    NewRecord,
    st.integers(-1, 2**44),
    blobs,
    blobs,
    st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3),
)


@st.composite
def batches(draw):
    """Consecutive batches, as in a segment, with gaps between their offsets."""
    offset = draw(st.integers(0, 2**40))
    made = []
    for _ in range(draw(st.integers(1, 4))):
        batch = build_batch(
            draw(st.lists(records, min_size=1, max_size=5)),
            base_offset=offset,
            compression=draw(st.sampled_from(CompressionType)),
        )
        if draw(st.booleans()):
            set_log_append_time(memoryview(batch), read_header(batch), draw(st.integers(0, 2**41)))
        offset = read_header(batch).next_offset + draw(st.integers(0, 10))
        made.append(batch)
    return made


def decoded_of(data: bytes) -> Decoded:
    buffer = np.frombuffer(bytearray(data), dtype=np.uint8)
    headers, _ = scan(buffer, len(buffer), 0)
    return decode_chunk(Chunk(0, buffer, headers), np.arange(len(headers.position)), "t", 3)


def fast(data: bytes) -> tuple[list[tuple], int]:
    """Rows, and how far the scan came."""
    buffer = np.frombuffer(bytearray(data), dtype=np.uint8)
    _, position = scan(buffer, len(buffer), 0)
    columns = decoded_of(data).to_arrow(COLUMNS)
    columns.validate(full=True)
    rows = []
    for row in columns.set_column(5, "timestamp", columns["timestamp"].view("int64")).to_pylist():
        assert (row["topic"], row["partition"]) == ("t", 3)
        pairs = [(header["key"], header["value"]) for header in row["headers"] or []]
        timestamp, rest = divmod(row["timestamp"], 1000)
        assert rest == 0
        rows.append((row["offset"], timestamp, row["timestampType"], row["key"], row["value"], pairs))
    return rows, position


def slow(data: bytes) -> list[tuple]:
    rows = []
    view = memoryview(data)
    while view:
        header = read_header(view)
        kind = int(bool(header.attributes & LOG_APPEND_TIME_FLAG))
        for record in read_records(view, header):
            rows.append((record.offset, record.timestamp, kind, record.key, record.value, list(record.headers)))
        view = view[header.size :]
    return rows


@settings(deadline=None)
@given(batches())
def test_any_batches_decode_as_the_slow_decoder_has_them(made):
    data = b"".join(made)
    assert fast(data) == (slow(data), len(data))


@settings(deadline=None)
@given(batches(), st.integers(0, 200))
def test_a_batch_that_is_cut_is_left_alone(made, length):
    cut = min(length, len(made[-1]) - 1)
    whole = b"".join(made[:-1])
    assert fast(whole + bytes(made[-1][:cut])) == (slow(whole), len(whole))


@settings(deadline=None)
@given(batches(), st.integers(0, 300), st.integers(0, 2**40), st.integers(0, 100), st.integers(0, 255))
def test_headers_are_found_alike_by_the_slow_walk(made, cut, next_offset, position, byte):
    data = bytearray(b"".join(made))
    data[position % len(data)] = byte
    buffer = np.frombuffer(data, dtype=np.uint8)
    length = max(0, len(buffer) - cut)
    (found, end), (expected, expected_end) = scan(buffer, length, next_offset), walk(buffer, length, next_offset)
    assert end == expected_end
    assert [column.tolist() for column in found] == [column.tolist() for column in expected]


def test_many_small_batches_are_not_walked_one_by_one(monkeypatch):
    monkeypatch.setattr("barnabas.pipeline.segments.batches.WALKED", 3)
    made = [build_batch([NewRecord(0, b"k", b"v")], base_offset=offset) for offset in range(5, 15)]
    buffer = np.frombuffer(bytearray(b"".join(made)), dtype=np.uint8)
    headers, end = walk(buffer, len(buffer), 0)
    assert (headers.base_offset.tolist(), end) == (list(range(5, 15)), len(buffer))


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(records, min_size=1, max_size=3), st.data())
@example([NewRecord(0, b"k", b"v", [("h", b"x")])], None)
def test_what_is_damaged_is_refused_by_both_or_read_the_same_by_both(made, data):
    batch = build_batch(made)
    if data is not None:
        position = data.draw(st.integers(61, len(batch) - 1))
        batch[position] = data.draw(st.integers(0, 255))
    try:
        expected = slow(bytes(batch))
    except RecordsError:
        with pytest.raises(RecordsError):
            fast(bytes(batch))
        return
    decoded = decoded_of(bytes(batch))
    # Python's numbers do not wrap at 64 bits, those of a compiled program do; so do Kafka's.
    assert [row[0] % 2**64 for row in expected] == [offset % 2**64 for offset in decoded.offset().to_pylist()]
    assert [row[3] for row in expected] == decoded.key().to_pylist()
    assert [row[4] for row in expected] == decoded.value().to_pylist()
    found = [[(one["key"], one["value"]) for one in headers or []] for headers in decoded.headers().to_pylist()]
    assert [row[5] for row in expected] == found


@pytest.mark.parametrize("count", [-1, 2, 2**31 - 1])
def test_no_room_is_made_on_the_word_of_a_count(count):
    batch = build_batch([NewRecord(0, b"k", b"v")])
    batch[57:61] = (count & 0xFFFFFFFF).to_bytes(4, "big")
    with pytest.raises(RecordsError):
        fast(bytes(batch))


def test_a_batch_of_which_compaction_left_nothing_has_no_rows():
    batch = build_batch([NewRecord(0, b"k", b"v")])[:61]
    batch[8:12] = (49).to_bytes(4, "big")
    batch[57:61] = bytes(4)
    assert fast(bytes(batch)) == ([], 61)
