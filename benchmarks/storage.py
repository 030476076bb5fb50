"""The log without a broker around it: appending, finding, opening, recovering, compacting.

Everything happens in the system's temporary directory, on disk or in memory, with a warm cache. There is wall-clock
time and CPU time: on a busy machine, CPU time says more.
"""

from __future__ import annotations

import random
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.cleaner.cleaner import Cleaner
from barnabas.storage.cleaner.work import here
from barnabas.storage.config import LogConfig
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory

NOW = 1_700_000_000_000
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SOME = TopicPartition("some", 0)


@dataclass(frozen=True)
class Row:
    what: str
    # Wall-clock time and CPU time.
    figures: tuple[float, float]
    unit: str
    # The minimum or maximum to reach.
    target: str = ""


@dataclass(frozen=True)
class Size:
    """How much work each benchmark does."""

    appended_bytes: int = 512 * MIB
    small_batches: int = 300_000
    batches_in_log: int = 1_000_000
    reads: int = 50_000
    partitions: int = 1000
    recovered_bytes: int = GIB
    records: int = 1_000_000


def rows(size: Size | None = None) -> Iterator[Row]:
    """Measure everything, row by row."""
    size = size or Size()
    yield from _appending(size)
    yield from _reading(size)
    yield from _opening(size)
    yield from _recovering(size)
    yield from _compacting(size)


QUICK = Size(32 * MIB, 30_000, 100_000, 10_000, 100, 128 * MIB, 100_000)


def main(quick: bool = False) -> None:
    print(f"storage: {'':44}{'by the clock':>14}{'by the CPU':>14}")
    for row in rows(QUICK if quick else None):
        clock, cpu = (f"{figure:,.{0 if figure >= 100 else 2}f}" for figure in row.figures)
        print(f"{row.what:53}{clock:>14}{cpu:>14} {row.unit:12}{row.target}", flush=True)


# -- measurements


def _appending(size: Size) -> Iterator[Row]:
    for label, batch, count, together in (
        ("appending 16 KiB batches", _batch_of(16 * KIB), size.appended_bytes // (16 * KIB), 1),
        ("appending 160 B batches", _batch_of(160), size.small_batches, 1),
        ("appending 160 B batches, 20 at a time", _batch_of(160), size.small_batches, 20),
    ):
        with _directory() as path:
            log = _new_log(path, LogConfig())
            batches = [memoryview(bytearray(batch)) for _ in range(together)]
            with _Timing() as timing:
                _append(log, batches, count // together)
        yield Row(label, timing.rate(count), "batches/s")
        yield Row("", timing.rate(count * len(batch) / 1e6), "MB/s")


def _reading(size: Size) -> Iterator[Row]:
    chance = random.Random(1)
    with _directory() as path:
        log = _new_log(path, LogConfig())
        _append(log, [memoryview(_batch_of(160)) for _ in range(100)], size.batches_in_log // 100)
        log.update_high_watermark(log.end_offset)
        offsets = [chance.randrange(log.end_offset) for _ in range(size.reads)]
        with _Timing() as timing:
            for offset in offsets:
                log.read(offset, 1000, upper_bound=log.high_watermark)
    yield Row(f"finding a random offset among {size.batches_in_log:,} batches", timing.each(size.reads, 1e6), "us")


def _opening(size: Size) -> Iterator[Row]:
    with _directory() as path:
        directory = _open(path, LogConfig())
        for number in range(size.partitions):
            log = directory.create_log(TopicPartition("topic", number), uuid.uuid4(), LogConfig(), NOW)
            _append(log, [memoryview(_batch_of(160))], 10)
        directory.close()
        with _Timing() as timing:
            directory = _open(path, LogConfig())
        directory.abandon()
    yield Row(f"opening {size.partitions:,} partitions after an orderly stop", timing.each(1), "s", "at most 1")


def _recovering(size: Size) -> Iterator[Row]:
    for label, batch_size, recovered_bytes, target in (
        ("16 KiB", 16 * KIB, size.recovered_bytes, "at least 1"),
        ("1 KiB", KIB, size.recovered_bytes // 4, ""),
    ):
        with _directory() as path:
            directory = _open(path, LogConfig())
            log = directory.create_log(SOME, uuid.uuid4(), LogConfig(), NOW)
            batches = [memoryview(_batch_of(batch_size)) for _ in range(16)]
            _append(log, batches, recovered_bytes // batch_size // 16)
            written = log.size
            directory.abandon()
            with _Timing() as timing:
                directory = _open(path, LogConfig())
            directory.abandon()
        what = f"recovering {written / GIB:.2f} GiB of {label} batches after a crash"
        yield Row(what, timing.rate(written / GIB), "GiB/s", target)


def _compacting(size: Size) -> Iterator[Row]:
    for label, batch_records, codec, records, target in (
        ("in batches of 100", 100, CompressionType.NONE, size.records, "at least 300,000"),
        ("in batches of 100, lz4", 100, CompressionType.LZ4, size.records, "at least 300,000"),
        ("in batches of 1", 1, CompressionType.NONE, size.records // 5, ""),
    ):
        config = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=32 * MIB)
        with _directory() as path:
            log = _new_log(path, config)
            _fill_with_keys(log, records, batch_records, codec)
            with _Timing() as timing:
                _compact(log)
        yield Row(f"compacting {records:,} records {label}", timing.rate(records), "records/s", target)


def _fill_with_keys(log: Log, records: int, batch_records: int, codec: CompressionType) -> None:
    """Every key occurs ten times, in random order."""
    chance = random.Random(1)
    for start in range(0, records, batch_records):
        batch = [
            NewRecord(NOW + start + number, b"key-%07d" % chance.randrange(records // 10), b"v" * 60)
            for number in range(batch_records)
        ]
        _append(log, [memoryview(build_batch(batch, compression=codec))], 1)
    log.update_high_watermark(log.end_offset)
    log.roll(NOW)
    flush = log.start_flush()
    flush.sync()
    log.finish_flush(flush, NOW)


def _compact(log: Log) -> None:
    cleaning = Cleaner({SOME: log}, start_work=here).choose(NOW)
    if cleaning is None:
        raise RuntimeError("there is nothing to compact")
    for step in cleaning.steps():
        step()
    if cleaning.stats is None:
        raise RuntimeError("the compaction was given up")


# -- helpers


class _Timing:
    """Measure how long the block took, in seconds."""

    def __enter__(self) -> Self:
        self._clock, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self._clock, self._cpu = time.perf_counter() - self._clock, time.process_time() - self._cpu

    def rate(self, amount: float) -> tuple[float, float]:
        return amount / self._clock, amount / self._cpu

    def each(self, amount: float, unit: float = 1) -> tuple[float, float]:
        return self._clock / amount * unit, self._cpu / amount * unit


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as path:
        yield Path(path)


def _open(path: Path, config: LogConfig) -> LogDirectory:
    return LogDirectory(str(path), node_id=1, config_of=lambda topic: config, now_ms=NOW)


def _new_log(path: Path, config: LogConfig) -> Log:
    return _open(path, config).create_log(SOME, uuid.uuid4(), config, NOW)


def _append(log: Log, batches: list[memoryview], times: int) -> None:
    no_offset = bytes(8)
    for _ in range(times):
        for batch in batches:
            batch[:8] = no_offset  # as a producer sends it
        for result in log.append(batches, leader_epoch=0, now_ms=NOW):
            if isinstance(result, Exception):
                raise result


def _batch_of(size: int) -> bytearray:
    """A batch of one record with exactly this many bytes."""
    empty = len(build_batch([NewRecord(NOW, b"key", b"")]))
    for value_size in range(size - empty, 0, -1):
        batch = build_batch([NewRecord(NOW, b"key", random.Random(1).randbytes(value_size))])
        if len(batch) <= size:
            return batch
    raise ValueError(f"a batch of {size} bytes is too small for a record")
