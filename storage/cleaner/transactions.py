"""Finds the batches of aborted transactions, and the markers that are obsolete.

It takes the batches of a log in order. All of them are below the last stable offset, so every transaction has ended,
and it is known beforehand which ones were aborted.
"""

from collections.abc import Iterable

from barnabas.protocol.records.batch import TRANSACTIONAL_FLAG, BatchHeader
from barnabas.protocol.records.control import ControlType, EndTransactionMarker
from barnabas.storage.indexes.transaction_index import AbortedTransaction


class CleanedTransactions:
    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        # In reverse order, so that the next one to begin is at the end.
        self._to_come = sorted(aborted, key=lambda transaction: -transaction.first_offset)
        # Open transactions, by producer id.
        self._aborted: dict[int, AbortedTransaction] = {}
        # The producers that have a batch in their open transaction.
        self._seen: set[int] = set()

    def on_data(self, header: BatchHeader) -> bool:
        """Process a batch of records, and return whether it was aborted."""
        if not header.attributes & TRANSACTIONAL_FLAG:
            return False
        self._begin_up_to(header.last_offset)
        self._seen.add(header.producer_id)
        aborted = self._aborted.get(header.producer_id)
        # Its marker may have been compacted away.
        return aborted is not None and header.last_offset <= aborted.last_offset

    def on_marker(
        self, header: BatchHeader, marker: EndTransactionMarker | None
    ) -> tuple[bool, AbortedTransaction | None]:
        """Process a control batch.

        Returns whether it is obsolete, because no batch of its transaction is left, and the aborted transaction that
        readers must still know about.
        """
        self._begin_up_to(header.last_offset)
        if marker is None:
            return True, None
        was_seen = header.producer_id in self._seen
        self._seen.discard(header.producer_id)
        aborted = None
        if marker.control_type is ControlType.ABORT:
            aborted = self._aborted.pop(header.producer_id, None)
        return (False, aborted) if was_seen else (True, None)

    def _begin_up_to(self, offset: int) -> None:
        while self._to_come and self._to_come[-1].first_offset <= offset:
            transaction = self._to_come.pop()
            self._aborted[transaction.producer_id] = transaction
