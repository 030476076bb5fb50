"""barnabas.storage.cleaner.plan: which segments grow together."""

from barnabas.storage.cleaner.plan import Source, group_sources
from barnabas.storage.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from barnabas.storage.segment import MAX_RELATIVE_OFFSET


def source(base_offset: int, size: int, *, end_offset: int = 0, index: int = 0, time_index: int = 0) -> Source:
    sizes = {LOG_SUFFIX: size, OFFSET_INDEX_SUFFIX: index, TIME_INDEX_SUFFIX: time_index}
    return Source(base_offset, end_offset or base_offset + 10, sizes)


def groups(*sources: Source) -> list[list[int]]:
    found = group_sources(sources, segment_bytes=100, segment_index_bytes=50)
    return [[each.base_offset for each in group] for group in found]


def test_as_many_as_fit_into_a_segment() -> None:
    assert groups(source(0, 40), source(10, 60), source(20, 1), source(30, 99), source(40, 1)) == [
        [0, 10],
        [20, 30],
        [40],
    ]


def test_as_many_as_fit_into_its_indexes() -> None:
    assert groups(source(0, 1, index=30), source(10, 1, index=20), source(20, 1, index=1)) == [[0, 10], [20]]
    assert groups(source(0, 1, time_index=30), source(10, 1, time_index=21)) == [[0], [10]]


def test_as_many_as_its_offsets_reach() -> None:
    near = source(10, 1, end_offset=MAX_RELATIVE_OFFSET + 1)
    far = source(10, 1, end_offset=MAX_RELATIVE_OFFSET + 2)
    assert groups(source(0, 1), near) == [[0, 10]]
    assert groups(source(0, 1), far) == [[0], [10]]


def test_one_that_is_too_large_stays_alone() -> None:
    assert groups(source(0, 200), source(10, 1)) == [[0], [10]]
    assert groups() == []
