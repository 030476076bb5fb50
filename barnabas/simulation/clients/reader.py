"""A consumer on its own: it reads partitions, and follows their leaders."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.fetched import read_fetched
from barnabas.client.requests import data
from barnabas.client.requests.records import read_batches
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchResponse, PartitionData
from barnabas.protocol.messages.list_offsets import ListOffsetsResponse
from barnabas.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from barnabas.simulation.clients.client import Client, GivenUp, Lost
from barnabas.simulation.history import History, Key, Poll, SentElsewhere, Truncated

if TYPE_CHECKING:
    from barnabas.simulation.world import World

_FETCH: Final = 13  # by topic id
_MAX_WAIT_MS: Final = 500


class Position:
    """Where a consumer stands in a partition."""

    __slots__ = ("checked_epoch", "last_epoch", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.last_epoch = -1  # the leader epoch of the record before
        self.checked_epoch = -1  # the leader's epoch in which this position was last known to be valid


class Reader(Client):
    """Reads partitions from their beginning, or from where it is told."""

    def __init__(
        self,
        world: World,
        name: str,
        history: History,
        topics: Sequence[str],
        *,
        committed_only: bool,
        rack: str = "",
        max_wait_ms: int = _MAX_WAIT_MS,
        lease: float = float("inf"),
    ) -> None:
        """It asks the leader again after `lease` seconds whether another replica is closer."""
        super().__init__(world, name, history)
        self.rack = rack
        self._max_wait_ms = max_wait_ms
        self._lease = lease
        self._closest: dict[tuple[str, int], tuple[int, float]] = {}  # which replica to read from, and until when
        self._fetches: dict[int, asyncio.Task[list[str]]] = {}  # under way, by broker
        self._asked: dict[tuple[str, int], None] = {}  # and what is asked for in them
        self.names = list(topics)
        self.committed_only = committed_only
        self.positions: dict[tuple[str, int], Position] = {}
        self.assignment = 0
        self.end_offsets: dict[Key, int] = {}  # as the last answers said: how far this reader may read

    async def run(self) -> None:
        """Read everything, forever."""
        while not self.stopping:
            for name in self.names:
                try:
                    topic = await self.topic(name)
                except GivenUp:  # it is to stop
                    return
                for index in topic.partitions:
                    self.positions.setdefault((name, index), Position(0))
            await self.poll()

    def place(self, name: str, index: int, offset: int) -> None:
        self.positions[name, index] = Position(offset)

    def has_seen(self, name: str, index: int, end: int) -> bool:
        """Whether it has read a partition up to there. It may not have heard of a new one."""
        position = self.positions.get((name, index))
        return position is None or position.offset >= end

    async def poll(self) -> None:
        """Fetch from each leader of something that is read, one fetch at a time from each, until one has answered."""
        by_leader: dict[int, dict[tuple[str, int], int]] = {}  # with the epoch in which it is the leader
        stale = []
        for place in sorted(self.positions):
            position, topic = self.positions.get(place), self.topics.get(place[0])
            led = topic.partitions.get(place[1]) if topic is not None else None
            if position is None:
                continue  # it was taken away meanwhile
            if led is None or led.leader < 0:
                stale.append(place[0])
            elif place in self._asked:
                continue
            elif position.last_epoch > led.epoch:
                stale.append(place[0])  # its group has read from a later leader, and this one may not know that yet
            elif position.checked_epoch >= led.epoch or await self._is_valid(place, led.epoch):
                by_leader.setdefault(self._replica(place, led.leader), {})[place] = led.epoch
        for leader, places in by_leader.items():
            if leader not in self._fetches:
                self._asked |= dict.fromkeys(places)
                self._fetches[leader] = self.loop.create_task(self._fetch(leader, places, self.assignment))
        if self._fetches:
            await asyncio.wait(self._fetches.values(), return_when=asyncio.FIRST_COMPLETED)
        for leader, fetch in list(self._fetches.items()):
            if fetch.done():
                del self._fetches[leader]
                stale += fetch.result()
        if stale or not (by_leader or self._fetches):
            await self.sleep(0.05, 0.3)
            await self.refresh(sorted(set(stale or self.names)))

    def _replica(self, place: tuple[str, int], leader: int) -> int:
        """Whom to read from: the leader, or the replica that it has named."""
        closest, until = self._closest.get(place, (leader, float("inf")))
        if self.loop.time() < until:
            return closest
        del self._closest[place]
        return leader

    async def _is_valid(self, place: tuple[str, int], epoch: int) -> bool:
        """Under a new leader, ask whether what was read last is still there (KIP-320)."""
        position = self.positions[place]
        if position.checked_epoch >= epoch or position.last_epoch < 0:
            position.checked_epoch = max(position.checked_epoch, epoch)
            return True
        topic = self.topics[place[0]]
        try:
            found = await self.ask(
                topic.partitions[place[1]].leader,
                data.offset_for_leader_epoch((*place, position.last_epoch), current_leader_epoch=epoch),
                4,
                OffsetForLeaderEpochResponse,
            )
        except Lost:
            await self.refresh([place[0]])
            return False
        answer = found.topics[0].partitions[0]
        if answer.error_code or self.positions.get(place) is not position:
            await self.refresh([place[0]])
            return False
        if 0 <= answer.end_offset < position.offset:
            truncated = Truncated(self.name, topic.key(place[1]), position.offset, answer.end_offset, self.loop.time())
            self.history.truncations.append(truncated)
            self.note(f"what it had read of {place} is gone from {answer.end_offset} on")
            position.offset = answer.end_offset
            position.last_epoch = answer.leader_epoch
            self.assignment += 1
        position.checked_epoch = epoch
        return True

    async def _fetch(self, leader: int, places: dict[tuple[str, int], int], assignment: int) -> list[str]:
        try:
            return await self._fetch_from(leader, places, assignment)
        finally:
            for place in places:
                self._asked.pop(place, None)

    async def _fetch_from(self, leader: int, places: dict[tuple[str, int], int], assignment: int) -> list[str]:
        """Fetch from one leader. Returns the topics about which this client knows too little.

        The leader and its epoch belong together. With a newer epoch, a former leader that has lost its end, and follows
        by now, would not know that somebody takes it for the leader.
        """
        asked = {
            place: self.positions[place] for place in places if place in self.positions and place[0] in self.topics
        }
        if not asked:
            return [name for name, _ in places]
        request = data.fetch(
            *((self.topics[name].topic_id, index, asked[name, index].offset) for name, index in asked),
            max_wait_ms=self._max_wait_ms,
            partition_max_bytes=64 * 1024,
            isolation_level=int(self.committed_only),
        )
        request.rack_id = self.rack
        names = {self.topics[name].topic_id: self.topics[name] for name, _ in asked}
        for each in request.topics:
            for asking in each.partitions:
                asking.current_leader_epoch = places[names[each.topic_id].name, asking.partition]
        began = self.loop.time()
        try:
            found = await self.ask(leader, request, _FETCH, FetchResponse, purpose="fetch")
        except Lost:
            for place in places:
                self._closest.pop(place, None)
            return [name for name, _ in places]
        stale = []
        if found.error_code:
            return [name for name, _ in places]
        for answer in found.responses:
            topic = names.get(answer.topic_id)
            if topic is None:
                continue
            for part in answer.partitions:
                place = (topic.name, part.partition_index)
                position = asked.get(place)
                if position is None or self.positions.get(place) is not position:
                    continue  # it was taken away meanwhile
                if part.error_code and place in self._closest:
                    del self._closest[place]
                    if leader != topic.partitions[place[1]].leader:
                        # The leader knows better, unless there is another one by now.
                        if part.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
                            stale.append(topic.name)
                        continue
                if part.preferred_read_replica >= 0:
                    self._closest[place] = (part.preferred_read_replica, self.loop.time() + self._lease)
                    sent = SentElsewhere(
                        self.name, topic.key(place[1]), leader, part.preferred_read_replica, began, self.loop.time()
                    )
                    self.history.sent_elsewhere.append(sent)
                    continue
                if not self._take(topic.key(part.partition_index), position, part, assignment):
                    stale.append(topic.name)
        return stale

    def _take(self, key: Key, position: Position, part: PartitionData, assignment: int) -> bool:
        if part.error_code:
            if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self.note(f"{key} has no offset {position.offset}")
                self.history.truncations.append(
                    Truncated(self.name, key, position.offset, part.log_start_offset, self.loop.time())
                )
            return False
        data: Any = part.records or b""
        records = memoryview(bytes(data))
        fetched = read_fetched(records, position.offset, part.aborted_transactions, f"{key}")
        poll = Poll(
            self.name,
            key,
            position.offset,
            tuple((record.offset, bytes(record.value or b"").decode()) for record in fetched.records),
            fetched.next_offset,
            self.loop.time(),
            assignment,
            self.committed_only,
            part.high_watermark,
        )
        self.history.polls.append(poll)
        for header, _ in read_batches(records):
            position.last_epoch = header.partition_leader_epoch
        position.offset = fetched.next_offset
        self.end_offsets[key] = part.last_stable_offset if self.committed_only else part.high_watermark
        return True


async def end_offsets(client: Client, name: str, *, committed_only: bool) -> dict[int, int] | None:
    """Where the partitions of a topic end for a reader. None if that cannot be told now."""
    await client.refresh([name])
    topic = client.topics.get(name)
    if topic is None:
        return None
    ends = {}
    for index, led in topic.partitions.items():
        try:
            found = await client.ask(
                led.leader,
                data.list_offsets(
                    (name, index, data.LATEST), current_leader_epoch=led.epoch, isolation_level=int(committed_only)
                ),
                7,
                ListOffsetsResponse,
            )
        except Lost:
            return None
        answer = found.topics[0].partitions[0]
        if answer.error_code:
            return None
        ends[index] = answer.offset
    return ends
