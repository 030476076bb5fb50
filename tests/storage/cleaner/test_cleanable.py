"""barnabas.storage.cleaner.cleanable: what may be compacted, and when it is time."""

from pathlib import Path

import pytest

from barnabas.protocol.records.control import ControlType
from barnabas.storage.cleaner.cleanable import cleanable_section
from barnabas.storage.log import Log
from tests.storage.cleaner.support import compact, compacted_log, end_transaction, keyed, put
from tests.storage.support import NOW, append, flush_log

SIZE = len(keyed((b"a", b"value")))


def close_segment(log: Log) -> None:
    log.roll(NOW)
    flush_log(log)


def segments(tmp_path: Path, *timestamps: int, **settings: object) -> Log:
    """A log with one record per segment, with these timestamps, and an empty active segment."""
    log = compacted_log(tmp_path, segment_bytes=SIZE, segment_ms=10**9, **settings)
    for timestamp in timestamps:
        put(log, (b"a", b"value"), timestamp=timestamp)
    close_segment(log)
    assert len(log.segments) == len(timestamps) + 1
    return log


def test_all_but_the_active_segment(tmp_path: Path) -> None:
    log = segments(tmp_path, NOW, NOW)
    put(log, (b"a", b"value"))
    section = cleanable_section(log, NOW)
    assert (section.first_dirty_offset, section.first_uncleanable_offset) == (0, 2)
    assert (section.clean_bytes, section.cleanable_bytes, section.dirty_ratio) == (0, 2 * SIZE, 1.0)


def test_nothing_beyond_the_high_watermark(tmp_path: Path) -> None:
    log = segments(tmp_path, NOW, NOW, NOW)
    log.high_watermark = 2
    assert cleanable_section(log, NOW).first_uncleanable_offset == 2
    log.high_watermark = 1
    assert cleanable_section(log, NOW).first_uncleanable_offset == 1


def test_nothing_that_is_not_known_to_be_on_disk(tmp_path: Path) -> None:
    log = segments(tmp_path, NOW, NOW)
    put(log, (b"a", b"value"))
    log.roll(NOW)
    assert cleanable_section(log, NOW).first_uncleanable_offset == 2
    flush_log(log)
    assert cleanable_section(log, NOW).first_uncleanable_offset == 3


def test_no_segment_with_a_transaction_under_way(tmp_path: Path) -> None:
    log = segments(tmp_path, NOW, NOW)
    put(log, (b"a", b"1"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    close_segment(log)
    assert cleanable_section(log, NOW).first_uncleanable_offset == 2
    end_transaction(log, ControlType.COMMIT, 5)
    close_segment(log)
    assert cleanable_section(log, NOW).first_uncleanable_offset == 4


def test_nothing_younger_than_min_compaction_lag_ms(tmp_path: Path) -> None:
    log = segments(tmp_path, NOW, NOW + 50, NOW, min_compaction_lag_ms=100)
    assert cleanable_section(log, NOW + 99).first_uncleanable_offset == 0
    assert cleanable_section(log, NOW + 100).first_uncleanable_offset == 1
    assert cleanable_section(log, NOW + 149).first_uncleanable_offset == 1
    assert cleanable_section(log, NOW + 150).first_uncleanable_offset == 3


def test_what_was_compacted_before_is_clean(tmp_path: Path) -> None:
    log = segments(tmp_path, NOW, NOW)
    compact(log)
    put(log, (b"b", b"value"))
    put(log, (b"c", b"value"))
    close_segment(log)
    section = cleanable_section(log, NOW)
    assert (section.first_dirty_offset, section.first_uncleanable_offset) == (2, 4)
    assert (section.clean_bytes, section.cleanable_bytes) == (SIZE, 2 * SIZE)


def test_nothing_below_the_log_start_offset_is_dirty(tmp_path: Path) -> None:
    log = segments(tmp_path, NOW, NOW, NOW)
    log.increment_log_start_offset(2)
    assert cleanable_section(log, NOW).first_dirty_offset == 2


def test_what_was_cut_off_and_written_again_is_dirty(tmp_path: Path) -> None:
    log = segments(tmp_path, NOW, NOW, NOW)
    compact(log)
    assert log.first_dirty_offset == 3
    log.truncate_to(1, NOW).run()
    append(log, keyed((b"a", b"value")), keyed((b"a", b"value")), keyed((b"a", b"value")))
    assert cleanable_section(log, NOW).first_dirty_offset == 1


@pytest.mark.parametrize(("dirty", "due"), [(1, False), (2, True)])
def test_due_above_the_dirty_ratio(tmp_path: Path, dirty: int, due: bool) -> None:
    log = segments(tmp_path, NOW)
    compact(log)
    for number in range(dirty):
        put(log, (b"%d" % number, b"value"))
    close_segment(log)
    assert cleanable_section(log, NOW).is_due(0.5) is due


@pytest.mark.parametrize(("age", "due"), [(100, False), (101, True)])
def test_due_after_max_compaction_lag_ms_whatever_the_ratio(tmp_path: Path, age: int, due: bool) -> None:
    log = segments(tmp_path, NOW, max_compaction_lag_ms=100)
    assert cleanable_section(log, NOW + age).is_due(1.0) is due


def test_segments_are_rolled_in_time_for_max_compaction_lag_ms(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, max_compaction_lag_ms=100)
    put(log, (b"a", b"value"), timestamp=NOW)
    put(log, (b"a", b"value"), timestamp=NOW + 100)
    put(log, (b"a", b"value"), timestamp=NOW + 101)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_an_empty_log_is_never_due(tmp_path: Path) -> None:
    assert not cleanable_section(compacted_log(tmp_path), NOW).is_due(0.0)
