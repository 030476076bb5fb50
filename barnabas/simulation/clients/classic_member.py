"""A member of a classic group: it joins, reads what it is assigned, commits, and joins again when the group changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from barnabas.client.range_assignor import assign
from barnabas.client.requests import groups, lookup
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    read_with_version,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.simulation.clients.client import GivenUp, Lost, Refused, check
from barnabas.simulation.clients.group_member import OUTDATED, PATIENCE, GroupMember

_SESSION_TIMEOUT_MS: Final = 10_000
_REBALANCE_TIMEOUT_MS: Final = 20_000
_HEARTBEAT: Final = 3.0


class ClassicMember(GroupMember):
    _still_valid = False

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
                    self.member_id = ""
            self.positions = {}
            self._still_valid = False
            await self.sleep(0.05, 0.5)
        beats.cancel()
        if self.member_id:
            try:
                broker = await self.coordinator(self.group, lookup.GROUP)
                await self.ask(broker, groups.leave_group(4, self.group, self.member_id), 4, LeaveGroupResponse)
            except (Lost, Refused):
                pass

    async def _join(self) -> None:
        for name in self.names:
            await self.topic(name, self.loop.time() + PATIENCE)
        joined = await self._send_join()
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            joined = await self._send_join()
        check(joined.error_code, "joining")
        self.member_id, self.epoch = joined.member_id, joined.generation_id
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
                self.member_id,
                self.epoch,
                {member: _assignment(share) for member, share in shares.items()},
            ),
            4,
            SyncGroupResponse,
            lambda answer: answer.error_code,
            self.loop.time() + PATIENCE,
            timeout_ms=_REBALANCE_TIMEOUT_MS + 5_000,
        )
        mine = [
            (each.topic, index)
            for each in read_with_version(ConsumerProtocolAssignment, synced.assignment).assigned_partitions
            for index in each.partitions
        ]
        self._still_valid = True
        self.assignment += 1
        self.positions = {}
        self.committed = {}
        self.positions = await self.find_positions(mine)
        self.note(f"has {', '.join(f'{name}-{index}' for name, index in mine) or 'nothing'} in {self.epoch}")

    async def _send_join(self) -> JoinGroupResponse:
        def error_of(answer: JoinGroupResponse) -> int:
            return 0 if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED else answer.error_code

        return await self.ask_coordinator(
            self.group,
            lookup.GROUP,
            groups.join_group(
                self.group,
                self.member_id,
                protocols=[("range", groups.subscription(*self.names))],
                session_timeout_ms=_SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            ),
            5,
            JoinGroupResponse,
            error_of,
            self.loop.time() + PATIENCE,
            timeout_ms=_REBALANCE_TIMEOUT_MS + 5_000,
        )

    async def _consume(self) -> None:
        self.commit_due = self.loop.time() + self.commit_every
        while not self.stopping and self._still_valid:
            if self.positions:
                await self.poll()
            else:
                await self.sleep(0.3, 0.6)
            check(await self.commit_if_due(), "committing")

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT)
            if not self._still_valid or not self.member_id:
                continue
            try:
                broker = await self.coordinator(self.group, lookup.GROUP)
                found = await self.ask(
                    broker,
                    groups.heartbeat(self.group, self.member_id, self.epoch),
                    4,
                    HeartbeatResponse,
                    purpose="heartbeats",
                )
            except Lost:
                self.forget_coordinator(self.group, lookup.GROUP)
                continue
            except Refused:
                continue
            if found.error_code in OUTDATED:
                self._still_valid = False
                if found.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self.member_id = ""
            elif found.error_code:
                self.forget_coordinator(self.group, lookup.GROUP)


def _assignment(share: Sequence[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for each in share:
        by_topic.setdefault(each.topic, []).append(each.partition)
    return groups.assignment(*by_topic.items())
