"""Membership in a group of consumers: join, share out, heartbeat, commit, leave.

It speaks the classic protocol with the range assignor, which every client has, so that it can be in one group with any
of them. All of it happens in the caller's own turn: whoever does not call `heartbeat` for the length of a session is
taken for dead, and its partitions go to the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeVar

from broker.cli.client.client import Client, TopicPartition
from broker.cli.client.errors import BrokerError, ClientError, check
from broker.cli.client.offsets import Membership, by_topic, commit_offsets
from broker.cli.client.range_assignor import assign
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    read_with_version,
    with_version,
)
from protocol.consumer_protocol import TopicPartition as AssignedTopic
from protocol.errors import ErrorCode, ProtocolError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from protocol.schema import Message

R = TypeVar("R", bound=Message)

SESSION_TIMEOUT: Final = 45.0
# How long the others wait for this member to join the next generation, and it for them.
REBALANCE_TIMEOUT: Final = 300.0
HEARTBEAT_INTERVAL: Final = 3.0
# How often the leader looks whether its topics have more partitions than it shared out.
METADATA_INTERVAL: Final = 30.0

_PROTOCOL_TYPE: Final = "consumer"
_RANGE: Final = "range"
# The oldest version: it says all that range needs, and everybody reads it.
_VERSION: Final = 0

# The group has moved on without this member; it joins again.
_OUTDATED: Final = frozenset(
    {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}
)


class Member:
    def __init__(self, client: Client, group: str, topics: Sequence[str]) -> None:
        self.generation = -1
        self._client = client
        self._group = group
        self._topics = topics
        self._member_id = ""
        self._heartbeat_due = 0.0
        self._look_due = 0.0
        self._shared_out: Mapping[str, int] | None = None  # partitions by topic, if this member leads

    def join(self) -> list[TopicPartition]:
        """Take part in the next generation of the group; returns this member's partitions in it."""
        while True:
            try:
                assignment = self._client.settled(self._join_once)
            except BrokerError as error:
                if error.code not in _OUTDATED:
                    raise
                self._forget_if_unknown(error)
            else:
                self._heartbeat_due = time.monotonic() + HEARTBEAT_INTERVAL
                self._look_due = time.monotonic() + METADATA_INTERVAL
                return assignment

    def heartbeat(self) -> bool:
        """Whether the assignment still stands. Asks the coordinator, if it is time to."""
        now = time.monotonic()
        if now >= self._look_due and self._shared_out is not None:
            self._look_due = now + METADATA_INTERVAL
            if self._partition_counts(self._shared_out) != self._shared_out:
                return False
        if now < self._heartbeat_due:
            return True
        self._heartbeat_due = now + HEARTBEAT_INTERVAL
        return self._still_stands(self._send_heartbeat)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit; False if the group has moved on, so that another member may read these records again."""
        membership = Membership(self._member_id, self.generation)
        return self._still_stands(lambda: commit_offsets(self._client, self._group, offsets, membership))

    def leave(self) -> None:
        if self._member_id:
            identity = MemberIdentity(member_id=self._member_id, reason="the consumer is being closed")
            self._ask(LeaveGroupRequest(group_id=self._group, members=[identity]), LeaveGroupResponse)
            self._member_id = ""

    def _join_once(self) -> list[TopicPartition]:
        joined = self._send_join()
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            joined = self._send_join()
        check(joined.error_code, f"group '{self._group}'")
        self._member_id = joined.member_id
        self.generation = joined.generation_id
        shares: dict[str, list[TopicPartition]] = {}
        self._shared_out = None
        if joined.leader == joined.member_id and not joined.skip_assignment:
            shares = self._share_out(joined.members)
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self.generation,
            member_id=self._member_id,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=_encoded(share))
                for member, share in shares.items()
            ],
        )
        synced = self._ask(request, SyncGroupResponse, REBALANCE_TIMEOUT + self._client.timeout)
        check(synced.error_code, f"group '{self._group}'")
        return self._decoded(synced.assignment)

    def _send_join(self) -> JoinGroupResponse:
        subscription = ConsumerProtocolSubscription(topics=sorted(self._topics))
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=int(SESSION_TIMEOUT * 1000),
            rebalance_timeout_ms=int(REBALANCE_TIMEOUT * 1000),
            member_id=self._member_id,
            protocol_type=_PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=_RANGE, metadata=with_version(subscription, _VERSION))],
        )
        return self._ask(request, JoinGroupResponse, REBALANCE_TIMEOUT + self._client.timeout)

    def _send_heartbeat(self) -> None:
        request = HeartbeatRequest(group_id=self._group, generation_id=self.generation, member_id=self._member_id)
        check(self._ask(request, HeartbeatResponse).error_code, f"group '{self._group}'")

    def _share_out(self, members: Sequence[JoinGroupResponseMember]) -> dict[str, list[TopicPartition]]:
        """As the leader, assign every topic that any member reads. Static members come first, as in Java's client."""
        in_order = sorted(
            members, key=lambda each: (each.group_instance_id is None, each.group_instance_id or each.member_id)
        )
        subscriptions = {each.member_id: self._topics_of(each) for each in in_order}
        topics = {topic for each in subscriptions.values() for topic in each}
        self._shared_out = self._partition_counts(topics)
        return assign(subscriptions, self._shared_out)

    def _topics_of(self, member: JoinGroupResponseMember) -> list[str]:
        try:
            return read_with_version(ConsumerProtocolSubscription, member.metadata).topics
        except ProtocolError as error:
            raise ClientError(f"group '{self._group}': member {member.member_id} is no consumer: {error}") from None

    def _partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        found = self._client.metadata(topics).topics
        return {topic.name or "": len(topic.partitions) for topic in found if not topic.error_code}

    def _decoded(self, assignment: bytes) -> list[TopicPartition]:
        try:
            topics = read_with_version(ConsumerProtocolAssignment, assignment).assigned_partitions
        except ProtocolError as error:
            raise ClientError(f"group '{self._group}': its leader sent no assignment: {error}") from None
        return [TopicPartition(each.topic, index) for each in topics for index in each.partitions]

    def _still_stands(self, ask: Callable[[], None]) -> bool:
        try:
            self._client.settled(ask)
        except BrokerError as error:
            if error.code not in _OUTDATED:
                raise
            self._forget_if_unknown(error)
            return False
        return True

    def _forget_if_unknown(self, error: BrokerError) -> None:
        if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""

    def _ask(self, request: Message, answer: type[R], timeout: float | None = None) -> R:
        return self._client.coordinator(self._group, "group").ask(request, answer, timeout)


def _encoded(share: Collection[TopicPartition]) -> bytes:
    topics = [AssignedTopic(topic=topic, partitions=indexes) for topic, indexes in by_topic(share)]
    return with_version(ConsumerProtocolAssignment(assigned_partitions=topics), _VERSION)
