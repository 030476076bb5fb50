"""What a coordinator replays where transactions write to its partition.

A record of a transaction becomes valid when the transaction is committed, and never if it is aborted. A marker further
on in the same partition says which. TxnOffsetCommit commits a group's offsets this way.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class InTransaction(NamedTuple):
    """A record that a producer has written in its open transaction."""

    producer_id: int
    read: Any


class TransactionEnd(NamedTuple):
    """A producer's transaction is over, and what it wrote is valid or not."""

    producer_id: int
    committed: bool
