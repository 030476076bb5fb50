"""What brokers of one cluster may send each other: what the oldest of them understands.

`inter.broker.protocol.version` says which one that is. Everything else that brokers send each other has versions that
Apache Kafka 3.9 and this broker both know.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from barnabas.protocol.api import ApiKey


class Settings(Protocol):
    @property
    def inter_broker_protocol_version(self) -> str | None: ...


class Understood(NamedTuple):
    write_txn_markers: int
    add_partitions_to_txn: int
    transaction_version: int  # the feature of that name; 2 is KIP-890's second part
    group_version: int  # the feature of that name; 1 is the consumer protocol (KIP-848)
    share_version: int  # the feature of that name; 1 is share groups (KIP-932)
    streams_version: int  # 1 is streams groups (KIP-1071)
    highest: dict[ApiKey, int]
    """The highest versions that clients may use, where that is not the highest that is served."""


OURS: Final = Understood(
    write_txn_markers=2,
    add_partitions_to_txn=5,
    transaction_version=2,
    group_version=1,
    share_version=1,
    streams_version=1,
    highest={},
)
# What is left out is what a client needs for transaction.version 2.
KAFKA_3_9: Final = Understood(
    write_txn_markers=1,
    add_partitions_to_txn=4,
    transaction_version=0,
    group_version=0,
    share_version=0,
    streams_version=0,
    highest={ApiKey.PRODUCE: 11, ApiKey.END_TXN: 4, ApiKey.TXN_OFFSET_COMMIT: 4, ApiKey.WRITE_TXN_MARKERS: 1},
)


def understood_by_all(settings: Settings) -> Understood:
    version = settings.inter_broker_protocol_version
    if version is None:
        return OURS
    major = version.split(".")[0].removeprefix("0")
    return KAFKA_3_9 if not major.isdigit() or int(major) < 4 else OURS
