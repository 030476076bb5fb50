"""barnabas.storage.producer_snapshot"""

import pytest

from barnabas.storage.errors import CorruptFile
from barnabas.storage.producer_snapshot import SnapshotEntry, decode_snapshot, encode_snapshot

# Written by Apache Kafka 4.3.1: producer 4 has a transaction under way since offset 66.
KAFKA_SNAPSHOT = bytes.fromhex(
    "00011101d36700000001000000000000000400000000003c000000000000004200000000000001a1e236cb7b000000000000000000000042"
)


def test_a_snapshot_that_apache_kafka_wrote() -> None:
    entry = SnapshotEntry(
        producer_id=4,
        producer_epoch=0,
        last_sequence=60,
        last_offset=66,
        offset_delta=0,
        timestamp=1794796604283,
        coordinator_epoch=0,
        current_transaction_first_offset=66,
    )
    assert decode_snapshot(KAFKA_SNAPSHOT) == [entry]
    assert encode_snapshot([entry]) == KAFKA_SNAPSHOT


def test_no_producers() -> None:
    assert len(encode_snapshot([])) == 10
    assert decode_snapshot(encode_snapshot([])) == []


def test_every_damaged_byte_is_noticed() -> None:
    for position in range(len(KAFKA_SNAPSHOT)):
        damaged = bytearray(KAFKA_SNAPSHOT)
        damaged[position] ^= 1
        with pytest.raises(CorruptFile):
            decode_snapshot(bytes(damaged))


def test_every_cut_is_noticed() -> None:
    for size in range(len(KAFKA_SNAPSHOT)):
        with pytest.raises(CorruptFile):
            decode_snapshot(KAFKA_SNAPSHOT[:size])
