"""Everything that a compaction needs, as plain data for another thread or process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.storage.cleaner.cleanable import CleanableSection
from barnabas.storage.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from barnabas.storage.indexes.transaction_index import AbortedTransaction
from barnabas.storage.log import Log
from barnabas.storage.segment import MAX_RELATIVE_OFFSET, Segment

DEDUPE_BUFFER_SIZE: Final = 128 * 1024 * 1024


class Source(NamedTuple):
    """A segment to compact. It is closed: its files do not change."""

    base_offset: int
    end_offset: int
    # By file suffix.
    sizes: dict[str, int]

    @property
    def size(self) -> int:
        return self.sizes[LOG_SUFFIX]


class LastRecord(NamedTuple):
    """A producer's epoch, and where its last batch ends if the log still has one."""

    last_data_offset: int | None
    producer_epoch: int


@dataclass(frozen=True)
class CleaningPlan:
    folder: str
    # From the first segment of the log to the last one that may be compacted.
    sources: Sequence[Source]
    first_dirty_offset: int
    first_uncleanable_offset: int
    # Aborted transactions whose markers come after the sources; the sources' own indexes have the others.
    aborted_later: Sequence[AbortedTransaction]
    last_records: dict[int, LastRecord]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    dedupe_buffer_size: int


def plan_cleaning(log: Log, section: CleanableSection, now_ms: int, dedupe_buffer_size: int) -> CleaningPlan:
    config = log.config
    end_offset = section.first_uncleanable_offset
    aborted_later: list[AbortedTransaction] = []
    for segment in log.segments.from_offset(end_offset):
        if segment.transaction_index.collect(log.segments.first.base_offset, end_offset, aborted_later):
            break
    return CleaningPlan(
        folder=log.folder,
        sources=[
            _source(segment, end)
            for segment, end in log.segments.with_ends(log.end_offset)
            if segment.base_offset < end_offset
        ],
        first_dirty_offset=section.first_dirty_offset,
        first_uncleanable_offset=end_offset,
        aborted_later=aborted_later,
        last_records={
            producer_id: LastRecord(
                producer.batches[-1].last_offset if producer.batches else None, producer.producer_epoch
            )
            for producer_id, producer in log.producer_state.producers.items()
        },
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        dedupe_buffer_size=dedupe_buffer_size,
    )


def _source(segment: Segment, end_offset: int) -> Source:
    return Source(
        segment.base_offset,
        end_offset,
        {
            LOG_SUFFIX: segment.size,
            OFFSET_INDEX_SUFFIX: segment.offset_index.size,
            TIME_INDEX_SUFFIX: segment.time_index.size,
            TRANSACTION_INDEX_SUFFIX: segment.transaction_index.size,
        },
    )


def group_sources(sources: Sequence[Source], segment_bytes: int, segment_index_bytes: int) -> Iterator[list[Source]]:
    """Groups of adjacent segments that fit into one: compaction shrinks segments, so they are merged."""
    group: list[Source] = []
    for source in sources:
        if group and (
            _total(group, source, LOG_SUFFIX) > segment_bytes
            or _total(group, source, OFFSET_INDEX_SUFFIX) > segment_index_bytes
            or _total(group, source, TIME_INDEX_SUFFIX) > segment_index_bytes
            or source.end_offset - 1 - group[0].base_offset > MAX_RELATIVE_OFFSET
        ):
            yield group
            group = []
        group.append(source)
    if group:
        yield group


def _total(group: Sequence[Source], another: Source, suffix: str) -> int:
    return sum(source.sizes[suffix] for source in group) + another.sizes[suffix]
