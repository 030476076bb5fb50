"""Rules for producers and readers, and for requests of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from barnabas.broker.testing.journal.data import to_data
from barnabas.broker.testing.strict.rule import Memory, Rule, Seen
from barnabas.protocol.api import ApiKey
from barnabas.protocol.error_counts import error_counts
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header
from barnabas.protocol.schema import Message

_MOST_IN_FLIGHT: Final = 5
_ALL: Final = -1
# A client that pauses between attempts, however briefly, is fine; the default is 100 ms in all libraries.
_SECONDS_WITHOUT_BACKOFF: Final = 0.02
_ATTEMPTS: Final = 10
# How many failed requests are remembered per connection.
_REMEMBERED: Final = 100


def _headers(message: Any) -> Iterator[tuple[str, int, BatchHeader]]:
    """The first batch of each partition that a Produce writes to."""
    if isinstance(message, ProduceRequest):
        for topic in message.topic_data:
            for partition in topic.partition_data:
                records: Any = partition.records
                if records is not None and len(records) >= HEADER_SIZE:
                    yield topic.name or topic.topic_id.hex(), partition.index, read_header(records)


class TooManyInFlight(Rule):
    """An idempotent producer has at most five requests in flight: the broker remembers no more batches than that."""

    name = "too-many-in-flight"
    reference = "KIP-98 and KIP-679: max.in.flight.requests.per.connection is at most 5 with idempotence"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        producer = next((header.producer_id for *_, header in _headers(seen.message) if header.producer_id >= 0), None)
        if producer is None:
            return None
        under_way = memory["under way"] = memory.get("under way", 0) + 1
        seen.facts[self.name] = True
        return f"producer {producer}: {under_way} requests in flight" if under_way > _MOST_IN_FLIGHT else None

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        if seen.facts.get(self.name):
            memory["under way"] -= 1
        return None


class IdempotenceWithoutAcks(Rule):
    """An idempotent producer waits for all replicas."""

    name = "idempotence-without-acks"
    reference = "KIP-98: enable.idempotence needs acks=all"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        message = seen.message
        if not isinstance(message, ProduceRequest) or message.acks == _ALL:
            return None
        producer = next((header.producer_id for *_, header in _headers(message) if header.producer_id >= 0), None)
        return f"producer {producer}: acks={message.acks}" if producer is not None else None


class ProducerEpochGoneBack(Rule):
    """A producer's epoch only rises."""

    name = "producer-epoch-gone-back"
    reference = "KIP-98 and KIP-360: producer epochs"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        complaint = None
        for *_, header in _headers(seen.message):
            if header.producer_id >= 0:
                latest = memory.get(header.producer_id, -1)
                if header.producer_epoch < latest:
                    complaint = f"producer {header.producer_id}: epoch {header.producer_epoch} after {latest}"
                else:
                    memory[header.producer_id] = header.producer_epoch
        return complaint


class LeaderEpochGoneBack(Rule):
    """A reader that knows a newer leader epoch does not use an older one.

    Unless the newer one is gone because an earlier state was restored.
    """

    name = "leader-epoch-gone-back"
    reference = "KIP-320: current_leader_epoch"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        message = seen.message
        complaint = None
        for topic in message.topics if isinstance(message, FetchRequest) else ():
            image = seen.broker.cluster.topic(topic.topic) if topic.topic else None
            topic_id = image.topic_id if image is not None else topic.topic_id
            for partition in topic.partitions:
                epoch, key = partition.current_leader_epoch, (topic_id, partition.partition)
                latest = memory.get(key, -1)
                known = seen.broker.replicas.find(topic_id, partition.partition)
                if 0 <= epoch < latest and known is not None and latest <= known.leader_epoch:
                    name = topic.topic or topic_id.hex()
                    complaint = f"{name}-{partition.partition}: leader epoch {epoch} after {latest}"
                elif epoch >= 0:
                    memory[key] = epoch
        return complaint


class FetchSessionMisused(Rule):
    """In a session every Fetch has the next epoch; a request without a session has no epoch in one."""

    name = "fetch-session-misused"
    reference = "KIP-227"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        message = seen.message
        if isinstance(message, FetchRequest) and message.session_id == 0 and message.session_epoch > 0:
            return f"epoch {message.session_epoch} without a session"
        return None

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        if not isinstance(answer, FetchResponse) or seen.by_fault:
            return None
        if answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH:
            message = seen.message
            session = seen.broker.fetch_sessions.find(message.session_id)
            expected = session.epoch if session is not None else "none"
            return f"session {message.session_id}: epoch {message.session_epoch}, where {expected} was next"
        return None


class RetriedWithoutBackoff(Rule):
    """A failed request is retried after a pause, not immediately again and again.

    Requests that were in flight before the answer are not retries: a client may ask many times while a broker hangs.
    """

    name = "retried-without-backoff"
    reference = "KIP-580: exponential backoff between retries (retry.backoff.ms)"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        fingerprint = self._fingerprint(seen)
        attempts, failed_at = memory.get(fingerprint, (0, 0.0))
        if seen.now - failed_at >= _SECONDS_WITHOUT_BACKOFF:
            attempts = 0
        seen.facts[self.name] = (fingerprint, attempts)
        if attempts >= _ATTEMPTS:
            return f"{seen.key.api_name}: the same request after {attempts} failures, each time immediately"
        return None

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        if self.name in seen.facts:
            fingerprint, attempts = seen.facts[self.name]
            memory.pop(fingerprint, None)
            failed = answer is not None and any(_is_retriable(code) for code in error_counts(answer))
            if failed and not seen.exchange.connection.has_more:
                memory[fingerprint] = (attempts + 1, seen.now)
                if len(memory) > _REMEMBERED:
                    del memory[next(iter(memory))]
        return None

    def _fingerprint(self, seen: Seen) -> Any:
        """What stays the same when a request is retried. Batches are distinguished by their checksums."""
        message = seen.message
        if isinstance(message, ProduceRequest):
            return (ApiKey.PRODUCE, *((topic, index, header.crc) for topic, index, header in _headers(message)))
        if isinstance(message, FetchRequest):
            return (ApiKey.FETCH, *sorted(map(str, set(seen.subjects.partitions))))
        return (seen.key, str(to_data(message, seen.exchange.version)))


def _is_retriable(code: int) -> bool:
    try:
        return ErrorCode(code).retriable
    except ValueError:
        return False


DATA_RULES: Final[tuple[type[Rule], ...]] = (
    TooManyInFlight,
    IdempotenceWithoutAcks,
    ProducerEpochGoneBack,
    LeaderEpochGoneBack,
    FetchSessionMisused,
    RetriedWithoutBackoff,
)
