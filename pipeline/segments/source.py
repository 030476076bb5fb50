"""The `barnabas` format: `spark.read.format("barnabas").load(directory)`.

Columns are those of Spark's Kafka connector, and options have its names where it has them:

    subscribe           topics, separated by commas; all but Kafka's internal ones by default
    partitions          numbers, separated by commas; all by default
    startingOffsets     a number, or {"topic": {"0": 5}}; the beginning by default; offsets may be gone
    endingOffsets       the same; not included; the end by default
    isolationLevel      read_committed (the default) leaves out what is aborted or undecided; or read_uncommitted
    includeHeaders      true adds the column `headers`
    maxPartitionBytes   how much of a segment one task reads, about; 64 MiB by default

Spark 4.0 does not tell a Python source which columns a query needs. Naming them, `.schema("offset long, value
binary")`, saves the work for the others.
"""

import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlparse

import numpy as np
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.segments import directory
from barnabas.pipeline.segments.batches import Chunk, check, read_chunks
from barnabas.pipeline.segments.directory import Partition, Segment
from barnabas.pipeline.segments.transactions import INDEX_SUFFIX, AbortedBatches, AbortedTransaction, decided
from barnabas.protocol.records.batch import CONTROL_FLAG, HEADER_SIZE, MAGIC, TRANSACTIONAL_FLAG, read_header
from barnabas.protocol.records.errors import RecordsError

COLUMNS: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}

OPTIONS: Final = (
    "path",
    "subscribe",
    "partitions",
    "startingOffsets",
    "endingOffsets",
    "isolationLevel",
    "includeHeaders",
    "maxPartitionBytes",
)

DEFAULT_PART_BYTES: Final = 64 << 20
END: Final = (1 << 63) - 1

_INDEX_ENTRY: Final = struct.Struct(">ii")


@dataclass
class Part(InputPartition):
    """What one task reads: a range of a segment file that begins and ends between batches.

    `tail` marks the end of a log, which may be torn; anywhere else that is damage.
    """

    topic: str
    partition: int
    path: str
    position: int
    end_position: int
    base_offset: int
    start_offset: int
    end_offset: int
    aborted: list[AbortedTransaction]
    tail: bool


class Options:
    """The options of a read, checked."""

    def __init__(self, options: Mapping[str, str]) -> None:
        # Spark keeps options without regard to case, and hands them over in lower case.
        given = {name.lower(): value for name, value in options.items()}
        unknown = sorted(set(given) - {name.lower() for name in OPTIONS})
        if unknown:
            raise PipelineError(f"the barnabas format has no option {', '.join(unknown)}; it has {', '.join(OPTIONS)}")
        if not given.get("path"):
            raise PipelineError('the barnabas format needs a data directory: .load("/var/lib/barnabas")')
        self.path = _local_path(given["path"])
        self.topics = _list(given.get("subscribe"))
        self.partitions = [_number("partitions", one) for one in _list(given.get("partitions"))]
        self.starting = _offsets("startingOffsets", given.get("startingoffsets", "earliest"))
        self.ending = _offsets("endingOffsets", given.get("endingoffsets", "latest"))
        isolation = given.get("isolationlevel", "read_committed")
        if isolation not in ("read_committed", "read_uncommitted"):
            raise PipelineError(f"isolationLevel is read_committed or read_uncommitted, not {isolation}")
        self.committed = isolation == "read_committed"
        self.headers = given.get("includeheaders", "false").lower() == "true"
        self.part_bytes = _number("maxPartitionBytes", given.get("maxpartitionbytes", str(DEFAULT_PART_BYTES)))

    def wants(self, partition: Partition) -> bool:
        if self.partitions and partition.partition not in self.partitions:
            return False
        return partition.topic in self.topics if self.topics else not partition.topic.startswith("__")

    def range_of(self, partition: Partition) -> tuple[int, int]:
        """The wanted range of offsets of a partition; the second is not included."""
        start = _offset_of(self.starting, partition)
        end = _offset_of(self.ending, partition)
        return max(0 if start is None else start, partition.log_start_offset), END if end is None else end


Offsets = int | dict[str, dict[str, int]] | None


def _offsets(name: str, text: str) -> Offsets:
    if text in ("earliest", "latest"):
        if (text == "earliest") != (name == "startingOffsets"):
            raise PipelineError(f"{name} = {text} leaves nothing to read")
        return None
    try:
        parsed = json.loads(text)
        if isinstance(parsed, int) and parsed >= 0:
            return parsed
        return {
            topic: {str(int(number)): int(offset) for number, offset in offsets.items()}
            for topic, offsets in parsed.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise PipelineError(f'{name} is an offset, or offsets as {{"topic": {{"0": 5}}}}, not {text}') from None


def _offset_of(offsets: Offsets, partition: Partition) -> int | None:
    if isinstance(offsets, dict):
        offset = offsets.get(partition.topic, {}).get(str(partition.partition))
        # The connector writes -2 for the earliest and -1 for the latest: here they mean no bound.
        return None if offset is None or offset < 0 else offset
    return offsets


def _list(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]


def _number(name: str, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise PipelineError(f"{name}: {text} is not a number")
    return number


def _local_path(path: str) -> Path:
    parsed = urlparse(path)
    if parsed.scheme not in ("", "file"):
        raise PipelineError(f"{path}: segment files are read from a local or mounted directory")
    return Path(unquote(parsed.path) if parsed.scheme else path).expanduser()


class SegmentDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> StructType:
        with_headers = Options(self.options).headers
        return StructType([StructField(name, COLUMNS[name]) for name in COLUMNS if name != "headers" or with_headers])

    def reader(self, schema: StructType) -> DataSourceReader:
        return SegmentReader(Options(self.options), schema)


class SegmentReader(DataSourceReader):
    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        known = {name: kind.simpleString() for name, kind in COLUMNS.items()}
        for field in schema:
            kind = field.dataType.simpleString()
            if known.get(field.name) != kind:
                columns = ", ".join(f"{name} {kind}" for name, kind in known.items())
                raise PipelineError(f"{field.name} {kind} is not among the columns: {columns}")
        self._columns = [field.name for field in schema]

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        wanted = [one for one in directory.partitions(options.path) if options.wants(one)]
        missing = set(options.topics) - {one.topic for one in wanted}
        if missing:
            raise PipelineError(f"{options.path} has no topic {', '.join(sorted(missing))}")
        parts = [part for one in wanted for part in plan(one, options)]
        return parts or [_nothing(options)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Part)
        return read_part(partition, self._columns)


def _nothing(options: Options) -> Part:
    # Spark requires at least one part.
    return Part("", 0, os.devnull, 0, 0, 0, 0, 0, [], True)


def plan(partition: Partition, options: Options) -> list[Part]:
    """The parts of a partition that are to be read."""
    start, end = options.range_of(partition)
    segments = partition.segments
    aborted: list[AbortedTransaction] = []
    if options.committed:
        aborted, last_stable_offset = decided(segments)
        if last_stable_offset is not None:
            end = min(end, last_stable_offset)
    parts = []
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        next_base = END if last else segments[number + 1].base_offset
        if segment.base_offset >= end or next_base <= start:
            continue
        touching = [one for one in aborted if one.first_offset < next_base and one.last_offset >= segment.base_offset]
        size = os.stat(segment.path).st_size
        cuts = split_points(segment, size, options.part_bytes)
        for (position, base_offset), (end_position, _) in zip(cuts, [*cuts[1:], (size, 0)], strict=True):
            part = Part(
                topic=partition.topic,
                partition=partition.partition,
                path=segment.path,
                position=position,
                end_position=end_position,
                base_offset=base_offset,
                start_offset=start,
                end_offset=end,
                aborted=touching,
                tail=last and end_position == size,
            )
            parts.append(part)
    return parts


def split_points(segment: Segment, size: int, part_bytes: int) -> list[tuple[int, int]]:
    """Positions in a segment file where batches begin, about `part_bytes` apart, with the first offset there.

    They come from the offset index. Its entries are checked, because part of the index of a log in use is not written
    yet.
    """
    points = [(0, segment.base_offset)]
    if size <= part_bytes:
        return points
    try:
        data = Path(segment.beside(INDEX_SUFFIX)).read_bytes()
    except FileNotFoundError:
        return points
    with open(segment.path, "rb") as file:
        for relative_offset, position in _INDEX_ENTRY.iter_unpack(data[: len(data) - len(data) % _INDEX_ENTRY.size]):
            if position < points[-1][0] + part_bytes or size - position < HEADER_SIZE:
                continue
            header = read_header(os.pread(file.fileno(), HEADER_SIZE, position))
            offset = segment.base_offset + relative_offset
            if header.magic == MAGIC and header.base_offset <= offset <= header.last_offset:
                points.append((position, header.base_offset))
    return points


def read_part(part: Part, columns: Sequence[str]) -> Iterator[Any]:
    """The records of a part, as Arrow's record batches."""
    # These take a second to load; processes that only plan a read do not need them.
    from barnabas.pipeline.segments.arrow import decode_chunk
    from barnabas.pipeline.segments.native import scan

    aborted = AbortedBatches(part.aborted)
    next_offset = part.base_offset
    try:
        for chunk in read_chunks(part.path, part.position, part.end_position, part.base_offset, scan=scan):
            if not isinstance(chunk, Chunk):
                if not part.tail:
                    raise _damaged(part, chunk.position)
                return
            if chunk.position == part.position and part.position and chunk.headers.base_offset[0] != part.base_offset:
                raise _gone(part)
            numbers, sound = _wanted(chunk, part, aborted)
            decoded = decode_chunk(chunk, numbers, part.topic, part.partition)
            decoded = decoded.between(part.start_offset, part.end_offset)
            if len(decoded):
                yield decoded.to_arrow(columns)
            if not sound:
                if not part.tail:
                    raise _damaged(part, chunk.position)
                return
            next_offset = int(chunk.headers.last_offset[-1]) + 1
            if next_offset >= part.end_offset:
                return
    except FileNotFoundError:
        raise _gone(part) from None
    except RecordsError as error:
        raise PipelineError(f"{part.path}, after offset {next_offset - 1}: {error}") from None


def _wanted(chunk: Chunk, part: Part, aborted: AbortedBatches) -> tuple[Any, bool]:
    """The numbers of the batches of a chunk whose records are wanted, and whether all batches are sound.

    An unsound batch ends the list.
    """
    headers = chunk.headers
    candidates = (headers.attributes & CONTROL_FLAG) == 0
    candidates &= (headers.last_offset >= part.start_offset) & (headers.base_offset < part.end_offset)
    transactional = (headers.attributes & TRANSACTIONAL_FLAG) != 0
    wanted: list[int] = []
    for number in range(len(candidates)):
        if not check(chunk, number):
            return np.array(wanted, dtype=np.int64), False
        if not candidates[number]:
            continue
        batch = (int(headers.producer_id[number]), int(headers.base_offset[number]))
        if not (transactional[number] and batch in aborted):
            wanted.append(number)
    return np.array(wanted, dtype=np.int64), True


def _damaged(part: Part, position: int) -> PipelineError:
    return PipelineError(
        f"{part.path} is damaged at byte {position} or not far after it. If a crash caused this, a broker that is "
        "started on the directory, or on a copy of it, truncates it there; or read up to there with endingOffsets"
    )


def _gone(part: Part) -> PipelineError:
    return PipelineError(
        f"{part.path} was deleted or replaced while it was read, by a running broker's retention or compaction: "
        "read again"
    )
