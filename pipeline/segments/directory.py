"""What is in a data directory: partitions, and their segments in order.

The names are those of storage/FORMAT.md. A directory may be in use, or may be left over from a crash, so
compaction can be caught between two renames: its finished result (`.log.swap`) counts, and what it replaces does
not.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.segments.batches import last_offset_in

LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"

_FOLDER: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
_SEGMENT: Final = re.compile(r"(?P<offset>\d{20})\.log(?P<swap>\.swap)?")


class Segment(NamedTuple):
    base_offset: int
    path: str

    def beside(self, suffix: str) -> str:
        """The name of another file of this segment."""
        return os.path.join(os.path.dirname(self.path), f"{self.base_offset:020d}{suffix}")


class Partition(NamedTuple):
    topic: str
    partition: int
    folder: str
    log_start_offset: int
    segments: list[Segment]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def partitions(directory: Path) -> Iterator[Partition]:
    """The partitions in a data directory, topic by topic."""
    try:
        folders = [entry for entry in os.scandir(directory) if entry.is_dir()]
    except FileNotFoundError:
        raise PipelineError(f"{directory} does not exist; name a broker's data directory (its log.dirs)") from None
    except NotADirectoryError:
        raise PipelineError(f"{directory} is a file; name a broker's data directory (its log.dirs)") from None
    starts = log_start_offsets(directory)
    found = []
    for folder in folders:
        match = _FOLDER.fullmatch(folder.name)
        if match is not None and not folder.name.endswith("-delete"):
            found.append((match["topic"], int(match["partition"]), folder.path))
    for topic, partition, path in sorted(found):
        listed = segments(path)
        if listed:
            yield Partition(topic, partition, path, starts.get((topic, partition), 0), listed)


def segments(folder: str) -> list[Segment]:
    """The segments of a partition, in order of their offsets."""
    plain = {}
    swapped = []
    for name in os.listdir(folder):
        match = _SEGMENT.fullmatch(name)
        if match is None:
            continue
        segment = Segment(int(match["offset"]), os.path.join(folder, name))
        if match["swap"]:
            swapped.append(segment)
        else:
            plain[segment.base_offset] = segment
    for segment in swapped:
        last = last_offset_in(segment.path, segment.base_offset)
        replaced = [offset for offset in plain if segment.base_offset <= offset <= last]
        for offset in [*replaced, segment.base_offset]:
            plain.pop(offset, None)
        plain[segment.base_offset] = segment
    return [plain[offset] for offset in sorted(plain)]


def log_start_offsets(directory: Path) -> dict[tuple[str, int], int]:
    """The log start offsets of partitions whose first records were deleted but may still be in the first segment."""
    try:
        lines = (directory / LOG_START_OFFSET_CHECKPOINT).read_text().splitlines()
    except FileNotFoundError:
        return {}
    starts = {}
    for line in lines[2:]:
        topic, partition, offset = line.split(" ")
        starts[topic, int(partition)] = int(offset)
    return starts
