"""What a coordinator replays where transactions write to its partition.

A record of a transaction holds when the transaction is committed, and never if it is aborted. Which of the two, a
marker says, further on in the same partition. Offsets of groups are committed so (TxnOffsetCommit).
"""

from __future__ import annotations

from typing import Any, NamedTuple


class InTransaction(NamedTuple):
    """A record that a producer has written in its transaction under way."""

    producer_id: int
    read: Any


class TransactionEnd(NamedTuple):
    """The transaction of a producer is over, and what it wrote holds or does not."""

    producer_id: int
    committed: bool
