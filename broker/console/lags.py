"""How far groups were behind in the last minutes, so that a page that is opened after an incident shows it.

Every few seconds, whether somebody looks or not, the lag of each group is added to a ring. That takes little, and never
more than a small share of a core: where there are very many offsets, it happens less often.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.console.messages import timestamp_at
from barnabas.broker.console.paging import Json
from barnabas.broker.console.positions import Place, Position, positions_of
from barnabas.broker.testing.fleet import leader_of

if TYPE_CHECKING:
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.replica.partition import Partition

_SECONDS_BETWEEN_LOOKS: Final = 3.0
_KEPT: Final = 200
_SHARE_OF_CORE: Final = 0.005
_SECONDS_AT_ONCE: Final = 0.002
_OFFSETS_AT_ONCE: Final = 50
_MOST_SERIES: Final = 2000  # of one group and one topic each
_MOST_READ: Final = 200  # headers of batches, in one look

# A partition of a group, and the first offset in it that was not read with the time when it was made.
_Unread = dict[tuple[str, str, int], tuple[int, int | None]]


class _Lag(NamedTuple):
    """How many messages were not read, and how old the oldest of them was; None if that is not known."""

    messages: int = 0
    late_ms: int | None = None

    def with_another(self, other: _Lag) -> _Lag:
        late = [each.late_ms for each in (self, other) if each.late_ms is not None]
        return _Lag(self.messages + other.messages, max(late, default=None))


class LagHistory:
    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._times: deque[int] = deque(maxlen=_KEPT)
        self._series: dict[str, dict[str, deque[_Lag]]] = {}  # by group and topic; each ends with the last look
        self._unread: _Unread = {}

    async def keep(self) -> None:
        while True:
            busy = await self.look()
            await asyncio.sleep(max(_SECONDS_BETWEEN_LOOKS, busy / _SHARE_OF_CORE))

    async def look(self) -> float:
        """Add the lag of now, in steps between which clients are served. Returns how many seconds it took."""
        look = _Look(self._cluster, self._unread)
        busy, began = 0.0, time.perf_counter()
        for _ in look.steps():
            passed = time.perf_counter() - began
            if passed > _SECONDS_AT_ONCE:
                busy += passed
                await asyncio.sleep(0)
                began = time.perf_counter()
        self._add(look)
        return busy + time.perf_counter() - began

    def _add(self, look: _Look) -> None:
        self._unread = look.unread
        self._times.append(look.now_ms)
        before, self._series = self._series, {}
        for (group, topic), lag in look.found.items():
            series = before.get(group, {}).get(topic)
            if series is None:
                series = deque(maxlen=_KEPT)
            series.append(lag)
            self._series.setdefault(group, {})[topic] = series

    def of(self, group: str, is_shown: Callable[[str], bool]) -> Json:
        """The lag of a group in those of its topics that are shown: when, how many messages, and how late in time."""
        shown = [series for topic, series in self._series.get(group, {}).items() if is_shown(topic)]
        length = max(map(len, shown), default=0)
        sums = [_Lag()] * length
        for series in shown:
            for place, lag in enumerate(series, length - len(series)):
                sums[place] = sums[place].with_another(lag)
        return {
            "times": list(self._times)[len(self._times) - length :],
            "messages": [lag.messages for lag in sums],
            "late_ms": [lag.late_ms if lag.messages else 0 for lag in sums],
        }


class _Look:
    """Finds the lag of every group. What was read in the look before is not read again."""

    def __init__(self, cluster: LocalCluster, unread_before: _Unread) -> None:
        self.now_ms = cluster.clock.now_ms()
        self.found: dict[tuple[str, str], _Lag] = {}  # by group and topic
        self.unread: _Unread = {}
        self._unread_before = unread_before
        self._brokers = list(cluster.brokers)
        self._left_to_read = _MOST_READ

    def steps(self) -> Iterator[None]:
        for broker in self._brokers:
            for shard in list(broker.groups.shards):
                for group in list(shard.groups.values()):
                    yield from self._of_group(group.group_id, positions_of(self._brokers, shard, group))
                    yield

    def _of_group(self, group: str, positions: Iterable[tuple[Place, Position]]) -> Iterator[None]:
        for number, ((topic, index), position) in enumerate(positions, 1):
            place = (group, topic)
            if place not in self.found and len(self.found) >= _MOST_SERIES:
                continue
            partition = leader_of(self._brokers, topic, index)
            if partition is not None and position.offset is not None:
                lag = self._lag(group, partition, position.offset, position.done)
                self.found[place] = self.found.get(place, _Lag()).with_another(lag)
            if number % _OFFSETS_AT_ONCE == 0:
                yield

    def _lag(self, group: str, partition: Partition, committed: int, done: int) -> _Lag:
        messages = partition.log.high_watermark - committed - done
        if messages <= 0:
            return _Lag()
        made_at = self._made_at(group, partition, max(committed, partition.log.log_start_offset))
        return _Lag(messages, None if made_at is None else max(self.now_ms - made_at, 0))

    def _made_at(self, group: str, partition: Partition, offset: int) -> int | None:
        place = (group, partition.topic, partition.index)
        known = self._unread_before.get(place)
        if known is None or known[0] != offset:
            if not self._left_to_read:
                return None
            self._left_to_read -= 1
            known = offset, timestamp_at(partition.log, offset)
        self.unread[place] = known
        return known[1]
