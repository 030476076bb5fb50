"""What storage's tests share: logs in a temporary folder, batches to append, records read back."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas.protocol.records.batch import validate_batch
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.record import Record, read_records
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.config import LogConfig
from barnabas.storage.filesystem import Buffer, FileSystem
from barnabas.storage.log import Log
from barnabas.storage.log_loader import KnownOffsets, open_log
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.segment import FileSlice
from barnabas.storage.time_lookup import FoundOffset, Searches, search_by_timestamp, search_max_timestamp
from barnabas.storage.write import AppendResult, Refusal

PARTITION = TopicPartition("topic", 0)
NOW = 1_000_000


def batch(*values: bytes, timestamp: int = NOW, key: bytes | None = b"key", **fields: Any) -> memoryview:
    """A batch as a producer sends it, one record for each value."""
    values = values or (b"value",)
    return memoryview(build_batch([NewRecord(timestamp, key, value) for value in values], **fields))


def make_log(
    folder: Path,
    config: LogConfig | None = None,
    *,
    file_system: FileSystem | None = None,
    clean: bool = True,
    known: KnownOffsets | None = None,
    max_open_files: int = 100,
) -> Log:
    """The log in a folder, which is created if necessary."""
    folder.mkdir(exist_ok=True)
    open_files = OpenFiles(file_system or FileSystem(), max_open_files)
    return open_log(
        str(folder),
        PARTITION,
        config or LogConfig(),
        open_files,
        known=known or KnownOffsets(),
        clean=clean,
        now_ms=NOW,
    )


def close_log(log: Log) -> None:
    """Stop cleanly."""
    flush = log.start_close()
    flush.sync()
    log.finish_flush(flush, NOW)
    log.drop_files()


def flush_log(log: Log) -> None:
    flush = log.start_flush()
    flush.sync()
    log.finish_flush(flush, NOW)


def append(log: Log, *record_sets: memoryview, leader_epoch: int = 0, **options: Any) -> list[int]:
    """Append record sets and commit them; returns the base offset of each. None may be refused."""
    results = _append(log, record_sets, leader_epoch=leader_epoch, now_ms=options.pop("now_ms", NOW), **options)
    for result in results:
        if not isinstance(result, AppendResult):
            raise result
    log.update_high_watermark(log.end_offset)
    return [result.base_offset for result in results if isinstance(result, AppendResult)]


def refusal(log: Log, record_set: memoryview, **options: Any) -> Exception:
    """Append a record set that the log must refuse, and leave the log as it is."""
    before = log.end_offset
    (result,) = _append(log, [record_set], leader_epoch=0, now_ms=NOW, **options)
    assert isinstance(result, Exception)
    assert log.end_offset == before
    return result


def _append(log: Log, record_sets: Sequence[memoryview], **options: Any) -> list[AppendResult | Refusal]:
    """Append record sets, and finish what takes long, as the log's owner would."""
    results = log.append(record_sets, **options)
    while len(results) < len(record_sets):
        while log.inspection is not None and not log.inspection.finished:
            log.inspection.advance()
        results += log.append(record_sets[len(results) :], **options)
    return results


def found_by(searches: Searches) -> FoundOffset | None:
    """What a search by time finds, each of its parts finished at once."""
    while True:
        try:
            search = next(searches)
        except StopIteration as end:
            found: FoundOffset | None = end.value
            return found
        while search is not None and not search.finished:
            search.advance()


def found_by_timestamp(log: Log, timestamp: int) -> FoundOffset | None:
    return found_by(search_by_timestamp(log, timestamp))


def found_max_timestamp(log: Log) -> FoundOffset | None:
    return found_by(search_max_timestamp(log))


def bytes_of(found: FileSlice | None) -> bytes:
    return b"" if found is None else os.pread(found.handle.fd, found.size, found.position)


def records_in(data: bytes) -> list[Record]:
    """The records of the whole batches in `data`, control batches left out."""
    records: list[Record] = []
    view = memoryview(data)
    while len(view) >= 12 and len(view) >= 12 + int.from_bytes(view[8:12]):
        header = validate_batch(view)
        if not header.is_control:
            records += read_records(view, header)
        view = view[header.size :]
    return records


def read_all(
    log: Log, offset: int | None = None, upper_bound: int | None = None, max_bytes: int = 1000
) -> list[Record]:
    """All records from an offset on, as a consumer reads them: fetch by fetch."""
    records: list[Record] = []
    offset = log.log_start_offset if offset is None else offset
    upper_bound = log.end_offset if upper_bound is None else upper_bound
    while True:
        found = [
            record
            for record in records_in(bytes_of(log.read(offset, max_bytes, upper_bound=upper_bound)))
            if record.offset >= offset
        ]
        if not found:
            return records
        records += found
        offset = found[-1].offset + 1


def values_of(records: Sequence[Record]) -> list[bytes | None]:
    return [record.value for record in records]


class FaultyFileSystem(FileSystem):
    """A file system whose writes, syncs and creations can be made to fail."""

    def __init__(self) -> None:
        self.write_error: OSError | None = None
        # How many bytes of a write still go through before it fails.
        self.room = 0
        self.fsync_error: OSError | None = None
        self.open_error: OSError | None = None
        self.max_write: int | None = None

    def open(self, path: str, *, create: bool = False) -> int:
        if self.open_error is not None and create:
            raise self.open_error
        return super().open(path, create=create)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int) -> int:  # type: ignore[override]
        data = b"".join(buffers)
        if self.write_error is not None:
            if self.room == 0:
                raise self.write_error
            data = data[: self.room]
            self.room -= len(data)
        if self.max_write is not None:
            data = data[: self.max_write]
        return os.pwritev(fd, [data], position)

    def fsync(self, fd: int) -> None:
        if self.fsync_error is not None:
            raise self.fsync_error
        super().fsync(fd)


def small_segments(tmp_path: Path, count: int, **settings: int) -> Log:
    """A log with one record per segment."""
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100, **settings))  # type: ignore[arg-type]
    for number in range(count):
        append(log, batch(b"%d" % number))
    assert len(log.segments) == count
    return log


def idempotent(sequence: int, *values: bytes) -> memoryview:
    return batch(*values, producer_id=5, producer_epoch=0, base_sequence=sequence)


def transactional(sequence: int, producer_id: int = 5) -> memoryview:
    return batch(producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
