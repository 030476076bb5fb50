"""The checkpoint files: text, a version, a count of lines, then the lines.

recovery-point-offset-checkpoint   topic partition offset: the log is synced up to here
replication-offset-checkpoint      topic partition offset: the high watermark
log-start-offset-checkpoint        topic partition offset: the start of a log that starts after its first segment does
cleaner-offset-checkpoint          topic partition offset: the log is compacted up to here
leader-epoch-checkpoint            epoch offset: the first offset of each leader epoch (one file per partition)
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.errors import CorruptFile
from barnabas.storage.filesystem import FileSystem

RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

_VERSION: Final = 0


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """The offsets in a checkpoint file. Empty if the file is missing or empty."""
    offsets = {}
    for line in _read_lines(path):
        match line.split(" "):
            case [topic, partition, offset]:
                offsets[TopicPartition(topic, _number(path, partition))] = _number(path, offset)
            case _:
                raise CorruptFile(f"{path}: {line!r}")
    return offsets


def write_offsets(file_system: FileSystem, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
    file_system.replace_file(path, _format(lines))


def read_epochs(path: str) -> list[EpochEntry]:
    entries = []
    for line in _read_lines(path):
        match line.split(" "):
            case [epoch, offset]:
                entries.append(EpochEntry(_number(path, epoch), _number(path, offset)))
            case _:
                raise CorruptFile(f"{path}: {line!r}")
    for before, after in pairwise(entries):
        if before.epoch >= after.epoch or before.start_offset >= after.start_offset:
            message = f"epoch {after.epoch} at offset {after.start_offset} does not follow epoch {before.epoch}"
            raise CorruptFile(f"{path}: {message} at offset {before.start_offset}")
    return entries


def format_epochs(entries: Iterable[EpochEntry]) -> bytes:
    return _format(f"{entry.epoch} {entry.start_offset}" for entry in entries)


def _format(lines: Iterable[str]) -> bytes:
    lines = list(lines)
    return "".join(f"{line}\n" for line in [str(_VERSION), str(len(lines)), *lines]).encode()


def _read_lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise CorruptFile(f"{path}: not text") from None
    if not text:
        return []
    if not text.endswith("\n"):  # the last number of a torn file may lack digits
        raise CorruptFile(f"{path}: the last line does not end")
    lines = text.splitlines()
    if _number(path, lines[0]) != _VERSION:
        raise CorruptFile(f"{path}: version {lines[0]}")
    if len(lines) < 2 or _number(path, lines[1]) != len(lines) - 2:
        raise CorruptFile(f"{path}: the line count is {lines[1:2]}, but {len(lines) - 2} lines follow")
    return lines[2:]


def _number(path: str, text: str) -> int:
    # int() accepts more than digits: blanks, signs, underscores.
    if not text.isascii() or not text.isdecimal():
        raise CorruptFile(f"{path}: {text!r} is not a number")
    return int(text)
