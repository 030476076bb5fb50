"""barnabas.storage.swap: a compacted segment on its way into a log, and what becomes of the files on the way."""

import os
import shutil
from pathlib import Path

import pytest

from barnabas.storage.config import LogConfig
from barnabas.storage.file_names import CLEANED, DELETED, SWAP
from barnabas.storage.log import Log
from tests.storage.support import NOW, append, batch, make_log, read_all, values_of


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Three segments of one record; the first and the second are to be replaced by one that holds the second record."""
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100))
    for number in range(3):
        append(log, batch(b"%d" % number))
    for suffix in (".log", ".index", ".timeindex"):
        source = os.path.join(log.folder, f"{1:020d}{suffix}")
        shutil.copy(source, os.path.join(log.folder, f"{0:020d}{suffix}{CLEANED}"))
    # Its offsets count from the base offset, which is another one now.
    with open(os.path.join(log.folder, f"{0:020d}.timeindex{CLEANED}"), "r+b") as file:
        file.seek(8)
        file.write((1).to_bytes(4))
    return log


def sizes(log: Log) -> dict[str, int]:
    suffixes = (".log", ".index", ".timeindex")
    return {suffix: os.path.getsize(os.path.join(log.folder, f"{0:020d}{suffix}{CLEANED}")) for suffix in suffixes}


def endings(log: Log, *suffixes: str) -> int:
    return sum(name.endswith(suffixes) for name in os.listdir(log.folder))


def test_from_cleaned_to_swap_to_its_name(log: Log) -> None:
    old = list(log.segments)[:2]
    swap = log.start_swap(0, sizes(log), old)
    assert (endings(log, CLEANED), endings(log, SWAP), endings(log, DELETED)) == (0, 3, 0)
    assert values_of(read_all(log)) == [b"0", b"1", b"2"]

    swap.sync()
    deletion = log.replace_segments(swap)
    assert (endings(log, SWAP), endings(log, DELETED)) == (3, 6)
    assert values_of(read_all(log)) == [b"1", b"2"]

    deletion.run()
    log.finish_swap(swap)
    assert (endings(log, SWAP), endings(log, DELETED)) == (0, 0)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    assert values_of(read_all(log)) == [b"1", b"2"]


def test_truncating_the_log_cancels_it(log: Log) -> None:
    swap = log.start_swap(0, sizes(log), list(log.segments)[:2])
    log.truncate_to(1, NOW).run()
    assert swap.cancelled
    assert endings(log, CLEANED, SWAP) == 0
    assert values_of(read_all(log)) == [b"0"]


def test_deleting_segments_cancels_it(log: Log) -> None:
    swap = log.start_swap(0, sizes(log), list(log.segments)[:2])
    log.delete_segments([log.segments.first], NOW).run()
    assert swap.cancelled
    assert endings(log, CLEANED, SWAP) == 0
    assert values_of(read_all(log)) == [b"1", b"2"]


def test_the_log_may_be_truncated_before_the_new_segment_has_its_name(log: Log) -> None:
    swap = log.start_swap(0, sizes(log), list(log.segments)[:2])
    swap.sync()
    log.replace_segments(swap).run()
    log.truncate_to(0, NOW).run()
    append(log, batch(b"new"))
    log.finish_swap(swap)
    assert endings(log, SWAP) == 0
    assert values_of(read_all(log)) == [b"new"]


def test_a_log_that_is_closed_leaves_the_rest_to_the_next_start(log: Log) -> None:
    swap = log.start_swap(0, sizes(log), list(log.segments)[:2])
    log.drop_files()
    assert swap.cancelled
    reopened = make_log(Path(log.folder), log.config, clean=False)
    assert values_of(read_all(reopened)) == [b"1", b"2"]
    assert endings(reopened, CLEANED, SWAP) == 0
