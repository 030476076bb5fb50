"""Share sessions: which partitions a member of a share group fetches from this broker, from request to request. Pure.

A session belongs to a member and to the connection on which it began: it ends with the connection. Each request has the
next epoch; 0 begins a new session, -1 ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from barnabas.protocol.errors import ErrorCode

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_MAX_EPOCH: Final = 2**31 - 1

# A topic's id and a partition.
Place = tuple[bytes, int]


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class Connection(Protocol):
    @property
    def closed(self) -> bool: ...


class ShareSession:
    __slots__ = ("connection", "epoch", "key", "places")

    def __init__(self, key: SessionKey, places: Iterable[Place], connection: Connection) -> None:
        self.key = key
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.places: dict[Place, None] = dict.fromkeys(places)
        self.connection = connection

    def rotated(self, epoch: int) -> Sequence[Place]:
        """Its partitions, beginning with another one each time, so that none is always the last to be read."""
        places = list(self.places)
        if not places:
            return places
        begin = epoch % len(places)
        return places[begin:] + places[:begin]


class ShareSessions:
    def __init__(self, most: Callable[[], int]) -> None:
        """`most` is how many there may be."""
        self._most = most
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[Connection, dict[SessionKey, None]] = {}
        self._in_group: dict[str, int] = {}  # how many

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def are_in(self, group_id: str) -> bool:
        """Whether a group has members who read here."""
        return group_id in self._in_group

    def fetch(
        self,
        key: SessionKey,
        epoch: int,
        connection: Connection,
        added: Sequence[Place],
        forgotten: Sequence[Place],
        acknowledges: bool,
    ) -> ShareSession | ErrorCode:
        """The session of a ShareFetch. With the final epoch it still has to be ended by `end`."""
        session = self._sessions.get(key)
        if epoch == INITIAL_EPOCH:
            if acknowledges:
                return ErrorCode.INVALID_REQUEST
            self.end(key)
            if len(self._sessions) >= self._most():
                return ErrorCode.SHARE_SESSION_LIMIT_REACHED
            session = self._sessions[key] = ShareSession(key, added, connection)
            self._by_connection.setdefault(connection, {})[key] = None
            self._in_group[key.group_id] = self._in_group.get(key.group_id, 0) + 1
            return session
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.places.update(dict.fromkeys(added))
        for place in forgotten:
            session.places.pop(place, None)
        session.epoch = next_epoch(epoch)
        return session

    def acknowledge(self, key: SessionKey, epoch: int) -> ErrorCode:
        """Why a ShareAcknowledge is refused."""
        if epoch == INITIAL_EPOCH:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == FINAL_EPOCH:
            return ErrorCode.NONE
        if epoch != session.epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch = next_epoch(epoch)
        return ErrorCode.NONE

    def end(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            keys = self._by_connection.get(session.connection, {})
            keys.pop(key, None)
            if not keys:
                self._by_connection.pop(session.connection, None)
            left = self._in_group[key.group_id] - 1
            if left:
                self._in_group[key.group_id] = left
            else:
                del self._in_group[key.group_id]
        return session

    def connection_closed(self, connection: Connection) -> list[ShareSession]:
        """The sessions that end with a connection."""
        keys = list(self._by_connection.get(connection, ()))
        return [session for session in map(self.end, keys) if session is not None]


def next_epoch(epoch: int) -> int:
    return 1 if epoch == _MAX_EPOCH else epoch + 1
