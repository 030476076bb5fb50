"""The share partitions whose partitions this broker leads, and the sessions of the members who read them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

from barnabas.broker.clock import Clock
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.replicas import Replicas
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.partition import SharePartition
from barnabas.broker.share.persister import ShareState
from barnabas.broker.share.sessions import Connection, SessionKey, ShareSession, ShareSessions
from barnabas.broker.share.settings import RecordSettings
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.inspection import UNITS
from barnabas.storage.time_lookup import search_by_timestamp

_Shares = dict[SharePartitionKey, SharePartition]
K = TypeVar("K")


class SharePartitions:
    def __init__(
        self,
        replicas: Replicas,
        state: ShareState,
        settings: RecordSettings,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        most_sessions: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._state = state
        self.settings = settings
        self._clock = clock
        self._spawn = spawn
        self.sessions = ShareSessions(most_sessions)
        self._loaded: dict[SharePartitionKey, SharePartition] = {}
        self._of_group: dict[str, _Shares] = {}
        self._of_partition: dict[Partition, _Shares] = {}

    # --- share partitions ---

    def __iter__(self) -> Iterator[SharePartition]:
        return iter(self._loaded.values())

    def find(self, key: SharePartitionKey) -> SharePartition | None:
        return self._loaded.get(key)

    def get(self, key: SharePartitionKey) -> SharePartition | ErrorCode:
        """A share partition, which is loaded if it is not yet; or why it is not here."""
        partition = self._replicas.find(key.topic_id, key.partition)
        if partition is None:
            return self._replicas.missing(key.topic_id, key.partition)
        if partition.leadership is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        found = self._loaded.get(key)
        if found is None:
            found = self._loaded[key] = SharePartition(
                key,
                partition,
                self._state,
                self.settings,
                self._clock,
                self._spawn,
                self._find_by_time,
                self._forget,
            )
            self._of_group.setdefault(key.group_id, {})[key] = found
            self._of_partition.setdefault(partition, {})[key] = found
        return found

    def _forget(self, share: SharePartition) -> None:
        key = share.key
        if self._loaded.get(key) is share:
            del self._loaded[key]
            _remove(self._of_group, key.group_id, key)
            _remove(self._of_partition, share.partition, key)

    def on_leader(self, partition: Partition) -> None:
        """In the next epoch of the same leader, everything is as it was. If this broker has not heard of an epoch in
        between, another one led then, and may have given records to members and had written what became of them."""
        for share in self._of(partition):
            if partition.leader_epoch > share.leader_epoch + 1:
                share.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                share.leader_epoch = partition.leader_epoch

    def on_not_leader(self, partition: Partition) -> None:
        for share in self._of(partition):
            share.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _of(self, partition: Partition) -> list[SharePartition]:
        return list(self._of_partition.get(partition, {}).values())

    def stop(self) -> None:
        for share in list(self._loaded.values()):
            share.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    async def _find_by_time(self, partition: Partition, timestamp: int) -> int | None:
        searches = search_by_timestamp(partition.log, timestamp)
        while True:
            try:
                search = next(searches)
            except StopIteration as end:
                found = end.value
                return None if found is None or found.offset >= partition.log.high_watermark else int(found.offset)
            if search is None:
                await asyncio.sleep(0)
                continue
            search.advance(UNITS)
            if not search.finished:
                await self._replicas.long_work.finish(search)

    # --- sessions ---

    def end_session(self, key: SessionKey) -> None:
        """A member has left: what it had is for others."""
        session = self.sessions.end(key)
        if session is not None:
            self._release(session)

    def connection_closed(self, connection: Connection) -> None:
        for session in self.sessions.connection_closed(connection):
            self._release(session)

    def _release(self, session: ShareSession) -> None:
        """With the last session of a group, also what no session reads any more is forgotten."""
        group_id, member_id = session.key
        keys = [SharePartitionKey(group_id, *place) for place in session.places]
        if not self.sessions.are_in(group_id):
            keys = list(self._of_group.get(group_id, ()))
        for key in keys:
            share = self._loaded.get(key)
            if share is not None:
                share.release(member_id, partial(self._released, share))

    def _released(self, share: SharePartition, error: ErrorCode) -> None:
        """A group without members forgets here how far it has come: others may set that meanwhile."""
        if self.sessions.are_in(share.key.group_id):
            return
        if share.has_more_to_write:  # what other members have given back meanwhile
            share.when_written(partial(self._released, share))
        else:
            share.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _remove(shares: dict[K, _Shares], of: K, key: SharePartitionKey) -> None:
    left = shares[of]
    del left[key]
    if not left:
        del shares[of]
