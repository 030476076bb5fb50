"""Finds the aborted transactions that a reader of committed records must know: those that overlap what it is sent.

A log may have thousands of them, so the search reads few others: it bisects each segment's index for the first match,
and ends with the first transaction that was aborted when everything below the end of the records was already decided.
"""

from barnabas.storage.indexes.transaction_index import AbortedTransaction
from barnabas.storage.segment import FileSlice
from barnabas.storage.segments import Segments


def aborted_in(segments: Segments, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
    """Those that overlap [first_offset, end_offset). Their markers may come after it."""
    aborted: list[AbortedTransaction] = []
    for segment in segments.from_offset(first_offset):
        index = segment.transaction_index
        if index.size and index.collect(first_offset, end_offset, aborted):
            break
    return aborted


def aborted_in_slice(segments: Segments, offset: int, records: FileSlice, upper_bound: int) -> list[AbortedTransaction]:
    """Those that overlap a slice that was read from `offset` on and ends before `upper_bound`.

    The offset index is sparse and locates the end of a slice only roughly, so the list may contain a few later ones.
    """
    candidates = segments.from_offset(offset)
    if not any(segment.transaction_index.size for segment in candidates):
        return []
    end_offset = upper_bound
    for segment in candidates:
        if segment.handle is records.handle:
            beyond = segment.offset_index.first_offset_from(records.position + records.size)
            if beyond is None:
                following = segments.after(segment)
                beyond = upper_bound if following is None else following.base_offset
            end_offset = min(end_offset, beyond)
            break
    return aborted_in(segments, offset, end_offset)
