"""The states of a transactional id and their transitions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """Numbered as in the records of __transaction_state."""

    # The id has a producer that has not started a transaction yet.
    EMPTY = 0
    # Partitions are part of a transaction.
    ONGOING = 1
    # The end is decided and will happen despite any crash: markers are being written to the partitions.
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    # All markers are written. The next transaction may start.
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    # The id is being forgotten. No record has this state: a tombstone stands for it.
    DEAD = 6
    # A transaction is about to be aborted without its producer. No record has this state: where Kafka waits in it for
    # its log, the abort is decided and written in one step here.
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """As answers and filters spell it."""
        return _LABELS[self]

    @property
    def is_prepared(self) -> bool:
        return self in _PREPARED


_LABELS: Final[Mapping[TransactionState, str]] = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
BY_LABEL: Final = {label: state for state, label in _LABELS.items()}

_PREPARED: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

# The state after the completion of a prepared one.
COMPLETED: Final[Mapping[TransactionState, TransactionState]] = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}

_S = TransactionState
# Which states a state may be reached from. From EMPTY and the complete ones, PREPARE_ABORT ends a transaction that had
# no partitions yet, which clients of transaction version 2 may do.
PREDECESSORS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.EMPTY, _S.ONGOING, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}
