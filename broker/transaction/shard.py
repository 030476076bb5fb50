"""The transactional ids of one partition of __transaction_state."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.broker.coordinator.timers import Timers
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.broker.transaction.records import ReadRecord

# For people who look: the last states of transactions, and what was refused or went wrong.
_STATES_KEPT: Final = 400
_NOTES_KEPT: Final = 100


class TransactionNote(NamedTuple):
    at_ms: int
    transactional_id: str
    what: str


class TransactionShard:
    def __init__(self, finish: Callable[[TransactionMetadata], None], timers: Timers) -> None:
        """`finish` carries out an end that was decided before the shard was loaded, here or by another coordinator."""
        self.transactions: dict[str, TransactionMetadata] = {}
        self._finish = finish
        self.timers = timers
        self.past: deque[TransactionMetadata] = deque(maxlen=_STATES_KEPT)
        self.notes: deque[TransactionNote] = deque(maxlen=_NOTES_KEPT)

    def replay(self, read: ReadRecord) -> None:
        transactional_id, metadata = read
        if metadata is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = metadata
            self.past.append(metadata)

    def note(self, at_ms: int, transactional_id: str, what: str) -> None:
        self.notes.append(TransactionNote(at_ms, transactional_id, what))

    def loaded(self) -> None:
        for metadata in self.transactions.values():
            if metadata.state.is_prepared:
                self._finish(metadata)

    def unloaded(self) -> None:
        """No request waits within a shard. The next coordinator does what would have been retried."""
        self.timers.close()
