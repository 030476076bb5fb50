"""barnabas.storage.segments: the segments of a log in order."""

from pathlib import Path

import pytest

from barnabas.storage.filesystem import FileSystem
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.segment import Segment
from barnabas.storage.segments import Segments


def make(folder: Path, base_offset: int) -> Segment:
    return Segment(str(folder), base_offset, OpenFiles(FileSystem()))


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(make(tmp_path, base_offset) for base_offset in (20, 10, 30))


def bases(segments: list[Segment]) -> list[int]:
    return [segment.base_offset for segment in segments]


def test_they_are_in_order_and_the_last_is_active(segments: Segments) -> None:
    assert bases(list(segments)) == [10, 20, 30]
    assert segments.first.base_offset == 10
    assert segments.active.base_offset == 30


@pytest.mark.parametrize(("offset", "base"), [(0, 10), (10, 10), (19, 10), (20, 20), (29, 20), (30, 30), (99, 30)])
def test_the_segment_of_an_offset(segments: Segments, offset: int, base: int) -> None:
    assert segments.floor(offset).base_offset == base
    assert bases(segments.before(offset)) + bases(segments.from_offset(offset)) == [10, 20, 30]
    assert segments.from_offset(offset)[0].base_offset == base


def test_which_follows_which(segments: Segments) -> None:
    assert bases([after for segment in segments if (after := segments.after(segment))]) == [20, 30]
    assert [end for _, end in segments.with_ends(37)] == [20, 30, 37]


def test_coming_and_going(segments: Segments, tmp_path: Path) -> None:
    segments.remove(segments.active)
    assert segments.active.base_offset == 20
    segments.add(make(tmp_path, 25))
    segments.add(make(tmp_path, 5))
    assert bases(list(segments)) == [5, 10, 20, 25]
    assert segments.active.base_offset == 25
