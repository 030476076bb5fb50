"""A follower's side of a fetch session (KIP-227): only what changed since the last fetch is sent.

Pure. The leader keeps the last request for each partition; a partition is sent again when its request differs, and
named as forgotten when it is no longer followed. When the leader has lost the session, everything is sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

_NEW: Final = 0
_LAST_EPOCH: Final = 2**31 - 1

Key = tuple[bytes, int]  # topic id, partition


class Wanted(NamedTuple):
    """What is requested for one partition."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FollowerSession:
    def __init__(self) -> None:
        self.session_id = 0
        self.epoch = _NEW
        self._sent: dict[Key, Wanted] = {}

    def request(self, wanted: Mapping[Key, Wanted]) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """The topics to send, and those to forget."""
        if self.epoch == _NEW:
            self._sent = {}
        changed = {key: each for key, each in wanted.items() if self._sent.get(key) != each}
        forgotten = [key for key in self._sent if key not in wanted]
        self._sent = dict(wanted)
        return _topics(changed), _forgotten(forgotten)

    def answered(self, session_id: int) -> None:
        """The leader accepted the request. It may have created a session, or had no room for one."""
        if session_id == 0:
            self.start_anew()
            return
        self.session_id = session_id
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1

    def repeat(self) -> None:
        """Part of the last answer was not used, although the leader takes it as known: have everything sent again.

        The leader ends the old session when the next request names it.
        """
        self.epoch = _NEW

    def start_anew(self) -> None:
        """The leader has no such session, or may not have seen the last request."""
        self.session_id = 0
        self.epoch = _NEW


def _topics(wanted: Mapping[Key, Wanted]) -> list[FetchTopic]:
    topics: dict[bytes, FetchTopic] = {}
    for (topic_id, index), each in wanted.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = FetchTopic(topic_id=topic_id, partitions=[])
        topic.partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=each.leader_epoch,
                fetch_offset=each.fetch_offset,
                last_fetched_epoch=each.last_fetched_epoch,
                log_start_offset=each.log_start_offset,
                partition_max_bytes=each.max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(keys: Iterable[Key]) -> list[ForgottenTopic]:
    topics: dict[bytes, ForgottenTopic] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id, partitions=[])).partitions.append(index)
    return list(topics.values())
