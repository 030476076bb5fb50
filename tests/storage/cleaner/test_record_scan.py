"""barnabas.storage.cleaner.record_scan, held equal to barnabas.protocol.records.record."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.records.batch import BatchHeader
from barnabas.protocol.records.errors import CorruptRecords
from barnabas.protocol.records.record import parse_records, write_record, write_varint
from barnabas.storage.cleaner.record_scan import record_bounds, scan_keys, shift_timestamp, timestamp_delta

# Lengths and deltas around the places where a varint takes one more byte.
DELTAS = st.sampled_from([0, 1, 63, 64, 8191, 8192, 2**20, 2**31 - 1])
BYTES = st.none() | st.binary(max_size=5) | st.integers(0, 9000).map(bytes)
HEADERS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
RECORDS = st.lists(st.tuples(DELTAS, st.integers(-(2**40), 2**40), BYTES, BYTES, HEADERS), max_size=10)


def encode(records: list[tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]) -> bytes:
    data = bytearray()
    for record in records:
        write_record(data, *record)
    return bytes(data)


@given(RECORDS, st.binary(max_size=3), st.integers(0, 2**60))
def test_the_same_keys_as_read_one_by_one(records: list, before: bytes, base_offset: int) -> None:  # type: ignore[type-arg]
    data = encode(records)
    header = BatchHeader(base_offset, 0, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, len(records))
    expected = list(parse_records(data, header))

    found = scan_keys(before + data, len(before), len(before) + len(data), len(records), base_offset)

    assert found.keys == [record.key for record in expected]
    assert found.offsets == [record.offset for record in expected]
    assert found.tombstones == [place for place, record in enumerate(expected) if record.value is None]


@given(RECORDS, st.integers(-(2**40), 2**40))
def test_records_are_found_and_their_times_moved(records: list, shift: int) -> None:  # type: ignore[type-arg]
    data = encode(records)
    bounds = record_bounds(data, 0, len(data), len(records))
    pieces = list(pairwise(bounds))
    assert [data[start:end] for start, end in pieces] == [encode([record]) for record in records]
    assert [timestamp_delta(data, start) for start, _ in pieces] == [record[1] for record in records]
    moved = [shift_timestamp(data, start, end, shift) for start, end in pieces]
    assert moved == [encode([(delta, time + shift, *rest)]) for delta, time, *rest in records]


@given(RECORDS.filter(bool), st.data())
def test_records_that_are_cut_short_are_refused(records: list, chance: st.DataObject) -> None:  # type: ignore[type-arg]
    data = encode(records)
    cut = chance.draw(st.integers(0, len(data) - 1))
    for scan in (
        lambda: scan_keys(data[:cut], 0, cut, len(records), 0),
        lambda: record_bounds(data[:cut], 0, cut, len(records)),
    ):
        with pytest.raises(CorruptRecords):
            scan()


def test_a_key_longer_than_its_record_is_refused() -> None:
    body = bytearray([0, 0, 0])
    write_varint(body, 20)
    record = bytearray()
    write_varint(record, len(body))
    data = bytes(record + body) + bytes(30)
    with pytest.raises(CorruptRecords, match="key"):
        scan_keys(data, 0, len(data), 1, 0)


@given(st.binary(max_size=60), st.integers(0, 5))
def test_nonsense_is_read_or_refused(data: bytes, count: int) -> None:
    for scan in (lambda: scan_keys(data, 0, len(data), count, 0), lambda: record_bounds(data, 0, len(data), count)):
        with suppress(CorruptRecords):
            scan()
