"""What OffsetCommit and TxnOffsetCommit share: offsets are committed some at a time, so that no turn is long.

Each part is decided on the group as it is then: after a rebalance in between, the rest is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from barnabas.broker.group.records import CommittedOffset
from barnabas.broker.server.pieces import Steps
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

_AT_A_TIME: Final = 200

Done = Callable[[ErrorCode], None]
Offsets = Sequence[tuple[TopicPartition, CommittedOffset]]


class PartitionAnswer(Protocol):
    error_code: int


class Commit:
    """The partitions of one request that can be committed, until all of them are."""

    def __init__(self, commit: Callable[[Offsets, Done], None], answer: Callable[[], None]) -> None:
        """`commit` commits some offsets, and reports one error for all of them; `answer` is called after the last."""
        self._commit = commit
        self._answer = answer
        self._offsets: list[tuple[TopicPartition, CommittedOffset]] = []
        self._answers: list[PartitionAnswer] = []  # one for each of these offsets
        self._too_long: list[PartitionAnswer] = []
        self._left = 0

    @property
    def is_empty(self) -> bool:
        return not self._answers and not self._too_long

    def add(
        self, partition: TopicPartition, offset: CommittedOffset, answer: PartitionAnswer, *, too_long: bool
    ) -> None:
        """`too_long`: the metadata of the offset are too long, so it is answered but not committed."""
        if too_long:
            self._too_long.append(answer)
        else:
            self._offsets.append((partition, offset))
            self._answers.append(answer)

    def refuse(self, error: ErrorCode) -> None:
        self._tell([*self._answers, *self._too_long], error)
        self._answer()

    def steps(self) -> Steps[None]:
        """Commit. If no offset can be committed, the group is asked anyway: it may refuse the client."""
        starts = range(0, max(len(self._offsets), 1), _AT_A_TIME)
        self._left = len(starts)
        for start in starts:
            self._commit_some(start)
            yield

    def _commit_some(self, start: int) -> None:
        answers = self._answers[start : start + _AT_A_TIME]

        def done(error: ErrorCode) -> None:
            self._tell(answers, error)
            if start == 0:
                self._tell(self._too_long, error or ErrorCode.OFFSET_METADATA_TOO_LARGE)
            self._left -= 1
            if not self._left:
                self._answer()

        self._commit(self._offsets[start : start + _AT_A_TIME], done)

    def _tell(self, answers: Sequence[PartitionAnswer], error: ErrorCode) -> None:
        for answer in answers:
            answer.error_code = error
