"""Rules for members of share groups who fetch and acknowledge records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from barnabas.broker.share.in_flight import AcknowledgeType
from barnabas.broker.share.sessions import INITIAL_EPOCH, SessionKey
from barnabas.broker.testing.strict.rule import Memory, Rule, Seen
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from barnabas.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from barnabas.protocol.schema import Message

# First and last offset.
_Range = tuple[int, int]
# A topic's id and a partition.
_Place = tuple[bytes, int]


def _session(message: Any) -> SessionKey | None:
    if isinstance(message, ShareFetchRequest | ShareAcknowledgeRequest):
        return SessionKey(message.group_id or "", message.member_id or "")
    return None


def _acknowledged(message: Any) -> Iterator[tuple[_Place, Sequence[Any]]]:
    """The batches of offsets that a request acknowledges in each partition."""
    for topic in message.topics:
        for partition in topic.partitions:
            if partition.acknowledgement_batches:
                yield (topic.topic_id, partition.partition_index), partition.acknowledgement_batches


def _named(seen: Seen, place: _Place) -> str:
    topic = seen.broker.cluster.topic_by_id(place[0])
    return f"{topic.name if topic is not None else place[0].hex()}-{place[1]}"


class ShareSessionMisused(Rule):
    """In a share session every request has the next epoch, and only a ShareFetch without acknowledgements begins one.

    A session whose member was given a made-up answer may be out of step, and is not checked until it begins again.
    """

    name = "share-session-misused"
    reference = "KIP-932: share sessions"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        key, message = _session(seen.message), seen.message
        if key is None or message.share_session_epoch != INITIAL_EPOCH:
            return None
        memory.pop(key, None)
        if isinstance(message, ShareAcknowledgeRequest):
            return f"{_who(key)}: ShareAcknowledge with epoch 0, which begins a session"
        if next(_acknowledged(message), None) is not None:
            return f"{_who(key)}: acknowledgements in the request that begins a session"
        return None

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        key, message = _session(seen.message), seen.message
        if key is None:
            return None
        if seen.by_fault:
            memory[key] = "out of step"
        misused = getattr(answer, "error_code", 0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        if not misused or key in memory or message.share_session_epoch == INITIAL_EPOCH:
            return None
        session = seen.broker.share_partitions.sessions.find(key)
        expected = session.epoch if session is not None else "none"
        return f"{_who(key)}: epoch {message.share_session_epoch}, where {expected} was next"


class AcknowledgementsOutOfOrder(Rule):
    """Acknowledgements of a partition are in the order of their offsets, and each has one type or one per offset."""

    name = "acknowledgements-out-of-order"
    reference = "KIP-932: AcknowledgementBatches"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        if _session(seen.message) is None:
            return None
        for place, batches in _acknowledged(seen.message):
            before = -1
            for each in batches:
                first, last, types = each.first_offset, each.last_offset, len(each.acknowledge_types)
                if first > last or first <= before:
                    after = "" if before < 0 else f", after offset {before}"
                    return f"{_named(seen, place)}: an acknowledgement of {first} to {last}{after}"
                if types not in (1, last - first + 1):
                    return f"{_named(seen, place)}: {types} types for {first} to {last}"
                before = last
        return None


class AcknowledgedNeverAcquired(Rule):
    """A member acknowledges records that it was given, once.

    They come with a session, and a session with its connection. A member whose lock on records has run out cannot know
    that for certain, and whoever got an error may try again.
    """

    name = "acknowledged-never-acquired"
    reference = "KIP-932: AcquiredRecords and AcknowledgementBatches"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        key = _session(seen.message)
        if key is None:
            return None
        if seen.message.share_session_epoch == INITIAL_EPOCH:
            memory.pop(key, None)
        given: dict[_Place, list[_Range]] | None = memory.get(key)
        if given is None:
            return None
        for place, batches in _acknowledged(seen.message):
            for each in batches:
                wrong = _outside((each.first_offset, each.last_offset), given.get(place, ()))
                if wrong is not None:
                    return f"{_named(seen, place)}: {_who(key)} does not have offset {wrong}"
        return None

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        key = _session(seen.message)
        if key is None:
            return None
        begins = isinstance(answer, ShareFetchResponse) and seen.message.share_session_epoch == INITIAL_EPOCH
        if begins and not getattr(answer, "error_code", 0):
            memory[key] = {}  # from here on everything is known that the member is given
        given: dict[_Place, list[_Range]] | None = memory.get(key)
        if given is None or not isinstance(answer, ShareFetchResponse | ShareAcknowledgeResponse):
            return None
        field = "acknowledge_error_code" if isinstance(answer, ShareFetchResponse) else "error_code"
        accepted = {
            (topic.topic_id, partition.partition_index)
            for topic in answer.responses
            for partition in topic.partitions
            if not getattr(partition, field)
        }
        for place, batches in _acknowledged(seen.message):
            if place in accepted:
                given[place] = list(_without(given.get(place, ()), batches))
        for topic in answer.responses if isinstance(answer, ShareFetchResponse) else ():
            for partition in topic.partitions:
                place = topic.topic_id, partition.partition_index
                new = [(each.first_offset, each.last_offset) for each in partition.acquired_records]
                given[place] = _merged([*given.get(place, ()), *new])
        return None


def _who(key: SessionKey) -> str:
    return f"group {key.group_id}, member {key.member_id}"


def _merged(ranges: list[_Range]) -> list[_Range]:
    """Ranges in order that neither overlap nor touch."""
    merged: list[_Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def _outside(wanted: _Range, ranges: Sequence[_Range]) -> int | None:
    """The first offset that no range has; ranges are merged."""
    first, last = wanted
    inside = next((each for each in ranges if each[0] <= first <= each[1]), None)
    if inside is None:
        return first
    return None if last <= inside[1] else inside[1] + 1


def _without(ranges: Sequence[_Range], batches: Sequence[Any]) -> Iterator[_Range]:
    """What a member still has after acknowledgements. What it renewed is still its own."""
    done = [
        (each.first_offset, each.last_offset) for each in batches if AcknowledgeType.RENEW not in each.acknowledge_types
    ]
    for first, last in ranges:
        for taken_first, taken_last in done:
            if taken_last < first or taken_first > last:
                continue
            if taken_first > first:
                yield first, taken_first - 1
            first = taken_last + 1
        if first <= last:
            yield first, last


SHARE_RULES: Final[tuple[type[Rule], ...]] = (
    ShareSessionMisused,
    AcknowledgementsOutOfOrder,
    AcknowledgedNeverAcquired,
)
