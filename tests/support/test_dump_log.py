import struct
from pathlib import Path

import pytest

from barnabas.protocol.records.builder import NewRecord, build_batch
from tests.support.apache_kafka import JavaError
from tests.support.dump_log import DumpLogError, dump_log

pytestmark = pytest.mark.java

FIRST_OFFSET = 5


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A segment of two batches, with an entry for the second in each index."""
    log = tmp_path / f"{FIRST_OFFSET:020}.log"
    first = build_batch([NewRecord(1000, b"key", b"value")], base_offset=FIRST_OFFSET)
    second = build_batch([NewRecord(2000, b"key", b"value")], base_offset=FIRST_OFFSET + 1)
    log.write_bytes(first + second)
    log.with_suffix(".index").write_bytes(struct.pack(">ii", 1, len(first)))
    log.with_suffix(".timeindex").write_bytes(struct.pack(">qi", 2000, 1))
    return log


def test_a_sound_segment_is_printed(segment: Path) -> None:
    printed = dump_log([segment, segment.with_suffix(".index"), segment.with_suffix(".timeindex")], "--print-data-log")
    assert "| offset: 6 CreateTime: 2000 keySize: 3 valueSize: 5 sequence: -1 headerKeys: [] key: key" in printed


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_not_whole_is_an_error(segment: Path, suffix: str) -> None:
    index = segment.with_suffix(suffix)
    index.write_bytes(index.read_bytes() + b"\0")
    with pytest.raises(JavaError, match=r"(?i)corrupt"):
        dump_log([index], "--index-sanity-check")


def test_an_index_that_points_elsewhere_is_an_error(segment: Path) -> None:
    index = segment.with_suffix(".index")
    index.write_bytes(struct.pack(">ii", 1, 0))
    with pytest.raises(DumpLogError, match="Index offset: 6, log offset: 5"):
        dump_log([index], "--verify-index-only")


def test_a_time_index_that_lies_is_an_error(segment: Path) -> None:
    index = segment.with_suffix(".timeindex")
    index.write_bytes(struct.pack(">qi", 1500, 1))
    with pytest.raises(DumpLogError, match="timestamp: 1500, log timestamp: 2000"):
        dump_log([index], "--verify-index-only")


def test_a_flipped_bit_is_an_error(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    with pytest.raises(DumpLogError, match="isvalid: false"):
        dump_log([segment])


def test_a_torn_batch_is_an_error(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[:-1])
    with pytest.raises(DumpLogError, match="invalid bytes at the end"):
        dump_log([segment])


def test_a_gap_is_an_error(segment: Path) -> None:
    batch = build_batch([NewRecord(3000, b"key", b"value")], base_offset=FIRST_OFFSET + 3)
    segment.write_bytes(segment.read_bytes() + batch)
    with pytest.raises(DumpLogError, match="6 is followed by 8"):
        dump_log([segment], "--deep-iteration")
