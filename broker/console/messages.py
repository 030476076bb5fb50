"""The messages of a topic: the newest, those from an offset or a time on, and new ones as they come.

Everything reads what is committed, straight from the logs of this process, a limited amount at a time. The records of
one partition stay in the order of their offsets, whatever timestamps clients gave them; timestamps say how partitions
are mixed. So where each partition goes on is one offset, and all of them are the `cursor` that comes with an answer.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import os
from collections.abc import AsyncGenerator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.console.errors import ConsoleError, NotFound
from barnabas.broker.console.records import LONG, MOST_HEADERS, Json, Query, decoded, whole
from barnabas.broker.testing.fleet import leader_of
from barnabas.protocol.records.batch import HEADER_SIZE, read_header
from barnabas.protocol.records.errors import RecordsError
from barnabas.protocol.records.record import Record
from barnabas.storage.errors import OffsetOutOfRange, StorageError
from barnabas.storage.segment import FileSlice
from barnabas.storage.time_lookup import search_by_timestamp

if TYPE_CHECKING:
    from barnabas.broker.controller.images import PartitionImage, TopicImage
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.replica.partition import Partition
    from barnabas.storage.log import Log

_AT_ONCE: Final = 1024 * 1024  # bytes
# One request looks at so many records in each partition, and reads so many bytes. A search goes on with the next one.
_MOST_LOOKED_AT: Final = 20_000
_MOST_READ: Final = 32 * 1024 * 1024
MOST_SHOWN: Final = 200
_TAIL_AT_ONCE: Final = 100
_SECONDS_BETWEEN_TAILS: Final = 0.5
# Where more comes than is shown, nobody can read it as it passes anyway.
_SECONDS_BETWEEN_FULL_TAILS: Final = 1.0
# So often is it looked whether the topic is still there, and somebody who listens.
_SECONDS_WITHOUT_NEWS: Final = 1.0


class Messages:
    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def partitions(self, topic: str, wanted: str | None) -> list[Partition]:
        """The partitions of a topic that can be read here: all of them, or the one that is wanted."""
        brokers = list(self._cluster.brokers)
        here = [leader_of(brokers, topic, told.partition_index) for told in self._told(topic, wanted)]
        return [partition for partition in here if partition is not None]

    def elsewhere(self, topic: str, wanted: str | None) -> list[Json]:
        """Those of which this process has no copy, and who leads them."""
        brokers = list(self._cluster.brokers)
        return [
            {"partition": told.partition_index, "leader": told.leader_id}
            for told in self._told(topic, wanted)
            if leader_of(brokers, topic, told.partition_index) is None
        ]

    def _told(self, topic: str, wanted: str | None) -> Sequence[PartitionImage]:
        image = self._image(topic)
        if wanted in (None, "", "all"):
            return image.partitions
        if not str(wanted).isdigit() or int(str(wanted)) not in range(len(image.partitions)):
            raise NotFound(f"{topic!r} has no partition {wanted!r}")
        return [image.partitions[int(str(wanted))]]

    def _image(self, topic: str) -> TopicImage:
        found = next(
            (found for each in self._cluster.brokers if (found := each.cluster.topic(topic)) is not None), None
        )
        if found is None:
            raise NotFound(f"there is no topic {topic!r}")
        return found

    def _is_there(self, image: TopicImage) -> bool:
        found = (each.cluster.topic(image.name) for each in self._cluster.brokers)
        return any(each is not None and each.topic_id == image.topic_id for each in found)

    # --- newest first ---

    async def newest(self, topic: str, partition: str | None, text: str, cursor: str | None, limit: int) -> Json:
        before = _cursor(cursor)
        query = Query(text)
        looked_at = 0
        candidates: list[list[Json]] = []
        reached: dict[int, int] = {}
        starts: dict[int, int] = {}
        for each in self.partitions(topic, partition):
            log = each.log
            end = min(before.get(each.index, log.high_watermark), log.high_watermark)
            records, count, reached[each.index] = await _backwards(log, each.index, end, query, limit)
            starts[each.index] = log.log_start_offset
            candidates.append(records[::-1])
            looked_at += count
        mixed = list(heapq.merge(*candidates, key=itemgetter("timestamp"), reverse=True))
        shown, rest = mixed[:limit], mixed[limit:]
        for record in rest:  # they are for the next page
            index = record["partition"]
            reached[index] = max(reached[index], record["offset"] + 1)
        more = any(reached[index] > start for index, start in starts.items())
        return {
            "records": shown,
            "looked_at": looked_at,
            "cursor": json.dumps(reached) if more else None,
            "elsewhere": self.elsewhere(topic, partition),
        }

    # --- oldest first, from somewhere on ---

    async def from_position(
        self,
        topic: str,
        partition: str | None,
        text: str,
        cursor: str | None,
        limit: int,
        offset: int,
        time_ms: int | None,
    ) -> Json:
        """From an offset, or with `time_ms` from the first record that is not older."""
        following = _cursor(cursor)
        query = Query(text)
        looked_at = 0
        candidates: list[list[Json]] = []
        reached: dict[int, int] = {}
        ends: dict[int, int] = {}
        for each in self.partitions(topic, partition):
            log = each.log
            start = following.get(each.index)
            if start is None:
                start = offset if time_ms is None else await at_time(log, time_ms)
            start = min(max(start, log.log_start_offset), log.high_watermark)
            ends[each.index] = log.high_watermark
            records, count, reached[each.index] = await _forwards(log, each.index, start, query, limit)
            candidates.append(records)
            looked_at += count
        mixed = list(heapq.merge(*candidates, key=itemgetter("timestamp")))
        shown, rest = mixed[:limit], mixed[limit:]
        for record in rest:
            index = record["partition"]
            reached[index] = min(reached[index], record["offset"])
        more = any(reached[index] < end for index, end in ends.items())
        return {
            "records": shown,
            "looked_at": looked_at,
            "cursor": json.dumps(reached) if more else None,
            "elsewhere": self.elsewhere(topic, partition),
        }

    async def one(self, topic: str, partition: str, offset: int) -> Json:
        """A single record, with much more of its key, its value and its headers."""
        (found,) = self.partitions(topic, partition) or (None,)
        if found is None:
            raise NotFound(f"partition {partition} is led by a broker elsewhere")
        records = await _read(
            found.log, found.index, offset, offset + 1, Query(longest=LONG, most_headers=MOST_HEADERS)
        )
        if not records[0]:
            raise NotFound(f"there is no record with the offset {offset}")
        return records[0][0]

    async def record(self, topic: str, partition: str, offset: int) -> Record:
        """A single record as it is, to be written again."""
        (found,) = self.partitions(topic, partition) or (None,)
        if found is None:
            raise NotFound(f"partition {partition} is led by a broker elsewhere")
        part = _slice(found.log, offset)
        record = None if part is None else await asyncio.to_thread(lambda: whole(_bytes_of(part), offset))
        if record is None:
            raise NotFound(f"there is no record with the offset {offset}")
        return record

    # --- as they come ---

    async def tail(self, topic: str, partition: str | None, text: str) -> AsyncGenerator[Json | None, None]:
        """New records, in parts; None where there are none for a while. Where there are too many, some are skipped.

        It follows partitions to new leaders, and begins with those that are added. The end of the topic is its end,
        also if there is another one of the same name by then.
        """
        query = Query(text)
        image = self._image(topic)
        ends = {each.index: each.log.high_watermark for each in self.partitions(topic, partition)}
        elsewhere = self.elsewhere(topic, partition)
        if elsewhere:
            yield {"records": [], "skipped": 0, "elsewhere": elsewhere}
        while True:
            if not self._is_there(image):
                yield {"records": [], "skipped": 0, "error": f"{topic} has been deleted"}
                return
            found = self.partitions(topic, partition)
            share = max(_TAIL_AT_ONCE // max(len(found), 1), 5)  # of each partition, where there are too many
            for each in found:
                is_new = each.index >= len(image.partitions)
                ends.setdefault(each.index, each.log.log_start_offset if is_new else each.log.high_watermark)
            if not await _news(found, ends):
                yield None
                continue
            skipped = 0
            shown: list[Json] = []
            for each in found:
                end = each.log.high_watermark
                start = ends[each.index]
                if not _can_look_at_all(text, start, end):
                    skipped += end - share - start
                    start = end - share
                if start < end:
                    records, _, ends[each.index] = await _forwards(each.log, each.index, start, query, MOST_SHOWN)
                    shown += records
            shown.sort(key=lambda each: (each["timestamp"], each["offset"]))
            skipped += max(len(shown) - _TAIL_AT_ONCE, 0)
            if shown or skipped:
                yield {"records": shown[-_TAIL_AT_ONCE:], "skipped": skipped}
            await asyncio.sleep(_SECONDS_BETWEEN_FULL_TAILS if skipped else _SECONDS_BETWEEN_TAILS)


def _can_look_at_all(text: str, start: int, end: int) -> bool:
    """Whether all records of [start, end) can be looked at: without a search, only the last ones are shown anyway."""
    return end - start <= (_MOST_LOOKED_AT if text else _TAIL_AT_ONCE)


async def _news(partitions: Sequence[Partition], ends: dict[int, int]) -> bool:
    """Wait until something is committed beyond these ends; False if nothing has been for a while."""
    if any(each.log.high_watermark > ends[each.index] for each in partitions):
        return True
    waiter = _Waiter()
    for partition in partitions:
        partition.waiters[waiter] = None
    try:
        async with asyncio.timeout(_SECONDS_WITHOUT_NEWS):
            await waiter.heard.wait()
    except TimeoutError:
        return False
    finally:
        for partition in partitions:
            partition.waiters.pop(waiter, None)
    return True


class _Waiter:
    """Waits at partitions as a Fetch does, which costs appends something, and therefore never longer than needed."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()

    def on_news(self, size: int) -> None:
        self.heard.set()


async def _backwards(log: Log, index: int, end: int, query: Query, limit: int) -> tuple[list[Json], int, int]:
    """The last wanted records before `end`, oldest first, how many were looked at, and where these begin."""
    found: list[Json] = []
    looked_at = 0
    step = max(limit, 50)
    while end > log.log_start_offset and len(found) < limit and looked_at < _MOST_LOOKED_AT:
        start = max(end - step, log.log_start_offset)
        records, count, _ = await _read_all(log, index, start, end, query)
        found = records + found
        looked_at += count
        end = start
        step = min(step * 4, 5000)
    if len(found) > limit:
        found = found[-limit:]
        end = found[0]["offset"]
    return found, looked_at, end


async def _forwards(log: Log, index: int, start: int, query: Query, limit: int) -> tuple[list[Json], int, int]:
    """The first wanted records from `start` on, how many were looked at, and where to go on."""
    found: list[Json] = []
    looked_at = 0
    end = log.high_watermark
    while start < end and len(found) < limit and looked_at < _MOST_LOOKED_AT:
        records, count, following = await _read(log, index, start, end, query)
        found += records
        looked_at += count
        if following <= start:
            break
        start = min(following, end)
    if len(found) > limit:
        found = found[:limit]
        start = found[-1]["offset"] + 1
    return found, looked_at, start


async def _read_all(log: Log, index: int, start: int, end: int, query: Query) -> tuple[list[Json], int, int]:
    found: list[Json] = []
    looked_at = read = 0
    while start < end and read < _MOST_READ:
        records, count, following = await _read(log, index, start, end, query)
        found += records
        looked_at += count
        read += _AT_ONCE
        if following <= start:
            break
        start = following
    return found, looked_at, start


async def _read(log: Log, index: int, start: int, end: int, query: Query) -> tuple[list[Json], int, int]:
    """What is in the next megabyte."""
    part = _slice(log, start)
    if part is None:
        return [], 0, end  # there is nothing, or it has been deleted meanwhile
    return await asyncio.to_thread(lambda: decoded(_bytes_of(part), index, start, end, query))


def _slice(log: Log, start: int) -> FileSlice | None:
    try:
        return log.read(start, _AT_ONCE, upper_bound=log.high_watermark)
    except OffsetOutOfRange:
        return None
    except (StorageError, OSError) as error:
        raise ConsoleError(f"the log cannot be read: {error}") from None


def _bytes_of(part: FileSlice) -> bytes:
    return os.pread(part.handle.fileno(), part.size, part.position)


def timestamp_at(log: Log, offset: int) -> int | None:
    """When the batch was made that has a committed offset. It reads a header, which is a few bytes."""
    try:
        part = log.read(max(offset, log.log_start_offset), HEADER_SIZE, upper_bound=log.high_watermark)
        if part is None:
            return None
        data = os.pread(part.handle.fileno(), HEADER_SIZE, part.position)
        return read_header(memoryview(data), 0).base_timestamp if len(data) == HEADER_SIZE else None
    except (StorageError, RecordsError, OSError):
        return None


async def at_time(log: Log, time_ms: int) -> int:
    searches = search_by_timestamp(log, time_ms)
    while True:
        try:
            search = next(searches)
        except StopIteration as found:
            return log.high_watermark if found.value is None else int(found.value.offset)
        while search is not None and not search.finished:
            await asyncio.to_thread(search.advance)


def _cursor(text: str | None) -> dict[int, int]:
    if not text:
        return {}
    try:
        told: Any = json.loads(text)
        return {int(index): int(offset) for index, offset in told.items()}
    except (ValueError, AttributeError, TypeError):
        raise ConsoleError("this cursor is not one that an answer had") from None
