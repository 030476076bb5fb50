"""Which batches belong to aborted transactions, and which markers have nothing left to say.

Fed with the batches of a log in their order, all of them below the last stable offset: every transaction in sight has
come to its end, and which ones were aborted is known beforehand.
"""

from collections.abc import Iterable

from protocol.records.batch import TRANSACTIONAL_FLAG, BatchHeader
from protocol.records.control import ControlType, EndTransactionMarker
from storage.indexes.transaction_index import AbortedTransaction


class CleanedTransactions:
    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        # The last begins first.
        self._to_come = sorted(aborted, key=lambda transaction: -transaction.first_offset)
        # Transactions under way, by producer id.
        self._aborted: dict[int, AbortedTransaction] = {}
        # The producers that have had a batch in their transaction under way.
        self._seen: set[int] = set()

    def on_data(self, header: BatchHeader) -> bool:
        """Take note of a batch of records, and say whether it was aborted."""
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
        """Take note of a control batch.

        Says whether it is needed no more, because nothing of its transaction was met, and which aborted transaction
        readers must still be told of.
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
