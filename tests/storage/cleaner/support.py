"""Logs to be compacted, and what is left in them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header, validate_batch
from barnabas.protocol.records.builder import NewRecord, build_batch, frame_batch
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.protocol.records.record import Record, read_records
from barnabas.storage.cleaner.cleaner import Cleaner, CleanerConfig, Cleaning
from barnabas.storage.cleaner.rewrite import CleaningStats
from barnabas.storage.cleaner.work import here
from barnabas.storage.config import LogConfig
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.log import Log
from barnabas.storage.producer_state import AppendOrigin
from tests.storage.support import NOW, PARTITION, append, bytes_of, flush_log, make_log

# All that is closed is compacted, however little it is.
SETTINGS: dict[str, Any] = {
    "cleanup_policy": frozenset({"compact"}),
    "min_cleanable_dirty_ratio": 0.0,
    "delete_retention_ms": 1000,
}


class NoSync(FileSystem):
    """Other tests check what is synced and when."""

    def fsync(self, fd: int) -> None:
        pass

    def fsync_directory(self, path: str) -> None:
        pass


def compacted_log(folder: Path, *, file_system: FileSystem | None = None, **settings: Any) -> Log:
    config = LogConfig(**{**SETTINGS, **settings})
    return make_log(folder / "topic-0", config, file_system=file_system or NoSync())


def keyed(*pairs: tuple[bytes | None, bytes | None], timestamp: int = NOW, **fields: Any) -> memoryview:
    """A batch of records with these keys and values."""
    return memoryview(build_batch([NewRecord(timestamp, key, value) for key, value in pairs], **fields))


def put(log: Log, *pairs: tuple[bytes | None, bytes | None], **fields: Any) -> int:
    """Append one batch of keys and values, and return its base offset."""
    return append(log, keyed(*pairs, **fields), origin=AppendOrigin.COORDINATOR)[0]


def put_records(log: Log, records: bytearray, *, count: int, base_timestamp: int, max_timestamp: int) -> None:
    """Append records that are already encoded, under a header that may say anything about them."""
    batch = frame_batch(records, (0, count - 1, base_timestamp, max_timestamp, -1, -1, -1, count))
    append(log, memoryview(batch), origin=AppendOrigin.COORDINATOR)


def end_transaction(log: Log, control_type: ControlType, producer_id: int, producer_epoch: int = 0) -> int:
    marker = build_end_transaction_marker(
        control_type, timestamp=NOW, producer_id=producer_id, producer_epoch=producer_epoch, coordinator_epoch=0
    )
    return append(log, memoryview(marker), origin=AppendOrigin.COORDINATOR)[0]


def transaction(
    log: Log, producer_id: int, *pairs: tuple[bytes, bytes | None], commit: bool, sequence: int = 0
) -> None:
    put(log, *pairs, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    end_transaction(log, ControlType.COMMIT if commit else ControlType.ABORT, producer_id)


def cleaning_of(log: Log, now_ms: int = NOW, **config: Any) -> Cleaning:
    cleaning = Cleaner({PARTITION: log}, CleanerConfig(**config), NoSync(), here).choose(now_ms)
    assert cleaning is not None, "there is nothing to compact"
    return cleaning


def compact(log: Log, now_ms: int = NOW, **config: Any) -> CleaningStats:
    """Close the active segment and compact what is there."""
    log.roll(now_ms)
    flush_log(log)
    cleaning = cleaning_of(log, now_ms, **config)
    for step in cleaning.steps():
        step()
    assert cleaning.stats is not None, "the compaction was given up"
    return cleaning.stats


def fetch(log: Log, offset: int, upper_bound: int, max_bytes: int = 1000) -> Iterator[tuple[BatchHeader, memoryview]]:
    """All batches from that of an offset on, as consumers get them: fetch by fetch."""
    while data := memoryview(bytes_of(log.read(offset, max_bytes, upper_bound=upper_bound))):
        while len(data) >= HEADER_SIZE and len(data) >= (header := read_header(data)).size:
            yield validate_batch(data), data[: header.size]
            offset = header.next_offset
            data = data[header.size :]


def read_all(log: Log, offset: int | None = None) -> list[Record]:
    """All records from an offset on, aborted ones among them."""
    offset = log.log_start_offset if offset is None else offset
    return [
        record
        for header, batch in fetch(log, offset, log.end_offset)
        if not header.is_control
        for record in read_records(batch, header)
        if record.offset >= offset
    ]


def contents(log: Log) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in read_all(log)]


def read_committed(log: Log) -> list[Record]:
    """What a consumer shows that leaves out what the broker reports as aborted."""
    aborted = log.aborted_transactions(log.log_start_offset, log.last_stable_offset)
    records = []
    for header, batch in fetch(log, log.log_start_offset, log.last_stable_offset):
        is_aborted = header.is_transactional and any(
            each.producer_id == header.producer_id and each.first_offset <= header.base_offset <= each.last_offset
            for each in aborted
        )
        if not header.is_control and not is_aborted:
            records += read_records(batch, header)
    return records


def headers(log: Log) -> list[BatchHeader]:
    """The headers of all batches, each checked."""
    found = []
    for segment in log.segments:
        for position, header in segment.headers():
            validate_batch(segment.read_batch(position, header))
            found.append(header)
    return found
