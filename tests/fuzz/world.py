"""What the fuzzer knows about the broker: names that it reuses, and what it has learnt from answers.

Deep paths need values that fit together: a heartbeat of a member that exists, an end of a transaction that was started.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Message

T = TypeVar("T")

TOPICS = ("orders", "compacted", "append-time", "new-1", "new-2", "new-3", "__consumer_offsets", "__transaction_state")
WITNESS = "witness-of-the-fuzzer"  # the topic that no frame may name
GROUPS = ("readers", "writers", "static", "\x1b[2Jgroup", "g" * 300)
TRANSACTIONAL_IDS = ("tx-1", "tx-2", "tx-3", "\x1b]0;tx\x07")
INSTANCES = (None, None, "instance-1", "instance-2")
_REMEMBERED = 8  # of each kind


class World:
    def __init__(self) -> None:
        self.topic_ids: list[bytes] = []
        # (group, member id, generation), the latest last
        self.members: list[tuple[str, str, int]] = []
        self.streams_epochs: dict[str, int] = {}  # of members of the streams group
        # (transactional id, producer id, epoch)
        self.producers: list[tuple[str | None, int, int]] = []
        self.sequences: dict[tuple[int, int], int] = {}
        self.sessions: list[tuple[int, int]] = []  # of fetches: id and epoch

    def member(self, random: Random) -> tuple[str, str, int]:
        return _mostly_the_latest(random, self.members) or (random.choice(GROUPS), "", -1)

    def producer(self, random: Random) -> tuple[str | None, int, int]:
        return _mostly_the_latest(random, self.producers) or (random.choice(TRANSACTIONAL_IDS), 0, 0)

    def sequence(self, producer_id: int, epoch: int, records: int) -> int:
        """The next sequence of a producer. After a refusal it is out of step, which is worth trying, too."""
        sequence = self.sequences.get((producer_id, epoch), 0)
        self.sequences[producer_id, epoch] = sequence + records
        return sequence

    def learn(self, key: ApiKey, request: Message, answer: Any) -> None:
        """Remember what an answer says."""
        learn = {
            ApiKey.METADATA: self._learn_topics,
            ApiKey.CREATE_TOPICS: self._learn_topics,
            ApiKey.JOIN_GROUP: self._learn_member,
            ApiKey.STREAMS_GROUP_HEARTBEAT: self._learn_streams_epoch,
            ApiKey.INIT_PRODUCER_ID: self._learn_producer,
            ApiKey.END_TXN: self._learn_epoch,
            ApiKey.FETCH: self._learn_session,
        }.get(key)
        if learn is not None:
            learn(request, answer)

    def _learn_topics(self, request: Any, answer: Any) -> None:
        for topic in answer.topics:
            if topic.name == WITNESS:
                continue
            _remember(self.topic_ids, topic.topic_id)

    def _learn_member(self, request: Any, answer: Any) -> None:
        if answer.member_id and answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            _remember(self.members, (request.group_id, answer.member_id, answer.generation_id))

    def _learn_streams_epoch(self, request: Any, answer: Any) -> None:
        if not answer.error_code:
            self.streams_epochs[answer.member_id] = answer.member_epoch

    def _learn_producer(self, request: Any, answer: Any) -> None:
        if not answer.error_code:
            _remember(self.producers, (request.transactional_id, answer.producer_id, answer.producer_epoch))

    def _learn_epoch(self, request: Any, answer: Any) -> None:
        if not answer.error_code and answer.producer_id >= 0:
            _remember(self.producers, (request.transactional_id, answer.producer_id, answer.producer_epoch))

    def _learn_session(self, request: Any, answer: Any) -> None:
        if answer.session_id:
            _remember(self.sessions, (answer.session_id, request.session_epoch + 1))


def _mostly_the_latest(random: Random, known: list[T]) -> T | None:
    if not known:
        return None
    return known[-1] if random.random() < 0.5 else random.choice(known)


def _remember(known: list[Any], new: Any) -> None:
    if new in known:
        known.remove(new)
    known.append(new)
    del known[:-_REMEMBERED]
