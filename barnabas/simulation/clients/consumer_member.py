"""A member of a consumer group (KIP-848): the coordinator tells it in answers to heartbeats what to read.

It lets go of partitions before it says so, and reads new ones after it has asked for their offsets. Whoever reads a
partition without having been given it, or commits for one that it has lost, would be found by the checker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from barnabas.client.requests import groups, lookup
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from barnabas.simulation.clients.client import GivenUp, Lost, Refused
from barnabas.simulation.clients.group_member import PATIENCE, GroupMember
from barnabas.simulation.history import Ownership

_VERSION: Final = 1  # with ids that members choose
_LEAVING: Final = -1
_REBALANCE_TIMEOUT_MS: Final = 10_000

# After these a member gives up everything and joins anew, under its old id. The last one comes when the group has
# become a classic one without this member; an application would start a new consumer then.
_FENCED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND})

Place = tuple[str, int]


class ConsumerMember(GroupMember):
    offset_version = 9  # the first with member epochs

    async def run(self) -> None:
        self.member_id = f"{self.name}-{self.chance.getrandbits(64):016x}"
        self._beat_now = asyncio.Event()
        self._ownerships: dict[Place, Ownership] = {}
        self._unheard: list[Ownership] = []  # ended since the last heartbeat that the coordinator accepted
        self._start_over()
        beats = self.loop.create_task(self._beat())
        while not self.stopping:
            try:
                if self._target is not None and self._target != self._owned:
                    await self._reconcile(self._target)
                elif self.positions:
                    await self.poll()
                else:
                    await self.sleep(0.1, 0.3)
                if await self.commit_if_due():
                    self._beat_now.set()  # to learn its epoch, or that it is fenced
            except (GivenUp, Lost, Refused) as error:
                self.note(f"tries again: {error}")
                self._beat_now.set()
                await self.sleep(0.05, 0.5)
        beats.cancel()
        self._let_go(list(self.positions))
        await self._leave()

    def reads(self, name: str, index: int, end: int) -> bool:
        """Whether it has a partition, and has read it up to there."""
        position = self.positions.get((name, index))
        return position is not None and position.offset >= end

    def _let_go(self, places: Iterable[Place]) -> None:
        for place in places:
            self.positions.pop(place, None)
            self.committed.pop(place, None)
            ownership = self._ownerships.pop(place)
            ownership.ended = self.loop.time()
            self._unheard.append(ownership)

    def _start_over(self) -> None:
        self._let_go(list(self.positions))
        self._was_fenced()
        self.epoch = 0
        self.assignment += 1
        self._owned: dict[bytes, list[int]] = {}
        self._target: dict[bytes, list[int]] | None = None
        self._said: dict[bytes, list[int]] = {}
        self._say_everything = True

    async def _leave(self) -> None:
        """Say that it has gone. Only now may it hear that its session ended before it let go."""
        leaving = groups.consumer_group_heartbeat(self.group, self.member_id, _LEAVING)
        with suppress(Lost, Refused):
            broker = await self.coordinator(self.group, lookup.GROUP)
            found = await self.ask(broker, leaving, _VERSION, ConsumerGroupHeartbeatResponse, purpose="heartbeats")
            if found.error_code == ErrorCode.NONE:
                return
        self._was_fenced()

    def _was_fenced(self) -> None:
        """The coordinator may have given its partitions away before it let go of them, and did not hear of that."""
        for ownership in self._unheard:
            ownership.fenced = True
        self._unheard = []

    # --- what it is told ---

    async def _beat(self) -> None:
        while True:
            self._beat_now.clear()
            try:
                interval = await self._send_heartbeat()
            except Lost:
                self.forget_coordinator(self.group, lookup.GROUP)
                self._say_everything = True  # nobody knows what the coordinator has heard
                interval = self.chance.uniform(0.05, 0.3)
            except Refused:
                interval = self.chance.uniform(0.05, 0.3)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._beat_now.wait(), interval)

    async def _send_heartbeat(self) -> float:
        """Returns how many seconds later the next one is due."""
        broker = await self.coordinator(self.group, lookup.GROUP)
        everything, epoch = self._say_everything or self.epoch == 0, self.epoch
        said = {topic_id: list(indexes) for topic_id, indexes in self._owned.items()}
        request = groups.consumer_group_heartbeat(
            self.group,
            self.member_id,
            epoch,
            owned=said if everything or said != self._said else None,
            topics=self.names if everything else None,
            **({"rebalance_timeout_ms": _REBALANCE_TIMEOUT_MS} if everything else {}),
        )
        self._said = said
        unheard = len(self._unheard)
        found = await self.ask(broker, request, _VERSION, ConsumerGroupHeartbeatResponse, purpose="heartbeats")
        if found.error_code in _FENCED:
            self.note(f"is fenced in epoch {epoch}: {ErrorCode(found.error_code).name}")
            self._start_over()
            return self.chance.uniform(0.05, 0.3)
        if found.error_code:
            self.forget_coordinator(self.group, lookup.GROUP)
            self._say_everything = True
            return self.chance.uniform(0.05, 0.3)
        del self._unheard[:unheard]
        self._say_everything = False
        self.epoch = found.member_epoch
        if found.assignment is not None:
            self._target = {
                each.topic_id: list(each.partitions) for each in found.assignment.topic_partitions if each.partitions
            }
        return found.heartbeat_interval_ms / 1000

    # --- what it does about it ---

    async def _reconcile(self, target: dict[bytes, list[int]]) -> None:
        """Let go of what is no longer its own, then begin with what is new, unless it is told otherwise meanwhile."""
        names = await self._names_of(target)
        if names is None:
            return
        wanted = {(names[topic_id], index) for topic_id, indexes in target.items() for index in indexes}
        lost = sorted(set(self.positions) - wanted)
        if lost:
            await self.commit(lost)
            self._let_go(place for place in lost if place in self.positions)
            self.assignment += 1
            self._owned = self._ids_of(self.positions)
            self._beat_now.set()
        new = sorted(wanted - set(self.positions))
        asked_in = self.assignment
        found = await self.find_positions(new, (self.member_id, self.epoch)) if new else {}
        if self._target is not target or self.assignment != asked_in:
            return  # fenced, or told something else meanwhile
        self.positions.update(found)
        for name, index in found:
            ownership = Ownership(self.name, self.group, self.topics[name].key(index), self.loop.time())
            self._ownerships[name, index] = ownership
            self.history.ownerships.append(ownership)
        self.assignment += 1
        self._owned = target
        self._beat_now.set()
        self.note(f"has {', '.join(f'{name}-{index}' for name, index in sorted(wanted)) or 'nothing'} in {self.epoch}")

    async def _names_of(self, target: dict[bytes, list[int]]) -> dict[bytes, str] | None:
        """The names of assigned topics. None if one is not known yet: its name may have been used again."""
        for name in self.names:
            await self.topic(name, self.loop.time() + PATIENCE)
        names = {self.topics[name].topic_id: name for name in self.names}
        if any(topic_id not in names for topic_id in target):
            await self.refresh(self.names)
            await self.sleep(0.05, 0.3)
            return None
        return names

    def _ids_of(self, places: Iterable[Place]) -> dict[bytes, list[int]]:
        owned: dict[bytes, list[int]] = {}
        for name, index in sorted(places):
            owned.setdefault(self.topics[name].topic_id, []).append(index)
        return owned
