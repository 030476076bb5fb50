"""barnabas.protocol.records.scan: in pieces, and no further than need be."""

import contextlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.builder import NewRecord, build_batch, frame_batch
from barnabas.protocol.records.compression import CompressionType, compress
from barnabas.protocol.records.errors import InvalidRecords, RecordsError
from barnabas.protocol.records.record import read_records, write_record
from barnabas.protocol.records.scan import RecordScan, ScannedRecord

COMPRESSED = [kind for kind in CompressionType if kind is not CompressionType.NONE]


def claiming(count: int, data: bytes | bytearray, kind: CompressionType = CompressionType.NONE) -> memoryview:
    """A batch that claims this many records, whatever it contains."""
    return memoryview(frame_batch(compress(kind, data), (kind, count - 1, 0, 0, -1, -1, -1, count)))


def scan_of(batch: memoryview, max_bytes: int = 1 << 28) -> RecordScan:
    return RecordScan(batch, read_header(batch), max_bytes)


def scanned(scan: RecordScan, piece: int = 100) -> list[ScannedRecord]:
    found: list[ScannedRecord] = []
    while not scan.finished:
        if scan.room_needed:
            scan.decompress()
        else:
            found += scan.next_records(piece)
    return found


records = st.lists(
    st.builds(
        NewRecord,
        st.integers(0, 2**62),
        st.none() | st.binary(max_size=300),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2),
    ),
    min_size=1,
    max_size=60,
)


@given(records, st.sampled_from(CompressionType), st.integers(1, 70))
def test_it_sees_what_a_reader_sees(records: list[NewRecord], kind: CompressionType, piece: int) -> None:
    batch = memoryview(build_batch(records, compression=kind))
    header = read_header(batch)
    assert scanned(scan_of(batch), piece) == [
        (record.offset, record.timestamp - header.base_timestamp, record.key is not None)
        for record in read_records(batch, header)
    ]


@pytest.mark.parametrize("kind", CompressionType)
def test_records_that_take_more_than_one_stage(kind: CompressionType) -> None:
    values = [bytes([number % 256]) * 1000 for number in range(3000)]
    batch = memoryview(build_batch([NewRecord(7, None, value) for value in values], compression=kind))
    assert scanned(scan_of(batch)) == [(number, 0, False) for number in range(3000)]


@pytest.mark.parametrize("kind", CompressionType)
def test_one_large_record(kind: CompressionType) -> None:
    batch = memoryview(build_batch([NewRecord(7, bytes(3_000_000), None)], compression=kind))
    assert scanned(scan_of(batch)) == [(0, 0, True)]


def test_a_raw_block_of_snappy_is_indivisible() -> None:
    data = bytearray()
    write_record(data, 0, 0, bytes(200_000), None)
    block = bytes(cramjam.snappy.compress_raw(bytes(data)))
    assert scanned(scan_of(memoryview(frame_batch(block, (2, 0, 0, 0, -1, -1, -1, 1))))) == [(0, 0, True)]


@given(st.binary(max_size=60), st.integers(1, 5))
def test_random_bytes_end_in_an_error_or_in_records(data: bytes, count: int) -> None:
    with contextlib.suppress(RecordsError):
        assert len(scanned(scan_of(claiming(count, data)))) == count


@pytest.mark.parametrize("kind", CompressionType)
@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_the_count_has_to_be_right(kind: CompressionType, count: int) -> None:
    data = bytearray()
    for offset_delta in range(3):
        write_record(data, offset_delta, 0, b"key", b"value")
    with pytest.raises(InvalidRecords):
        scanned(scan_of(claiming(count, data, kind)))


@pytest.mark.parametrize("kind", COMPRESSED)
def test_of_zeros_no_more_is_decompressed_than_the_first_stage(kind: CompressionType) -> None:
    scan = scan_of(claiming(10, bytes(100_000_000), kind))
    assert scan.room_needed == 65536
    scan.decompress()
    with pytest.raises(InvalidRecords, match="too short"):
        scan.next_records(1)


@pytest.mark.parametrize("kind", COMPRESSED)
def test_a_record_that_claims_more_than_there_may_be_is_not_decompressed(kind: CompressionType) -> None:
    data = bytearray()
    write_record(data, 0, 0, None, bytes(3_000_000))
    scan = scan_of(claiming(1, data, kind), max_bytes=2_000_000)
    scan.decompress()
    with pytest.raises(InvalidRecords, match="3000"):
        scan.next_records(1)


@pytest.mark.parametrize("kind", COMPRESSED)
def test_more_records_than_there_may_be(kind: CompressionType) -> None:
    data = bytearray()
    write_record(data, 0, 0, None, None)
    with pytest.raises(InvalidRecords, match="more than 100000 bytes"):
        scanned(scan_of(claiming(20_000, data * 20_000, kind), max_bytes=100_000))
