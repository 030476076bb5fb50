"""The transactional ids of one partition of __transaction_state."""

from __future__ import annotations

from collections.abc import Callable

from broker.transaction.decisions import is_expired, is_timed_out
from broker.transaction.metadata import TransactionMetadata
from broker.transaction.records import ReadRecord


class TransactionShard:
    def __init__(self, finish: Callable[[TransactionMetadata], None]) -> None:
        """`finish` brings a transaction to its end whose end was decided before this start."""
        self.transactions: dict[str, TransactionMetadata] = {}
        self._finish = finish

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
        """Nobody waits within a shard."""

    def timed_out(self, now_ms: int) -> list[str]:
        """The ids whose transactions are open for longer than their producers said."""
        return [id for id, metadata in self.transactions.items() if is_timed_out(metadata, now_ms)]

    def expired(self, kept_ms: int, now_ms: int) -> list[str]:
        """The ids that have been idle for so long that they are forgotten."""
        return [id for id, metadata in self.transactions.items() if is_expired(metadata, kept_ms, now_ms)]
