"""What members of groups have in common, whichever protocol they speak: where they begin, and what they commit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.client.requests import groups, lookup
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchResponse
from barnabas.simulation.clients.client import Lost
from barnabas.simulation.clients.reader import Position, Reader
from barnabas.simulation.history import Commit, CommitSeen, History, Outcome

if TYPE_CHECKING:
    from barnabas.simulation.world import World

PATIENCE: Final = 30.0


class GroupMember(Reader):
    offset_version = 8  # of OffsetFetch and OffsetCommit

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
        self.member_id = ""
        self.epoch = -1  # the generation, or the member's epoch
        self.commit_every = commit_every
        self.commit_due = 0.0
        self.committed: dict[tuple[str, int], int] = {}

    async def find_positions(
        self,
        places: Sequence[tuple[str, int]],
        asking: tuple[str | None, int] = (None, -1),
        retried: Collection[int] = (),
    ) -> dict[tuple[str, int], Position]:
        """Where the group has come to in these partitions."""
        found: dict[tuple[str, int], Position] = {}
        if not places:
            return found
        wanted: dict[str, list[int]] = {}
        for name, index in places:
            wanted.setdefault(name, []).append(index)
        began = self.loop.time()
        answer = await self.ask_coordinator(
            self.group,
            lookup.GROUP,
            groups.offset_fetch(
                self.offset_version, {self.group: list(wanted.items())}, {self.group: asking}, require_stable=True
            ),
            self.offset_version,
            OffsetFetchResponse,
            lambda answer: _first(
                [
                    answer.groups[0].error_code,
                    *(part.error_code for topic in answer.groups[0].topics for part in topic.partitions),
                ]
            ),
            self.loop.time() + PATIENCE,
            retried=(ErrorCode.UNSTABLE_OFFSET_COMMIT, *retried),
        )
        for topic in answer.groups[0].topics:
            known = await self.topic(topic.name, self.loop.time() + PATIENCE)
            for part in topic.partitions:
                offset = part.committed_offset
                key = known.key(part.partition_index)
                seen = CommitSeen(self.group, key, offset, self.name, began, self.loop.time())
                self.history.commits_seen.append(seen)
                position = Position(max(offset, 0))
                position.last_epoch = part.committed_leader_epoch if offset >= 0 else -1
                found[topic.name, part.partition_index] = position
                self.committed[topic.name, part.partition_index] = offset
        return found

    async def commit_if_due(self) -> ErrorCode:
        if self.loop.time() < self.commit_due:
            return ErrorCode.NONE
        self.commit_due = self.loop.time() + self.commit_every * self.chance.uniform(0.5, 1.5)
        return await self.commit(self.positions)

    async def commit(self, places: Collection[tuple[str, int]]) -> ErrorCode:
        """Commit positions that have moved. The last one counts; one that was not answered may arrive late.

        Returns why the coordinator refused it, if that is about this member.
        """
        moved = [
            (*place, position.offset)
            for place, position in sorted(self.positions.items())
            if place in places
            and position.offset > self.committed.get(place, -1)
            and position.offset > 0
            and place[0] in self.topics
        ]
        if not moved:
            return ErrorCode.NONE
        began = self.loop.time()
        noted = [
            Commit(self.group, self.topics[name].key(index), offset, self.name, began) for name, index, offset in moved
        ]
        self.history.commits += noted
        request = groups.offset_commit(self.group, *moved, member=self.member_id, generation=self.epoch)
        for topic in request.topics:
            for part in topic.partitions:
                part.committed_leader_epoch = self.positions[topic.name, part.partition_index].last_epoch
        broker = await self.coordinator(self.group, lookup.GROUP)
        try:
            found = await self.ask(broker, request, self.offset_version, OffsetCommitResponse, purpose="commits")
        except Lost:
            self.forget_coordinator(self.group, lookup.GROUP)
            return ErrorCode.NONE  # the next commit says it again
        code = ErrorCode(_first([part.error_code for topic in found.topics for part in topic.partitions]))
        if code in OUTDATED:
            for commit in noted:
                commit.outcome = Outcome.FAILED
            return code
        if code:
            self.forget_coordinator(self.group, lookup.GROUP)
            return ErrorCode.NONE
        for commit, (name, index, offset) in zip(noted, moved, strict=True):
            commit.outcome = Outcome.OK
            commit.ended = self.loop.time()
            self.committed[name, index] = offset
        return ErrorCode.NONE


# The group has gone on without this member, or it is no longer one.
OUTDATED: Final = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)


def _first(codes: Sequence[int]) -> int:
    return next((code for code in codes if code), 0)
