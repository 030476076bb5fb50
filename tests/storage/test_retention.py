"""barnabas.storage.retention: what a log gives up, and when."""

import dataclasses
import os
from pathlib import Path

import pytest

from barnabas.storage.config import LogConfig
from barnabas.storage.errors import OffsetOutOfRange
from barnabas.storage.log import Log
from barnabas.storage.retention import apply_retention
from tests.storage.support import NOW, append, batch, make_log, read_all, values_of

HOUR = 3_600_000


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Five segments, one record each, an hour between them; the last one is new."""
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100, retention_ms=-1))
    for number in range(5):
        append(log, batch(b"%d" % number, timestamp=NOW + number * HOUR), now_ms=NOW + number * HOUR)
    return log


def values_after_retention(log: Log, now_ms: int = NOW + 4 * HOUR, **settings: object) -> list[bytes | None]:
    log.config = dataclasses.replace(log.config, **settings)  # type: ignore[arg-type]
    pending = apply_retention(log, now_ms)
    if pending is not None:
        pending.run()
    return values_of(read_all(log))


def test_without_limits_everything_stays(log: Log) -> None:
    assert values_after_retention(log, now_ms=10**15) == [b"0", b"1", b"2", b"3", b"4"]


def test_by_time(log: Log) -> None:
    assert values_after_retention(log, retention_ms=2 * HOUR) == [b"2", b"3", b"4"]
    assert log.log_start_offset == 2
    with pytest.raises(OffsetOutOfRange):
        log.read(1, 100, upper_bound=5)


def test_a_log_that_expires_completely_continues_empty(log: Log) -> None:
    assert values_after_retention(log, now_ms=NOW + 100 * HOUR, retention_ms=HOUR) == []
    assert (log.log_start_offset, log.end_offset, len(log.segments)) == (5, 5, 1)
    assert values_after_retention(log, now_ms=NOW + 100 * HOUR, retention_ms=HOUR) == []
    assert append(log, batch(b"new")) == [5]


def test_by_size(log: Log) -> None:
    one = log.size // 5
    assert values_after_retention(log, retention_bytes=3 * one) == [b"2", b"3", b"4"]
    # As long as what is left is not below the limit.
    assert values_after_retention(log, retention_bytes=2 * one + 1) == [b"2", b"3", b"4"]


def test_by_size_after_compaction_left_nothing_of_the_first_segment(tmp_path: Path) -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact", "delete"}), segment_bytes=100, retention_ms=-1)
    log = make_log(tmp_path / "topic-0", config)
    for number in range(5):
        append(log, batch(b"%d" % number))
    one = log.size // 5
    log.segments.first.truncate_to(0)
    assert values_after_retention(log) == [b"1", b"2", b"3", b"4"]
    assert values_after_retention(log, retention_bytes=3 * one) == [b"2", b"3", b"4"]


def test_by_deleted_records(log: Log) -> None:
    log.increment_log_start_offset(3)
    assert len(log.segments) == 5
    assert values_after_retention(log, cleanup_policy=frozenset({"compact"})) == [b"3", b"4"]
    assert len(log.segments) == 2


def test_a_compacted_log_keeps_its_age_and_size(log: Log) -> None:
    settings = {"cleanup_policy": frozenset({"compact"}), "retention_ms": 1, "retention_bytes": 1}
    assert values_after_retention(log, **settings) == [b"0", b"1", b"2", b"3", b"4"]


def test_nothing_above_the_high_watermark_goes(log: Log) -> None:
    log.high_watermark = 2
    assert values_after_retention(log, now_ms=NOW + 100 * HOUR, retention_ms=1) == [b"2", b"3", b"4"]


def test_records_without_a_time_go_by_the_age_of_their_file(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(retention_ms=HOUR, segment_bytes=100))
    append(log, batch(b"old", timestamp=-1))
    append(log, batch(b"new", timestamp=-1))
    written = int(os.stat(log.segments.first.path).st_mtime * 1000)
    assert values_after_retention(log, now_ms=written + HOUR // 2) == [b"old", b"new"]
    os.utime(log.segments.first.path, ((written - 2 * HOUR) / 1000, (written - 2 * HOUR) / 1000))
    assert values_after_retention(log, now_ms=written + HOUR // 2) == [b"new"]


def test_what_is_deleted_leaves_no_files(log: Log) -> None:
    values_after_retention(log, retention_ms=2 * HOUR)
    offsets = {name.partition(".")[0] for name in os.listdir(log.folder) if name[0] == "0"}
    assert offsets == {f"{offset:020d}" for offset in (2, 3, 4)}


def test_a_long_log_takes_several_steps(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100, retention_ms=HOUR))
    for number in range(50):
        append(log, batch(b"%d" % number, timestamp=NOW), now_ms=NOW)
    left = [len(log.segments)]
    while apply_retention(log, NOW + 2 * HOUR) is not None:
        left.append(len(log.segments))
    assert left == [50, 30, 10, 1]
    assert (log.log_start_offset, log.end_offset) == (50, 50)
