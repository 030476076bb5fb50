"""Membership in a group of consumers: join, share out, heartbeat, commit, leave.

It speaks the classic protocol with the range assignor, which every client has, so that it can share a group with any of
them. Everything happens on the caller's thread: if it does not call `heartbeat` for the length of a session, the
coordinator takes the member for dead and gives its partitions to the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeVar

from barnabas.client.client import Client
from barnabas.client.errors import BrokerError, ClientError, check
from barnabas.client.offsets import Membership, by_topic, commit_offsets
from barnabas.client.range_assignor import assign
from barnabas.client.requests import groups
from barnabas.client.subscription import Subscription
from barnabas.protocol.api import ApiKey
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    read_with_version,
)
from barnabas.protocol.errors import ErrorCode, ProtocolError
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.leave_group import LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.schema import Message
from barnabas.protocol.topic_partition import TopicPartition

R = TypeVar("R", bound=Message)

SESSION_TIMEOUT: Final = 45.0
# How long the members wait for each other to join the next generation.
REBALANCE_TIMEOUT: Final = 300.0
HEARTBEAT_INTERVAL: Final = 3.0
# How often a member looks for new topics that match its pattern, and the leader for new partitions.
METADATA_INTERVAL: Final = 3.0

_RANGE: Final = "range"

# The group has moved on without this member, which has to join again.
_OUTDATED: Final = frozenset(
    {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}
)


class Member:
    def __init__(self, client: Client, group: str, subscription: Subscription) -> None:
        self.generation = -1
        self._client = client
        self._group = group
        self._subscription = subscription
        self._topics: list[str] = []
        self._member_id = ""
        self._heartbeat_due = 0.0
        self._look_due = 0.0
        self._shared_out: Mapping[str, int] | None = None  # topics and their partition counts, if this member leads

    def join(self) -> list[TopicPartition]:
        """Join the next generation of the group, and return this member's partitions in it."""
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
        """Whether the assignment is still valid. Asks the coordinator when a heartbeat is due."""
        now = time.monotonic()
        if now >= self._look_due:
            self._look_due = now + METADATA_INTERVAL
            if self._subscription.regex and self._subscription.current(self._client) != self._topics:
                return False
            if self._shared_out is not None and self._partition_counts(self._shared_out) != self._shared_out:
                return False
        if now < self._heartbeat_due:
            return True
        self._heartbeat_due = now + HEARTBEAT_INTERVAL
        return self._still_valid(self._send_heartbeat)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """False if the group has moved on: another member may read these records again."""
        membership = Membership(self._member_id, self.generation)
        return self._still_valid(lambda: commit_offsets(self._client, self._group, offsets, membership))

    def leave(self) -> None:
        if self._member_id:
            connection = self._client.coordinator(self._group, "group")
            version = connection.version(ApiKey.LEAVE_GROUP)
            reason = "the consumer is being closed"
            connection.ask(groups.leave_group(version, self._group, self._member_id, reason=reason), LeaveGroupResponse)
            self._member_id = ""

    def _join_once(self) -> list[TopicPartition]:
        self._topics = self._subscription.current(self._client)
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
        request = groups.sync_group(
            self._group,
            self._member_id,
            self.generation,
            {member: groups.assignment(*by_topic(share)) for member, share in shares.items()},
            protocol_type=groups.CONSUMERS,
            protocol_name=joined.protocol_name,
        )
        synced = self._ask(request, SyncGroupResponse, REBALANCE_TIMEOUT + self._client.timeout)
        check(synced.error_code, f"group '{self._group}'")
        return self._decoded(synced.assignment)

    def _send_join(self) -> JoinGroupResponse:
        request = groups.join_group(
            self._group,
            self._member_id,
            protocols=[(_RANGE, groups.subscription(*self._topics))],
            session_timeout_ms=int(SESSION_TIMEOUT * 1000),
            rebalance_timeout_ms=int(REBALANCE_TIMEOUT * 1000),
        )
        return self._ask(request, JoinGroupResponse, REBALANCE_TIMEOUT + self._client.timeout)

    def _send_heartbeat(self) -> None:
        request = groups.heartbeat(self._group, self._member_id, self.generation)
        check(self._ask(request, HeartbeatResponse).error_code, f"group '{self._group}'")

    def _share_out(self, members: Sequence[JoinGroupResponseMember]) -> dict[str, list[TopicPartition]]:
        """As the leader, assign the partitions of all topics. Static members come first, as in the Java client."""
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
            raise ClientError(f"group '{self._group}': member {member.member_id} is not a consumer: {error}") from None

    def _partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        found = self._client.metadata(topics).topics
        return {topic.name or "": len(topic.partitions) for topic in found if not topic.error_code}

    def _decoded(self, assignment: bytes) -> list[TopicPartition]:
        try:
            topics = read_with_version(ConsumerProtocolAssignment, assignment).assigned_partitions
        except ProtocolError as error:
            raise ClientError(f"group '{self._group}': the leader's assignment cannot be read: {error}") from None
        return [TopicPartition(each.topic, index) for each in topics for index in each.partitions]

    def _still_valid(self, ask: Callable[[], None]) -> bool:
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
