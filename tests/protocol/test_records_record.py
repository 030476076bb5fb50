"""barnabas.protocol.records: records encoded, built into batches, compressed and read again."""

import contextlib
import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.records.batch import HEADER_SIZE, read_header, seal, validate_batch
from barnabas.protocol.records.builder import NewRecord, assemble_batch, build_batch
from barnabas.protocol.records.compression import CompressionType, compress, decompress
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker, read_end_transaction_marker
from barnabas.protocol.records.errors import CorruptRecords, InvalidRecords, RecordsError, UnsupportedCompression
from barnabas.protocol.records.record import Record, read_records, read_varint, write_varint

int64s = st.integers(-(2**63), 2**63 - 1)
new_records = st.builds(
    NewRecord,
    timestamp=st.integers(0, 2**48),
    key=st.none() | st.binary(max_size=200),
    value=st.none() | st.binary(max_size=200),
    headers=st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3),
)


def records_of(batch: bytes | bytearray) -> list[Record]:
    return list(read_records(memoryview(batch), validate_batch(memoryview(batch))))


@given(st.lists(new_records, min_size=1, max_size=20), st.sampled_from(CompressionType))
def test_what_goes_into_a_batch_comes_out(records: list[NewRecord], compression: CompressionType) -> None:
    batch = build_batch(records, base_offset=100, compression=compression)
    assert read_header(batch).compression == compression
    assert read_header(batch).max_timestamp == max(record.timestamp for record in records)
    read = records_of(batch)
    assert [record.offset for record in read] == list(range(100, 100 + len(records)))
    for got, given_ in zip(read, records, strict=True):
        assert (got.timestamp, got.key, got.value) == (given_.timestamp, given_.key, given_.value)
        assert list(got.headers) == list(given_.headers)


@given(int64s)
def test_varints_of_all_sizes(number: int) -> None:
    out = bytearray()
    write_varint(out, number)
    assert read_varint(bytes(out), 0) == (number, len(out))


def test_a_varint_without_end() -> None:
    with pytest.raises(CorruptRecords):
        read_varint(b"\xff" * 20, 0)


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(InvalidRecords):
        build_batch([])


@given(st.binary(max_size=40), st.integers(-5, 5))
def test_records_of_random_bytes_end_in_an_error_or_in_records(data: bytes, count: int) -> None:
    batch = build_batch([NewRecord(0, None, None)])[:HEADER_SIZE] + data
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">i", batch, 57, count)
    seal(memoryview(batch))
    with contextlib.suppress(RecordsError):
        records_of(batch)


def test_bytes_after_the_last_record_are_corrupt() -> None:
    batch = build_batch([NewRecord(0, b"k", b"v")]) + b"\x00"
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    seal(memoryview(batch))
    with pytest.raises(CorruptRecords, match="follow the last record"):
        records_of(batch)


@pytest.mark.parametrize("kind", CompressionType)
@pytest.mark.parametrize("size", [0, 1, 1000, 200_000])
def test_codecs_there_and_back(kind: CompressionType, size: int) -> None:
    data = bytes(i * i % 251 for i in range(size))
    assert decompress(kind, memoryview(compress(kind, data))) == data


@pytest.mark.parametrize("kind", [kind for kind in CompressionType if kind is not CompressionType.NONE])
def test_output_beyond_the_limit_is_refused(kind: CompressionType) -> None:
    bomb = memoryview(compress(kind, bytes(4_000_000)))
    assert len(decompress(kind, bomb, 4_000_000)) == 4_000_000
    with pytest.raises(CorruptRecords):
        decompress(kind, bomb, 3_999_999)


@pytest.mark.parametrize("kind", [kind for kind in CompressionType if kind is not CompressionType.NONE])
@given(data=st.binary(max_size=60))
def test_damaged_input_is_corrupt(kind: CompressionType, data: bytes) -> None:
    packed = bytearray(compress(kind, b"some text, some text, some text"))
    for position, byte in enumerate(data[: len(packed)]):
        packed[position] ^= byte
    with contextlib.suppress(CorruptRecords):
        decompress(kind, memoryview(packed), 1 << 20)


def test_snappy_in_both_forms() -> None:
    text = b"what clients on top of C libraries send" * 10
    assert decompress(CompressionType.SNAPPY, memoryview(bytes(cramjam.snappy.compress_raw(text)))) == text
    framed = compress(CompressionType.SNAPPY, text)
    assert framed.startswith(b"\x82SNAPPY\x00")
    assert decompress(CompressionType.SNAPPY, memoryview(framed)) == text


def test_a_snappy_length_is_not_trusted() -> None:
    # A raw block that claims to decompress to 2 GiB.
    with pytest.raises(CorruptRecords, match="claim to decompress to"):
        decompress(CompressionType.SNAPPY, memoryview(b"\x80\x80\x80\x80\x08" + bytes(20)), 1 << 40)


def test_lz4_blocks_stand_alone() -> None:
    # Java's reader refuses frames without the flag for independent blocks.
    assert compress(CompressionType.LZ4, b"text")[4] & 0x20


@pytest.mark.parametrize("number", [5, 6, 7])
def test_codecs_that_do_not_exist(number: int) -> None:
    with pytest.raises(UnsupportedCompression):
        decompress(number, memoryview(b""))


def test_another_codec_keeps_everything_else() -> None:
    records = [NewRecord(1000 + i, b"k", b"v" * 50) for i in range(50)]
    batch = build_batch(records, base_offset=9, producer_id=5, producer_epoch=1, base_sequence=3, transactional=True)
    packed = assemble_batch(read_header(batch), batch[HEADER_SIZE:], CompressionType.ZSTD)
    assert len(packed) < len(batch)
    assert records_of(packed) == records_of(batch)
    plain = decompress(CompressionType.ZSTD, memoryview(packed)[HEADER_SIZE:])
    assert assemble_batch(read_header(packed), plain, CompressionType.NONE) == batch


@pytest.mark.parametrize(("codec", "low", "high"), [(CompressionType.GZIP, 1, 9), (CompressionType.ZSTD, -100, 19)])
def test_a_higher_level_compresses_better(codec: CompressionType, low: int, high: int) -> None:
    batch = build_batch([NewRecord(1000 + i, b"%d" % i, b"value-%d" % (i * i)) for i in range(500)])
    least, most = (assemble_batch(read_header(batch), batch[HEADER_SIZE:], codec, level) for level in (low, high))
    assert len(most) < len(least)
    assert records_of(most) == records_of(least) == records_of(batch)


@pytest.mark.parametrize("control_type", ControlType)
def test_the_end_of_a_transaction(control_type: ControlType) -> None:
    batch = build_end_transaction_marker(
        control_type, timestamp=77, producer_id=4, producer_epoch=2, coordinator_epoch=9
    )
    header = validate_batch(memoryview(batch))
    assert header.is_control
    assert header.is_transactional
    assert read_end_transaction_marker(memoryview(batch), header) == (control_type, 9, 77)


def test_a_control_batch_that_compaction_emptied_has_no_marker() -> None:
    batch = build_end_transaction_marker(
        ControlType.COMMIT, timestamp=77, producer_id=4, producer_epoch=2, coordinator_epoch=9
    )[:HEADER_SIZE]
    struct.pack_into(">i", batch, 8, HEADER_SIZE - 12)
    struct.pack_into(">i", batch, 57, 0)
    seal(memoryview(batch))
    assert read_end_transaction_marker(memoryview(batch), validate_batch(memoryview(batch))) is None


@pytest.mark.parametrize(
    ("key", "value"), [(None, bytes(6)), (b"\x00", bytes(6)), (bytes(4), None), (bytes(4), b"\x00")]
)
def test_a_control_record_cut_short(key: bytes | None, value: bytes | None) -> None:
    batch = build_batch([NewRecord(0, key, value)], control=True)
    with pytest.raises(CorruptRecords):
        read_end_transaction_marker(memoryview(batch), read_header(batch))
