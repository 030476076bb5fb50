"""Fetch sessions: the broker remembers what a client fetches, so that both send only what changes.

A client starts with a full request (epoch 0) and gets a session id. Its next requests (epochs 1, 2, …) name only
partitions that are new, moved or forgotten, and the answers hold only partitions with news. Epoch -1 means no session.
The number of sessions is limited (max.incremental.fetch.session.cache.slots): a new one may evict one that has not been
used for a while, or an older and smaller one. Consumers do not evict followers, and followers evict any consumer. A
client whose session is gone starts again with a full request.

Pure: the time and random numbers are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1
_IN_MEMORY: Final = (bytes, bytearray, memoryview)
# How long a session is safe from eviction.
EVICTION_MS: Final = 120_000


class PartitionKey(NamedTuple):
    """How a client names a partition: by topic name up to version 12, by topic id from 13."""

    topic: str
    topic_id: bytes
    partition: int


class FetchedPartition:
    """What a client wants from a partition, and what it was last told."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower_start_offset",
        "high_watermark",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
    )

    def __init__(self, key: PartitionKey, wanted: FetchPartition) -> None:
        self.key = key
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.partition_max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.follower_start_offset = wanted.log_start_offset  # where a follower's own log starts
        self.high_watermark = -1
        self.log_start_offset = -1

    def has_news(self, answer: PartitionData) -> bool:
        """Whether there is news for the client, which is recorded as sent from now on."""
        news = self.differs(answer)
        # A client does not take the high watermark from an error, nor a follower from where it has to truncate its log.
        is_taken = not answer.error_code and answer.diverging_epoch is None
        self.high_watermark = answer.high_watermark if is_taken else -1
        self.log_start_offset = answer.log_start_offset
        return news

    def differs(self, answer: PartitionData) -> bool:
        """Whether there is news for the client."""
        return (
            bool(answer.records is not None and size_of(answer))
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
            or answer.preferred_read_replica != -1
            or answer.diverging_epoch is not None
            or answer.error_code != 0
        )


def size_of(answer: PartitionData) -> int:
    records = answer.records
    if records is None:
        return 0
    return len(records) if isinstance(records, _IN_MEMORY) else records.size


Partitions = dict[PartitionKey, FetchedPartition]


class FetchSession:
    __slots__ = ("by_id", "created_ms", "epoch", "is_followers", "partitions", "session_id", "used_ms")

    def __init__(
        self, session_id: int, partitions: Partitions, by_id: bool, now_ms: int, is_followers: bool = False
    ) -> None:
        self.session_id = session_id
        self.is_followers = is_followers
        self.partitions = partitions
        self.by_id = by_id
        self.created_ms = self.used_ms = now_ms
        self.epoch = 1  # what the next request must carry

    def update(self, request: FetchRequest, partitions: Partitions) -> None:
        for key, wanted in partitions.items():
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = wanted
            else:
                known.fetch_offset = wanted.fetch_offset
                known.max_bytes = wanted.max_bytes
                known.current_leader_epoch = wanted.current_leader_epoch
                known.last_fetched_epoch = wanted.last_fetched_epoch
                known.follower_start_offset = wanted.follower_start_offset
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                self.partitions.pop(PartitionKey(topic.topic, topic.topic_id, partition), None)


def wanted_partitions(request: FetchRequest) -> Partitions:
    return {
        key: FetchedPartition(key, wanted)
        for topic in request.topics
        for wanted in topic.partitions
        for key in (PartitionKey(topic.topic, topic.topic_id, wanted.partition),)
    }


class FetchContext:
    """One Fetch: the partitions that it reads, and the shape of its answer."""

    __slots__ = ("_begin", "incremental", "partitions", "session")

    def __init__(
        self,
        partitions: Partitions,
        session: FetchSession | None = None,
        begin: Callable[[Partitions], FetchSession | None] | None = None,
    ) -> None:
        self.partitions = partitions
        self.session = session
        self.incremental = session is not None
        self._begin = begin

    def answer(self, answers: Iterable[tuple[PartitionKey, PartitionData]]) -> FetchResponse:
        """The answer to send: everything, or in a session the news."""
        response = self.begin_answer()
        self.add_to_answer(response, answers)
        return response

    def draft(self, answers: Iterable[tuple[PartitionKey, PartitionData]]) -> FetchResponse:
        """What `answer` would return, without recording it as sent."""
        response = FetchResponse(session_id=NO_SESSION, responses=[])
        known = self.session.partitions if self.session is not None else {}
        _add_by_topic(
            response.responses,
            [(key, each) for key, each in answers if key not in known or known[key].differs(each)],
        )
        return response

    def empty_answer(self) -> FetchResponse:
        """An empty answer, for a throttled client. No session starts, and an existing one stays as it is."""
        return FetchResponse(session_id=self.session.session_id if self.session else NO_SESSION, responses=[])

    def begin_answer(self) -> FetchResponse:
        if self.session is None and self._begin is not None:
            self.session = self._begin(self.partitions)
        return FetchResponse(session_id=self.session.session_id if self.session else NO_SESSION, responses=[])

    def add_to_answer(self, response: FetchResponse, answers: Iterable[tuple[PartitionKey, PartitionData]]) -> None:
        session = self.session
        if session is None:
            _add_by_topic(response.responses, answers)
            return
        told = []
        for key, answer in answers:
            known = session.partitions.get(key)
            # A full answer contains everything, which must be recorded as sent.
            if known is None or known.has_news(answer) or not self.incremental:
                told.append((key, answer))
                if self.incremental and known is not None and size_of(answer):
                    # Partitions with data go to the end of the line, so that all get their turn.
                    session.partitions[key] = session.partitions.pop(key)
        _add_by_topic(response.responses, told)


def _add_by_topic(topics: list[FetchableTopicResponse], answers: Iterable[tuple[PartitionKey, PartitionData]]) -> None:
    for key, answer in answers:
        last = topics[-1] if topics else None
        if last is None or last.topic_id != key.topic_id or last.topic != key.topic:
            last = FetchableTopicResponse(topic=key.topic, topic_id=key.topic_id, partitions=[])
            topics.append(last)
        last.partitions.append(answer)


class FetchSessions:
    """All sessions of a broker."""

    def __init__(self, slots: Callable[[], int], random_id: Callable[[], int]) -> None:
        """`random_id` gives a number from 1 to 2**31 - 1."""
        self._slots = slots
        self._random_id = random_id
        self._sessions: dict[int, FetchSession] = {}  # the least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def clear(self) -> None:
        """Drop all sessions. Their clients start new ones."""
        self._sessions.clear()

    def context(
        self, version: int, request: FetchRequest, now_ms: int, wanted: Partitions | None = None
    ) -> FetchContext | ErrorCode:
        """What this request reads, or the error for the whole request. `wanted` are the partitions that it names."""
        if wanted is None:
            wanted = wanted_partitions(request)
        if version < 7:
            return FetchContext(wanted)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            if request.session_epoch == FINAL_EPOCH:
                return FetchContext(wanted)
            is_followers = is_from_follower(request)
            return FetchContext(
                wanted, begin=lambda partitions: self._create(partitions, version >= 13, is_followers, now_ms)
            )
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != (version >= 13):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.update(request, wanted)
        del self._sessions[session.session_id]
        if not session.partitions:
            return FetchContext({})
        self._sessions[session.session_id] = session
        session.epoch = 1 if session.epoch == _LAST_EPOCH else session.epoch + 1
        session.used_ms = now_ms
        return FetchContext(session.partitions, session)

    def _create(self, partitions: Partitions, by_id: bool, is_followers: bool, now_ms: int) -> FetchSession | None:
        if len(self._sessions) >= self._slots() and not self._evict(len(partitions), is_followers, now_ms):
            return None
        session_id = self._random_id()
        while session_id in self._sessions:
            session_id = self._random_id()
        session = FetchSession(session_id, partitions, by_id, now_ms, is_followers)
        self._sessions[session_id] = session
        return session

    def _evict(self, size: int, for_follower: bool, now_ms: int) -> bool:
        """Make room for a session of `size` partitions."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.used_ms > EVICTION_MS:
            del self._sessions[oldest.session_id]
            return True
        consumers = [s for s in self._sessions.values() if not s.is_followers]
        if for_follower and consumers:
            evictable = consumers
        else:
            of_kind = self._sessions.values() if for_follower else consumers
            evictable = [s for s in of_kind if now_ms - s.created_ms > EVICTION_MS and len(s.partitions) < size]
        smallest = min(evictable, key=lambda s: (len(s.partitions), s.session_id), default=None)
        if smallest is None:
            return False
        del self._sessions[smallest.session_id]
        return True


def follower_of(request: FetchRequest) -> tuple[int, int]:
    """The id and epoch of the broker that fetches to follow. The id is negative for consumers."""
    state = request.replica_state
    return (request.replica_id, -1) if state is None else (state.replica_id, state.replica_epoch)


def is_from_follower(request: FetchRequest) -> bool:
    return follower_of(request)[0] >= 0
