"""Which aborted transactions a reader of committed records must know: those that touch what it is sent, and no others.

A log may have thousands of them, so only as many are looked at as there are to tell: in each segment's index the first
one is found by bisection, and the search is over with the first transaction that was aborted when everything below the
end of the stretch was already decided.
"""

from storage.indexes.transaction_index import AbortedTransaction
from storage.segment import FileSlice
from storage.segments import Segments


def aborted_in(segments: Segments, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
    """Those that touch [first_offset, end_offset). Their markers may lie behind it."""
    aborted: list[AbortedTransaction] = []
    for segment in segments.from_offset(first_offset):
        index = segment.transaction_index
        if index.size and index.collect(first_offset, end_offset, aborted):
            break
    return aborted


def aborted_in_stretch(
    segments: Segments, offset: int, stretch: FileSlice, upper_bound: int
) -> list[AbortedTransaction]:
    """Those that touch a stretch which was read from `offset` on, with `upper_bound` for its bound.

    Where a stretch ends, the sparse offset index says about: perhaps some of what follows is told, too.
    """
    candidates = segments.from_offset(offset)
    if not any(segment.transaction_index.size for segment in candidates):
        return []
    end_offset = upper_bound
    for segment in candidates:
        if segment.handle is stretch.handle:
            beyond = segment.offset_index.first_offset_from(stretch.position + stretch.size)
            if beyond is None:
                following = segments.after(segment)
                beyond = upper_bound if following is None else following.base_offset
            end_offset = min(end_offset, beyond)
            break
    return aborted_in(segments, offset, end_offset)
