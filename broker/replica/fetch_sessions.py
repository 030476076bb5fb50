"""Fetch sessions: what a client fetches is remembered, so that it sends and receives only what changes.

A client begins with a full request (epoch 0) and gets a session id. Its next requests (epochs 1, 2, …) name only
partitions that are new, moved or forgotten, and the answers hold only partitions with news. Epoch -1 means no session.
Sessions are few (max.incremental.fetch.session.cache.slots): a new one may push out one that was not used for a while,
or an older and smaller one. A client that finds its session gone begins again with a full request.

Pure: the time and random numbers are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1
_IN_MEMORY: Final = (bytes, bytearray, memoryview)
# For how long a session is safe from others that want its place.
EVICTION_MS: Final = 120_000


class PartitionKey(NamedTuple):
    """How a client names a partition: by topic name up to version 12, by topic id from 13."""

    topic: str
    topic_id: bytes
    partition: int


class FetchedPartition:
    """What a client wants of a partition, and what it was last told of it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
    )

    def __init__(
        self, key: PartitionKey, fetch_offset: int, max_bytes: int, current_leader_epoch: int, last_fetched_epoch: int
    ) -> None:
        self.key = key
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.high_watermark = -1
        self.log_start_offset = -1

    def has_news(self, answer: PartitionData) -> bool:
        """Whether the client must be told, and from now on counts as told."""
        news = (
            bool(answer.records is not None and size_of(answer))
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
            or answer.preferred_read_replica != -1
            or answer.diverging_epoch is not None
            or answer.error_code != 0
        )
        self.high_watermark = -1 if answer.error_code else answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return news


def size_of(answer: PartitionData) -> int:
    records = answer.records
    if records is None:
        return 0
    return len(records) if isinstance(records, _IN_MEMORY) else records.size


Partitions = dict[PartitionKey, FetchedPartition]


class FetchSession:
    __slots__ = ("by_id", "created_ms", "epoch", "partitions", "session_id", "used_ms")

    def __init__(self, session_id: int, partitions: Partitions, by_id: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.partitions = partitions
        self.by_id = by_id
        self.created_ms = self.used_ms = now_ms
        self.epoch = 1  # what the next request must carry

    def update(self, request: FetchRequest) -> None:
        for key, wanted in wanted_partitions(request).items():
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = wanted
            else:
                known.fetch_offset = wanted.fetch_offset
                known.max_bytes = wanted.max_bytes
                known.current_leader_epoch = wanted.current_leader_epoch
                known.last_fetched_epoch = wanted.last_fetched_epoch
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                self.partitions.pop(PartitionKey(topic.topic, topic.topic_id, partition), None)


def wanted_partitions(request: FetchRequest) -> Partitions:
    return {
        key: FetchedPartition(key, p.fetch_offset, p.partition_max_bytes, p.current_leader_epoch, p.last_fetched_epoch)
        for topic in request.topics
        for p in topic.partitions
        for key in (PartitionKey(topic.topic, topic.topic_id, p.partition),)
    }


class FetchContext:
    """One Fetch: which partitions it reads, and how its answer is shaped."""

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
        """The answer to send: all of it, or in a session the news."""
        if self.session is None and self._begin is not None:
            self.session = self._begin(self.partitions)
        told = []
        if self.session is not None:
            for key, answer in answers:
                known = self.session.partitions.get(key)
                # A full answer tells everything, and so must still be remembered as told.
                if known is None or known.has_news(answer) or not self.incremental:
                    told.append((key, answer))
                    if self.incremental and known is not None and size_of(answer):
                        # Whoever got something goes to the end of the line, so that all have their turn.
                        self.session.partitions[key] = self.session.partitions.pop(key)
        else:
            told = list(answers)
        return FetchResponse(
            session_id=self.session.session_id if self.session else NO_SESSION, responses=_by_topic(told)
        )


def _by_topic(answers: Iterable[tuple[PartitionKey, PartitionData]]) -> list[FetchableTopicResponse]:
    topics: list[FetchableTopicResponse] = []
    for key, answer in answers:
        last = topics[-1] if topics else None
        if last is None or last.topic_id != key.topic_id or last.topic != key.topic:
            last = FetchableTopicResponse(topic=key.topic, topic_id=key.topic_id, partitions=[])
            topics.append(last)
        last.partitions.append(answer)
    return topics


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
        """Forget all sessions. Their clients begin new ones."""
        self._sessions.clear()

    def context(self, version: int, request: FetchRequest, now_ms: int) -> FetchContext | ErrorCode:
        """What this request reads, or the error that answers it whole."""
        if version < 7:
            return FetchContext(wanted_partitions(request))
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            wanted = wanted_partitions(request)
            if request.session_epoch == FINAL_EPOCH:
                return FetchContext(wanted)
            return FetchContext(wanted, begin=lambda partitions: self._create(partitions, version >= 13, now_ms))
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != (version >= 13):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.update(request)
        del self._sessions[session.session_id]
        if not session.partitions:
            return FetchContext({})
        self._sessions[session.session_id] = session
        session.epoch = 1 if session.epoch == _LAST_EPOCH else session.epoch + 1
        session.used_ms = now_ms
        return FetchContext(session.partitions, session)

    def _create(self, partitions: Partitions, by_id: bool, now_ms: int) -> FetchSession | None:
        if len(self._sessions) >= self._slots() and not self._evict(len(partitions), now_ms):
            return None
        session_id = self._random_id()
        while session_id in self._sessions:
            session_id = self._random_id()
        session = self._sessions[session_id] = FetchSession(session_id, partitions, by_id, now_ms)
        return session

    def _evict(self, size: int, now_ms: int) -> bool:
        """Make room for a session of `size` partitions."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.used_ms > EVICTION_MS:
            del self._sessions[oldest.session_id]
            return True
        settled = [s for s in self._sessions.values() if now_ms - s.created_ms > EVICTION_MS]
        smallest = min(settled, key=lambda s: (len(s.partitions), s.session_id), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return False
        del self._sessions[smallest.session_id]
        return True
