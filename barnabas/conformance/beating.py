"""Members of groups in which the broker assigns partitions (KIP-848, KIP-932): a heartbeat does everything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from barnabas.client.requests import groups, share_groups
from barnabas.conformance.probe import Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import Message

JOIN: Final = 0
LEAVE: Final = -1

# What a member has: the partitions of topics, by their ids.
Owned = dict[bytes, list[int]]


class Beating:
    """The members of one group, who all beat over one connection. They are told what they own, and keep to it."""

    def __init__(self, probe: Probe, key: ApiKey) -> None:
        self.probe = probe
        self.key = key
        self.group = probe.group()
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, Owned] = {}

    def beat(self, member: str, epoch: int, topics: list[str] | None = None) -> Any:
        answer = self.probe.ask_coordinator(self.group, self.key, self._message(member, epoch, topics))
        if not answer.error_code:
            self.epochs[member] = answer.member_epoch
            if answer.assignment is not None:
                self.owned[member] = {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}
            if answer.member_epoch < 0:
                del self.epochs[member]
                self.owned.pop(member, None)
        return answer

    def _message(self, member: str, epoch: int, topics: list[str] | None) -> Message:
        if self.key == ApiKey.SHARE_GROUP_HEARTBEAT:
            return share_groups.share_group_heartbeat(self.group, member, epoch, topics)
        owned = None if epoch == LEAVE else self.owned.get(member, {})
        return groups.consumer_group_heartbeat(self.group, member, epoch, owned=owned, topics=topics)

    def joined(self, member: str, *topics: str) -> Any:
        answer = self.beat(member, JOIN, list(topics))
        self.probe.expect_error(f"the first heartbeat of {member}", answer.error_code)
        return answer

    def again(self, member: str) -> Any:
        return self.beat(member, self.epochs[member])

    def until_owned(self, expected: int) -> dict[str, int]:
        """Let all of them beat until they have so many partitions together; how many each of them has."""

        def round() -> dict[str, int]:
            for member in list(self.epochs):
                self.probe.expect_error(f"a heartbeat of {member}", self.again(member).error_code)
            return {member: sum(map(len, owned.values())) for member, owned in self.owned.items()}

        return self.probe.until(f"{expected} partitions", round, lambda sizes: sum(sizes.values()) == expected)


@contextmanager
def beating(probe: Probe, key: ApiKey) -> Iterator[Beating]:
    """A group whose members leave at the end, so that it can be deleted."""
    members = Beating(probe, key)
    try:
        yield members
    finally:
        for member in list(members.epochs):
            members.beat(member, LEAVE)
