"""The transactional ids of one partition of __transaction_state."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.coordinator.timers import Timers
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.broker.transaction.records import ReadRecord


class TransactionShard:
    def __init__(self, finish: Callable[[TransactionMetadata], None], timers: Timers) -> None:
        """`finish` carries out an end that was decided before the shard was loaded, here or by another coordinator."""
        self.transactions: dict[str, TransactionMetadata] = {}
        self._finish = finish
        self.timers = timers

    def replay(self, read: ReadRecord) -> None:
        transactional_id, metadata = read
        if metadata is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = metadata

    def loaded(self) -> None:
        for metadata in self.transactions.values():
            if metadata.state.is_prepared:
                self._finish(metadata)

    def unloaded(self) -> None:
        """No request waits within a shard. The next coordinator does what would have been retried."""
        self.timers.close()
