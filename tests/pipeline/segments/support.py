"""A data directory with logs in it, and what a reader of it gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas.pipeline.segments.source import Part, SegmentDataSource, read_part
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.storage.config import LogConfig
from barnabas.storage.log import Log
from barnabas.storage.producer_state import AppendOrigin
from tests.storage.support import NOW, append, batch, close_log, make_log

SMALL_SEGMENTS = LogConfig(segment_bytes=300)


class Directory:
    """A data directory. Its logs are open, as a running broker has them, until `close` stops them in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._logs: list[Log] = []

    def log(self, name: str = "t-0", config: LogConfig | None = None) -> Log:
        log = make_log(self.path / name, config)
        self._logs.append(log)
        return log

    def close(self) -> None:
        for log in self._logs:
            close_log(log)
        self._logs.clear()

    def files(self, suffix: str, name: str = "t-0") -> list[Path]:
        return sorted((self.path / name).glob(f"*{suffix}"))

    def parts(self, **options: Any) -> list[Part]:
        source = SegmentDataSource({"path": str(self.path), **{name: str(value) for name, value in options.items()}})
        return list(source.reader(source.schema()).partitions())

    def rows(self, **options: Any) -> list[dict[str, Any]]:
        source = SegmentDataSource({"path": str(self.path), **{name: str(value) for name, value in options.items()}})
        columns = source.schema().names
        return [
            row for part in self.parts(**options) for found in read_part(part, columns) for row in found.to_pylist()
        ]

    def values(self, **options: Any) -> list[bytes]:
        return [row["value"] for row in self.rows(**options)]


def begin_transaction(log: Log, *values: bytes, producer: int = 1, sequence: int = 0) -> None:
    """Records of a transaction."""
    append(log, batch(*values, transactional=True, producer_id=producer, producer_epoch=0, base_sequence=sequence))


def end_transaction(log: Log, kind: ControlType, producer: int = 1) -> None:
    marker = build_end_transaction_marker(
        kind, timestamp=NOW, producer_id=producer, producer_epoch=0, coordinator_epoch=0
    )
    append(log, memoryview(marker), origin=AppendOrigin.COORDINATOR)
