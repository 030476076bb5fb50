"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup and Heartbeat take it further for them.

JoinGroup does what a full heartbeat does, and is answered at once; its generation is the member's epoch. SyncGroup
gives the member its partitions. Heartbeat tells it when to join again. A member that does not do so in time, or joins
and does not sync, is removed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorRecord, CoordinatorResult
from barnabas.broker.coordinator.timers import Timers
from barnabas.broker.group.classic.member import AnswerJoin, AnswerSync
from barnabas.broker.group.classic.responses import join_error, protocols_of, rebalance_timeout, sync_error
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.consumer.group import CONSUMER, ConsumerGroup
from barnabas.broker.group.consumer.member import ClassicProtocols, ConsumerMember, MemberState
from barnabas.broker.group.consumer.membership import ConsumerMembership, join_key, replaced_static, sync_key
from barnabas.broker.group.consumer.migration import classic_assignment
from barnabas.broker.group.consumer.objections import check_static
from barnabas.broker.group.consumer.reconciliation import Owned
from barnabas.broker.group.consumer.settings import ConsumerSettings, may_mix
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.topics import Topics
from barnabas.protocol.consumer_protocol import ConsumerProtocolSubscription, read_with_version
from barnabas.protocol.errors import ErrorCode, ProtocolError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_ID_FIRST_FROM_VERSION: Final = 4  # of JoinGroup: a new member gets its id before it is one


class ClassicMembers:
    def __init__(
        self, consumers: ConsumerMembership, settings: ConsumerSettings, topics: Topics, timers: Timers
    ) -> None:
        self._consumers = consumers
        self._settings = settings
        self._topics = topics
        self._timers = timers

    # --- join ---

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin, new_id: str
    ) -> CoordinatorResult:
        """`new_id` is for a member that has none yet."""
        member_id = request.member_id or new_id
        try:
            subscription = self._checked(group, request, member_id)
        except Refused as refused:
            answer(join_error(refused.error, ""))
            return NOTHING_TO_DO
        if not request.member_id and request.group_instance_id is None and client.version >= _ID_FIRST_FROM_VERSION:
            answer(join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return NOTHING_TO_DO
        records: list[CoordinatorRecord] = []
        known = group.static_member(request.group_instance_id)
        try:
            member = self._member(group, request, member_id, known, records)
        except Refused as refused:
            answer(join_error(refused.error, ""))
            return NOTHING_TO_DO
        replaced = known.member_id if known is not None and known.member_id != member_id else None
        updated = _updated(member, request, client, subscription)
        others = [each for each in group.members.values() if each is not known]
        is_last = known is not None and known.classic is None and self._consumers.is_downgraded_to([*others, updated])
        moved, decision = self._consumers.advance(
            group, member, updated, replaced, self._owned(subscription), lambda _: True, records
        )
        if is_last:
            rebalance = "a static member joined with another subscription" if updated.topics != member.topics else None
            decision = self._consumers.downgrade(group, [*others, moved], max(moved.epoch, group.epoch), rebalance)
        response = JoinGroupResponse(
            generation_id=moved.epoch,
            protocol_type=CONSUMER,
            protocol_name=request.protocols[0].name,
            leader="",
            member_id=member_id,
            members=[],
        )

        def done(error: ErrorCode) -> None:
            decision.done(error)
            if not is_last:  # also after an error: it may have joined nevertheless
                self._consumers.watch(group.group_id, member_id, request.session_timeout_ms)
            if error:
                answer(join_error(error, member_id))
                return
            if not is_last:
                group.rejoining.discard(member_id)
                self._timers.cancel(join_key(group.group_id, member_id))
                self._consumers.remove_after(
                    sync_key(group.group_id, member_id), group, moved, "it did not sync in time"
                )
            answer(response)

        return decision._replace(done=done)

    def _checked(self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> ConsumerProtocolSubscription:
        names = [protocol.name for protocol in request.protocols]
        if not may_mix(self._settings) or not group.supports(request.protocol_type, names):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "its protocols are not those of the group")
        self._consumers.check_size(group, member_id)
        try:
            return read_with_version(ConsumerProtocolSubscription, request.protocols[0].metadata)
        except ProtocolError:
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "its subscription cannot be read") from None

    def _member(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        member_id: str,
        known: ConsumerMember | None,
        records: list[CoordinatorRecord],
    ) -> ConsumerMember:
        if request.group_instance_id is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if request.member_id:
            return check_static(known, member_id, request.group_instance_id)
        if known is None:
            return ConsumerMember(member_id)
        return replaced_static(group, known, member_id, records)

    def _owned(self, subscription: ConsumerProtocolSubscription) -> Owned:
        return {
            image.topic_id: frozenset(each.partitions)
            for each in subscription.owned_partitions
            if (image := self._topics.topic(each.topic)) is not None
        }

    # --- sync ---

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, answer: AnswerSync) -> CoordinatorResult:
        try:
            member, classic = _find(group, request.member_id, request.group_instance_id, request.generation_id)
            types, names = (None, CONSUMER), (None, classic.name)
            if request.protocol_type not in types or request.protocol_name not in names:
                raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "its protocol is another")
        except Refused as refused:
            answer(sync_error(refused.error))
            return NOTHING_TO_DO
        if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._await_join(group, member)
            answer(sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
            return NOTHING_TO_DO
        self._timers.cancel(sync_key(group.group_id, member.member_id))
        self._consumers.watch(group.group_id, member.member_id, classic.session_timeout_ms)
        response = SyncGroupResponse(
            protocol_type=CONSUMER,
            protocol_name=classic.name,
            assignment=classic_assignment(classic, member.assigned, self._topics),
        )
        answer(response)
        return NOTHING_TO_DO

    # --- staying ---

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        try:
            member, classic = _find(group, request.member_id, request.group_instance_id, request.generation_id)
        except Refused as refused:
            return refused.error
        self._consumers.watch(group.group_id, member.member_id, classic.session_timeout_ms)
        if not _has_to_join(group, member):
            return ErrorCode.NONE
        self._await_join(group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _await_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """From the first time that it is told to join again."""
        if member.member_id not in group.rejoining:
            group.rejoining.add(member.member_id)
            self._consumers.remove_after(
                join_key(group.group_id, member.member_id), group, member, "it did not join again in time"
            )


def _has_to_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    # As soon as something that it waits for is free.
    return any(
        index not in member.assigned.get(topic_id, ()) and not group.is_owned(topic_id, index)
        for topic_id, indexes in group.target_of(member).items()
        for index in indexes
    )


def _find(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicProtocols]:
    """The member of the classic protocol that a request comes from."""
    if instance_id is None:
        member = group.members.get(member_id)
    else:
        member = check_static(group.static_member(instance_id), member_id, instance_id)
    if member is None or member.classic is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of the classic protocol")
    if member.epoch != generation:
        raise Refused(ErrorCode.ILLEGAL_GENERATION, f"{generation} is not the generation of {member_id}")
    return member, member.classic


def _updated(
    member: ConsumerMember, request: JoinGroupRequest, client: ClientInfo, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    updated = replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        rebalance_timeout_ms=rebalance_timeout(request),
        topics=frozenset(subscription.topics),
        regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=ClassicProtocols(request.session_timeout_ms, tuple(protocols_of(request))),
    )
    return member if updated == member else updated
