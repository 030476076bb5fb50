"""What is known about one transactional id. It is immutable."""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.broker.transaction.states import TransactionState
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.protocol.topic_partition import TopicPartition

NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()
# A transaction that has not started.
NO_START: Final = -1
# The last epoch that a producer gets: one more is left for fencing it.
LAST_EPOCH: Final = 2**15 - 2
# The version of clients that add partitions by producing to them and get a new epoch with each transaction's end.
BUMPS_EPOCH: Final = 2


class TransactionMetadata(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    start_ms: int = NO_START
    last_update_ms: int = -1
    # The transaction.version that the client of the latest transaction speaks: 0, or 2.
    client_version: int = 0
    # The producer id before this one, so that a retry from before the id was exhausted is recognized.
    previous_producer_id: int = NO_PRODUCER_ID
    # The producer id that takes over when the transaction is complete, because the epochs of this one are used up.
    next_producer_id: int = NO_PRODUCER_ID
    # The epoch before this one, if its producer asked to continue after it, so that a retry is recognized. No record
    # holds this; after a restart such a retry is refused, as in Kafka.
    last_producer_epoch: int = NO_PRODUCER_EPOCH

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH
