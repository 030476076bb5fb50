"""Consumers: on their own, or as members of a group that commit what they have read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.fetched import read_fetched
from barnabas.client.range_assignor import assign
from barnabas.client.requests import data, groups, lookup
from barnabas.client.requests.records import read_batches
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    read_with_version,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchResponse, PartitionData
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupResponse
from barnabas.protocol.messages.list_offsets import ListOffsetsResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchResponse
from barnabas.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.simulation.clients.client import Client, GivenUp, Lost, Refused, check
from barnabas.simulation.history import Commit, CommitSeen, History, Key, Outcome, Poll, SentElsewhere, Truncated

if TYPE_CHECKING:
    from barnabas.simulation.world import World

_FETCH: Final = 13  # by topic id
_MAX_WAIT_MS: Final = 500
_SESSION_TIMEOUT_MS: Final = 10_000
_REBALANCE_TIMEOUT_MS: Final = 20_000
_HEARTBEAT: Final = 3.0
_PATIENCE: Final = 30.0

_OUTDATED: Final = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)


class _Position:
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
        self.positions: dict[tuple[str, int], _Position] = {}
        self.assignment = 0
        self.end_offsets: dict[Key, int] = {}  # as the last answers said: how far this reader may read

    async def run(self) -> None:
        """Read everything, for ever."""
        while not self.stopping:
            for name in self.names:
                try:
                    topic = await self.topic(name)
                except GivenUp:  # it is to stop
                    return
                for index in topic.partitions:
                    self.positions.setdefault((name, index), _Position(0))
            await self.poll()

    def place(self, name: str, index: int, offset: int) -> None:
        self.positions[name, index] = _Position(offset)

    def has_seen(self, name: str, index: int, end: int) -> bool:
        """Whether it has read a partition up to there. It may not have heard of a new one."""
        position = self.positions.get((name, index))
        return position is None or position.offset >= end

    async def poll(self) -> None:
        """Fetch from each leader of something that is read, one fetch at a time from each, until one has answered."""
        by_leader: dict[int, list[tuple[str, int]]] = {}
        stale = []
        for place in sorted(self.positions):
            topic = self.topics.get(place[0])
            led = topic.partitions.get(place[1]) if topic is not None else None
            if led is None or led.leader < 0:
                stale.append(place[0])
            elif place in self._asked:
                continue
            elif self.positions[place].checked_epoch >= led.epoch or await self._is_valid(place, led.epoch):
                by_leader.setdefault(self._replica(place, led.leader), []).append(place)
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

    async def _fetch(self, leader: int, places: Sequence[tuple[str, int]], assignment: int) -> list[str]:
        try:
            return await self._fetch_from(leader, places, assignment)
        finally:
            for place in places:
                self._asked.pop(place, None)

    async def _fetch_from(self, leader: int, places: Sequence[tuple[str, int]], assignment: int) -> list[str]:
        """Fetch from one leader. Returns the topics about which this client knows too little."""
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
                asking.current_leader_epoch = names[each.topic_id].partitions[asking.partition].epoch
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

    def _take(self, key: Key, position: _Position, part: PartitionData, assignment: int) -> bool:
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


class Consumer(Reader):
    """A member of a group. It joins, reads what it is assigned, commits, and joins again when the group changes."""

    def __init__(
        self,
        world: World,
        name: str,
        history: History,
        topics: Sequence[str],
        *,
        group: str,
        committed_only: bool = True,
        commit_every: float = 1.0,
        rack: str = "",
    ) -> None:
        super().__init__(world, name, history, topics, committed_only=committed_only, rack=rack)
        self.group = group
        self._commit_every = commit_every
        self._member_id = ""
        self._generation = -1
        self._still_valid = False
        self._committed: dict[tuple[str, int], int] = {}

    async def run(self) -> None:
        beats = self.loop.create_task(self._beat())
        while not self.stopping:
            try:
                await self._join()
                await self._consume()
            except (GivenUp, Lost) as error:
                self.note(f"starts over: {error}")
            except Refused as error:
                self.note(f"has to join again: {error}")
                if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                    self._member_id = ""
            self.positions = {}
            self._still_valid = False
            await self.sleep(0.05, 0.5)
        beats.cancel()
        if self._member_id:
            try:
                broker = await self.coordinator(self.group, lookup.GROUP)
                await self.ask(broker, groups.leave_group(4, self.group, self._member_id), 4, LeaveGroupResponse)
            except (Lost, Refused):
                pass

    async def _join(self) -> None:
        for name in self.names:
            await self.topic(name, self.loop.time() + _PATIENCE)
        joined = await self._send_join()
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            joined = await self._send_join()
        check(joined.error_code, "joining")
        self._member_id, self._generation = joined.member_id, joined.generation_id
        shares: dict[str, list[TopicPartition]] = {}
        if joined.leader == joined.member_id:
            await self.refresh(self.names)
            members = {
                each.member_id: list(read_with_version(ConsumerProtocolSubscription, each.metadata).topics)
                for each in sorted(joined.members, key=lambda member: member.member_id)
            }
            shares = assign(members, {name: len(topic.partitions) for name, topic in self.topics.items()})
        synced = await self.ask_coordinator(
            self.group,
            lookup.GROUP,
            groups.sync_group(
                self.group,
                self._member_id,
                self._generation,
                {member: _assignment(share) for member, share in shares.items()},
            ),
            4,
            SyncGroupResponse,
            lambda answer: answer.error_code,
            self.loop.time() + _PATIENCE,
            timeout_ms=_REBALANCE_TIMEOUT_MS + 5_000,
        )
        mine = [
            (each.topic, index)
            for each in read_with_version(ConsumerProtocolAssignment, synced.assignment).assigned_partitions
            for index in each.partitions
        ]
        self._still_valid = True
        self.assignment += 1
        await self._find_positions(mine)
        self.note(f"has {', '.join(f'{name}-{index}' for name, index in mine) or 'nothing'} in {self._generation}")

    async def _send_join(self) -> JoinGroupResponse:
        def error_of(answer: JoinGroupResponse) -> int:
            return 0 if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED else answer.error_code

        return await self.ask_coordinator(
            self.group,
            lookup.GROUP,
            groups.join_group(
                self.group,
                self._member_id,
                protocols=[("range", groups.subscription(*self.names))],
                session_timeout_ms=_SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            ),
            5,
            JoinGroupResponse,
            error_of,
            self.loop.time() + _PATIENCE,
            timeout_ms=_REBALANCE_TIMEOUT_MS + 5_000,
        )

    async def _find_positions(self, mine: Sequence[tuple[str, int]]) -> None:
        self.positions = {}
        self._committed = {}
        if not mine:
            return
        wanted: dict[str, list[int]] = {}
        for name, index in mine:
            wanted.setdefault(name, []).append(index)
        began = self.loop.time()
        found = await self.ask_coordinator(
            self.group,
            lookup.GROUP,
            groups.offset_fetch(8, {self.group: list(wanted.items())}, require_stable=True),
            8,
            OffsetFetchResponse,
            lambda answer: _first(
                [
                    answer.groups[0].error_code,
                    *(part.error_code for topic in answer.groups[0].topics for part in topic.partitions),
                ]
            ),
            self.loop.time() + _PATIENCE,
            retried=(ErrorCode.UNSTABLE_OFFSET_COMMIT,),
        )
        for topic in found.groups[0].topics:
            known = await self.topic(topic.name, self.loop.time() + _PATIENCE)
            for part in topic.partitions:
                offset = part.committed_offset
                key = known.key(part.partition_index)
                seen = CommitSeen(self.group, key, offset, self.name, began, self.loop.time())
                self.history.commits_seen.append(seen)
                position = _Position(max(offset, 0))
                position.last_epoch = part.committed_leader_epoch if offset >= 0 else -1
                self.positions[topic.name, part.partition_index] = position
                self._committed[topic.name, part.partition_index] = offset

    async def _consume(self) -> None:
        due = self.loop.time() + self._commit_every
        while not self.stopping and self._still_valid:
            if self.positions:
                await self.poll()
            else:
                await self.sleep(0.3, 0.6)
            if self.loop.time() >= due:
                due = self.loop.time() + self._commit_every * self.chance.uniform(0.5, 1.5)
                await self._commit()

    async def _commit(self) -> None:
        """Commit positions that have moved. The last one counts; one that was not answered may arrive late."""
        moved = [
            (*place, position.offset)
            for place, position in sorted(self.positions.items())
            if position.offset > self._committed.get(place, -1) and position.offset > 0 and place[0] in self.topics
        ]
        if not moved:
            return
        began = self.loop.time()
        noted = [
            Commit(self.group, self.topics[name].key(index), offset, self.name, began) for name, index, offset in moved
        ]
        self.history.commits += noted
        request = groups.offset_commit(self.group, *moved, member=self._member_id, generation=self._generation)
        for topic in request.topics:
            for part in topic.partitions:
                part.committed_leader_epoch = self.positions[topic.name, part.partition_index].last_epoch
        broker = await self.coordinator(self.group, lookup.GROUP)
        try:
            found = await self.ask(broker, request, 8, OffsetCommitResponse, purpose="commits")
        except Lost:
            self.forget_coordinator(self.group, lookup.GROUP)
            return  # the next commit says it again
        code = _first([part.error_code for topic in found.topics for part in topic.partitions])
        if code in _OUTDATED:
            for commit in noted:
                commit.outcome = Outcome.FAILED
            check(code, "committing")
        if code:
            self.forget_coordinator(self.group, lookup.GROUP)
            return
        for commit, (name, index, offset) in zip(noted, moved, strict=True):
            commit.outcome = Outcome.OK
            commit.ended = self.loop.time()
            self._committed[name, index] = offset

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT)
            if not self._still_valid or not self._member_id:
                continue
            try:
                broker = await self.coordinator(self.group, lookup.GROUP)
                found = await self.ask(
                    broker,
                    groups.heartbeat(self.group, self._member_id, self._generation),
                    4,
                    HeartbeatResponse,
                    purpose="heartbeats",
                )
            except Lost:
                self.forget_coordinator(self.group, lookup.GROUP)
                continue
            except Refused:
                continue
            if found.error_code in _OUTDATED:
                self._still_valid = False
                if found.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member_id = ""
            elif found.error_code:
                self.forget_coordinator(self.group, lookup.GROUP)


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


def _first(codes: Sequence[int]) -> int:
    return next((code for code in codes if code), 0)


def _assignment(share: Sequence[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for each in share:
        by_topic.setdefault(each.topic, []).append(each.partition)
    return groups.assignment(*by_topic.items())
