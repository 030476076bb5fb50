"""Kafka's own kafka-dump-log over a data directory that we wrote: it reads all of it and finds nothing wrong."""

import json
import os
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.encoder import encode
from barnabas.protocol.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.protocol.schema import Message
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from barnabas.storage.config import LogConfig
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.producer_state import AppendOrigin
from barnabas.storage.write import AppendResult
from tests.support.dump_log import dump_log

pytestmark = pytest.mark.java

NOW_MS = 1_800_000_000_000
SMALL_SEGMENTS = LogConfig(segment_bytes=50_000)

PRODUCERS = (7, 8)
TURNS = 40
# In each round, with each codec, two records without a producer id and two of each producer; then the markers.
TOTAL = TURNS * (len(CompressionType) * 2 * (1 + len(PRODUCERS)) + len(PRODUCERS))


@pytest.fixture(scope="module", params=["closed in order", "recovered after a crash"])
def data_directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a topic of many segments and the two internal ones."""
    path = tmp_path_factory.mktemp("data")
    directory = open_directory(path)
    write_records_of_every_sort(create_log(directory, "castle"))
    write_offsets_and_groups(create_log(directory, "__consumer_offsets"))
    write_transactions(create_log(directory, "__transaction_state"))
    if request.param == "recovered after a crash":
        directory.abandon()
        tear_last_write(path / "castle-0")
        directory = open_directory(path)
    directory.close()
    return path


def open_directory(path: Path) -> LogDirectory:
    return LogDirectory(str(path), node_id=1, config_of=lambda topic: SMALL_SEGMENTS, now_ms=NOW_MS)


def create_log(directory: LogDirectory, topic: str) -> Log:
    return directory.create_log(TopicPartition(topic, 0), uuid.uuid4(), SMALL_SEGMENTS, NOW_MS)


def tear_last_write(folder: Path) -> None:
    with max(folder.glob("*.log")).open("ab") as log:
        log.write(build_batch([NewRecord(NOW_MS, b"key", b"value")], base_offset=TOTAL)[:-1])


def append(log: Log, batch: bytearray, origin: AppendOrigin = AppendOrigin.CLIENT) -> None:
    [result] = log.append([memoryview(batch)], leader_epoch=3, now_ms=NOW_MS, origin=origin)
    assert isinstance(result, AppendResult), result
    log.update_high_watermark(log.end_offset)


def write_records_of_every_sort(log: Log) -> None:
    """Each codec, with and without a producer id, and transactions of two producers that end in either way."""
    timestamp = NOW_MS - 100_000
    sequences = dict.fromkeys(PRODUCERS, 0)
    for turn in range(TURNS):
        for codec in CompressionType:
            timestamp += 137 if turn % 5 else -50
            records = [
                NewRecord(timestamp, None, None),
                NewRecord(timestamp + 5, b"key", os.urandom(700), [("von", b"Klamm"), ("an", None)]),
            ]
            append(log, build_batch(records, compression=codec))
            for producer_id in PRODUCERS:
                batch = build_batch(
                    records,
                    compression=codec,
                    producer_id=producer_id,
                    producer_epoch=0,
                    base_sequence=sequences[producer_id],
                    transactional=True,
                )
                append(log, batch)
                sequences[producer_id] += len(records)
        for producer_id in PRODUCERS:
            marker = build_end_transaction_marker(
                ControlType.ABORT if (turn + producer_id) % 2 else ControlType.COMMIT,
                timestamp=timestamp,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=2,
            )
            append(log, marker, AppendOrigin.COORDINATOR)


def write_offsets_and_groups(log: Log) -> None:
    for partition in range(3):
        key = OffsetCommitKey(group="surveyors", topic="castle", partition=partition)
        value = OffsetCommitValue(
            offset=100 + partition, leader_epoch=3, metadata="noted", commit_timestamp=NOW_MS, topic_id=bytes(range(16))
        )
        append_message(log, prefixed(1, key, 0), prefixed(4, value, 4))
    member = MemberMetadata(
        member_id="k-1",
        group_instance_id="k",
        client_id="k",
        client_host="/127.0.0.1",
        rebalance_timeout=300_000,
        session_timeout=45_000,
        subscription=b"",
        assignment=b"",
    )
    group = GroupMetadataValue(
        protocol_type="consumer",
        generation=5,
        protocol="range",
        leader="k-1",
        current_state_timestamp=NOW_MS,
        members=[member],
    )
    append_message(log, prefixed(2, GroupMetadataKey(group="surveyors"), 0), prefixed(4, group, 4))
    append_message(log, prefixed(2, GroupMetadataKey(group="surveyors"), 0), None)


def write_transactions(log: Log) -> None:
    for version in (0, 1):
        value = TransactionLogValue(
            producer_id=4000,
            producer_epoch=2,
            transaction_timeout_ms=60_000,
            transaction_status=1,
            transaction_partitions=[PartitionsSchema(topic="castle", partition_ids=[0, 1])],
            transaction_last_update_timestamp_ms=NOW_MS,
            transaction_start_timestamp_ms=NOW_MS - 10,
        )
        append_message(
            log, prefixed(0, TransactionLogKey(transactional_id="clerk"), 0), prefixed(version, value, version)
        )


def prefixed(number: int, message: Message, version: int) -> bytes:
    """As in the internal topics: a key starts with its type, a value with its version."""
    return number.to_bytes(2, "big") + encode(message, version)


def append_message(log: Log, key: bytes, value: bytes | None) -> None:
    append(log, build_batch([NewRecord(NOW_MS, key, value)]), AppendOrigin.COORDINATOR)


def files(folder: Path, *suffixes: str) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in suffixes)


class TestSegments:
    def test_logs_are_sound_to_the_last_record(self, data_directory: Path) -> None:
        logs = files(data_directory / "castle-0", ".log")
        assert len(logs) >= 10
        printed = dump_log(logs, "--deep-iteration")
        assert [int(offset) for offset in re.findall(r"(?m)^\| offset: (\d+) ", printed)] == list(range(TOTAL))
        assert set(re.findall(r"compresscodec: (\w+)", printed)) == {"none", "gzip", "snappy", "lz4", "zstd"}
        assert printed.count("endTxnMarker: COMMIT coordinatorEpoch: 2") == TURNS
        assert printed.count("endTxnMarker: ABORT coordinatorEpoch: 2") == TURNS

    def test_indexes_pass_the_check_that_a_broker_makes_when_it_starts(self, data_directory: Path) -> None:
        indexes = files(data_directory / "castle-0", ".index", ".timeindex")
        printed = dump_log(indexes, "--index-sanity-check")
        assert printed.count("passed sanity check") == len(indexes) >= 20

    def test_indexes_agree_with_the_logs(self, data_directory: Path) -> None:
        dump_log(files(data_directory / "castle-0", ".index", ".timeindex"), "--verify-index-only")

    def test_every_index_has_entries(self, data_directory: Path) -> None:
        printed = dump_log(files(data_directory / "castle-0", ".index", ".timeindex"))
        dumped = dict(re.findall(r"Dumping (\S+)\n((?:(?!Dumping).+\n)*)", printed))
        assert [name for name, entries in dumped.items() if not entries] == []

    def test_aborted_transactions_are_listed(self, data_directory: Path) -> None:
        printed = dump_log(files(data_directory / "castle-0", ".txnindex"))
        assert len(re.findall(r"version: 0 producerId: [78] firstOffset: \d+", printed)) == TURNS

    def test_the_last_snapshot_knows_the_producers(self, data_directory: Path) -> None:
        printed = dump_log(files(data_directory / "castle-0", ".snapshot")[-1:])
        last_sequence = TURNS * len(CompressionType) * 2 - 1
        for producer_id in PRODUCERS:
            assert re.search(
                rf"producerId: {producer_id} producerEpoch: 0 coordinatorEpoch: 2 "
                rf"currentTxnFirstOffset: OptionalLong.empty .* lastSequence: {last_sequence} ",
                printed,
            )


class TestInternalTopics:
    def test_offsets_and_groups_are_understood(self, data_directory: Path) -> None:
        printed = dump_log(files(data_directory / "__consumer_offsets-0", ".log"), "--offsets-decoder")
        *commits, group, tombstone = decoded(printed)
        assert [key["data"] for key, _ in commits] == [
            {"group": "surveyors", "topic": "castle", "partition": partition} for partition in range(3)
        ]
        assert commits[2][1]["data"] == {
            "offset": 102,
            "leaderEpoch": 3,
            "metadata": "noted",
            "commitTimestamp": NOW_MS,
            "topicId": "AAECAwQFBgcICQoLDA0ODw",
        }
        assert group[0]["data"] == {"group": "surveyors"}
        assert group[1]["data"]["generation"] == 5
        assert group[1]["data"]["members"][0]["groupInstanceId"] == "k"
        assert tombstone == (group[0], None)

    def test_transactions_are_understood(self, data_directory: Path) -> None:
        printed = dump_log(files(data_directory / "__transaction_state-0", ".log"), "--transaction-log-decoder")
        transactions = decoded(printed)
        assert len(transactions) == 2
        for version, (key, value) in enumerate(transactions):
            assert key["data"] == {"transactionalId": "clerk"}
            assert value == {
                "version": str(version),
                "data": {
                    "producerId": 4000,
                    "producerEpoch": 2,
                    "transactionTimeoutMs": 60_000,
                    "transactionStatus": 1,
                    "transactionPartitions": [{"topic": "castle", "partitionIds": [0, 1]}],
                    "transactionLastUpdateTimestampMs": NOW_MS,
                    "transactionStartTimestampMs": NOW_MS - 10,
                },
            }


def decoded(printed: str) -> list[tuple[Any, Any]]:
    """The keys and values that one of the tool's decoders printed."""
    lines = re.findall(r"(?m)^\| offset: .* key: ({.*}) payload: (.*)$", printed)
    return [(json.loads(key), None if value == "<DELETE>" else json.loads(value)) for key, value in lines]
