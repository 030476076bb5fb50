"""Joining, staying in and leaving a group of the consumer protocol: each heartbeat takes a group one step further.

A heartbeat updates its member. If what members read has changed, or the topics have, the group's epoch is raised. If
the target assignment is older than the group, it is computed. Then the member is reconciled with it. Members that fall
silent, or do not let go of partitions in time, are removed. Nothing but replayed records changes a group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import structlog

from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorRecord, CoordinatorResult
from barnabas.broker.coordinator.timers import Timers
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.group.consumer.member import AWAY_EPOCH, JOINING_EPOCH, LEAVING_EPOCH, ConsumerMember, MemberState
from barnabas.broker.group.consumer.objections import Refused, check_epoch, check_request, check_static
from barnabas.broker.group.consumer.reconciliation import Owned, Target, reconcile
from barnabas.broker.group.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    partition_metadata_tombstone,
    regex_tombstone,
    target_record,
)
from barnabas.broker.group.consumer.regexes import (
    MayDescribe,
    RegexChange,
    changed_regex,
    is_due,
    resolved_records,
    wanted_regexes,
)
from barnabas.broker.group.consumer.settings import ConsumerSettings, GroupTimes
from barnabas.broker.group.consumer.target import assign
from barnabas.broker.group.consumer.topics import Topics, ids_of, metadata_hash
from barnabas.broker.group.kind import AnyGroup
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)
from barnabas.protocol.messages.leave_group import MemberIdentity

log = structlog.get_logger()

Answered = tuple[ConsumerGroupHeartbeatResponse, CoordinatorResult]


class ConsumerMembership:
    """Decides for the consumer groups of one coordinator partition."""

    def __init__(
        self,
        groups: Mapping[str, AnyGroup],
        settings: ConsumerSettings,
        times: GroupTimes,
        topics: Topics,
        timers: Timers,
        carry_out: Callable[[CoordinatorResult], None],
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        """`carry_out` is for decisions made by timers, which no client waits for."""
        self._groups = groups
        self._settings = settings
        self._times = times
        self._topics = topics
        self._timers = timers
        self._carry_out = carry_out
        self._now_ms = now_ms
        self._new_id = new_id
        self._heard_at_ms: dict[tuple[str, str], int] = {}
        self._resolving: set[str] = set()  # groups whose patterns are about to be looked up
        # When a topic was last created: as a version of the topics, it goes on growing after a restart.
        self._topics_version = now_ms()

    # --- heartbeats ---

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: ClientInfo, may_describe: MayDescribe
    ) -> Answered:
        """The answer, which counts once what was decided is committed."""
        try:
            check_request(request, client.version, self._settings.group_consumer_assignors)
            if request.member_epoch in (LEAVING_EPOCH, AWAY_EPOCH):
                return self._leave(request)
            return self._stay(request, client, may_describe)
        except Refused as refused:
            return heartbeat_error(refused.error, str(refused)), NOTHING_TO_DO

    def _stay(self, request: ConsumerGroupHeartbeatRequest, client: ClientInfo, may_describe: MayDescribe) -> Answered:
        now_ms = self._now_ms()
        records: list[CoordinatorRecord] = []
        is_joining = request.member_epoch == JOINING_EPOCH
        group = self._join(request.group_id, records) if is_joining else self._existing(request.group_id)
        self._check_size(group, request.member_id)
        owned = _owned(request)
        member, replaced = self._member(group, request, owned, records)
        updated = _updated(member, request, client)

        if updated is not member:
            records.append(member_record(group.group_id, updated))
        names_changed = updated.topics != member.topics
        regex_change = changed_regex(group, member, updated, records)
        self._look_up_later(group, member, updated, may_describe)

        epoch = group.epoch
        bump = names_changed or regex_change is RegexChange.UPDATED_AND_RESOLVED
        members = group.members
        if updated is not group.members.get(updated.member_id):
            members = {each: old for each, old in members.items() if each != replaced}
            members[updated.member_id] = updated
        if bump or group.topics_changed:
            found = metadata_hash(_topics_of(group, members.values()), self._topics)
            if bump or found != group.metadata_hash:
                epoch += 1
                records.append(epoch_record(group.group_id, epoch, found))
            if group.has_partition_metadata:
                records.append(partition_metadata_tombstone(group.group_id))
        target_epoch, target = self._target(group, epoch, updated, members, now_ms, records)
        subscription_changed = names_changed or regex_change is not RegexChange.NONE
        updated = self._reconciled(group, updated, target_epoch, target, owned, subscription_changed, records)
        self._watch(group.group_id, updated.member_id)

        response = ConsumerGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.epoch,
            heartbeat_interval_ms=self._times.heartbeat_interval_ms(group.group_id),
        )
        if is_joining or _is_full(request) or _has_other_partitions(updated, member):
            response.assignment = _assignment(updated)
        had_changed, group.topics_changed = group.topics_changed, False

        def done(error: ErrorCode) -> None:
            if error:
                group.topics_changed = had_changed  # the epoch that this led to is not there

        return response, CoordinatorResult(records, done, key=group.group_id)

    def _join(self, group_id: str, records: list[CoordinatorRecord]) -> ConsumerGroup:
        """The group, or a new one; in place of an empty one of another kind, if need be."""
        found = self._groups.get(group_id)
        if isinstance(found, ConsumerGroup):
            return found
        if found is not None:
            if not found.is_empty:
                raise Refused(
                    ErrorCode.GROUP_ID_NOT_FOUND,
                    f"Group {group_id} has members of the {found.kind.value} protocol and cannot be upgraded.",
                )
            records += found.tombstones()
        log.info("consumer group begins", group=group_id)
        return ConsumerGroup(group_id)

    def _existing(self, group_id: str) -> ConsumerGroup:
        found = self._groups.get(group_id)
        if isinstance(found, ConsumerGroup):
            return found
        reason = "is not a consumer group" if found is not None else "not found"
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")

    def _check_size(self, group: ConsumerGroup, member_id: str) -> None:
        limit = self._settings.group_consumer_max_size
        if len(group.members) >= limit and member_id not in group.members:
            raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group may not have more than {limit} members.")

    def _member(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        owned: Owned,
        records: list[CoordinatorRecord],
    ) -> tuple[ConsumerMember, str | None]:
        """The member that a heartbeat comes from, and the id under which it was known, if it has a new one."""
        member_id = request.member_id or self._new_id()
        is_joining = request.member_epoch == JOINING_EPOCH
        instance_id = request.instance_id
        if instance_id is None:
            member = group.members.get(member_id)
            if member is None and not is_joining:
                raise Refused(
                    ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
                )
            member = member or ConsumerMember(member_id)
            check_epoch(member, request.member_epoch, owned)
            _check_state(member, owned)
            return member, None
        known = group.static_member(instance_id)
        if not is_joining:
            member = check_static(known, member_id, instance_id)
            check_epoch(member, request.member_epoch, owned)
            _check_state(member, owned)
            return member, None
        if known is None:
            return group.members.get(member_id) or ConsumerMember(member_id), None
        if known.epoch != AWAY_EPOCH:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Member {member_id} cannot join: instance id {instance_id} belongs to member {known.member_id}.",
            )
        member = replace(known, member_id=member_id, epoch=0, previous_epoch=0)
        records += member_tombstones(group.group_id, known.member_id)
        records.append(member_record(group.group_id, member))
        records.append(target_record(group.group_id, member_id, group.target_of(known)))
        records.append(current_record(group.group_id, member))
        log.info("static member is back", group=group.group_id, member=member_id, replaces=known.member_id)
        return member, known.member_id

    def _target(
        self,
        group: ConsumerGroup,
        epoch: int,
        updated: ConsumerMember,
        members: Mapping[str, ConsumerMember],
        now_ms: int,
        records: list[CoordinatorRecord],
    ) -> tuple[int, Target]:
        """The target assignment's epoch, and what it gives this member."""
        waits_until = group.assignment_timestamp + self._times.assignment_interval_ms(group.group_id)
        if epoch <= group.assignment_epoch or now_ms < waits_until:
            return group.assignment_epoch, group.target_of(updated)
        default = self._settings.group_consumer_assignors[0]
        target, changes = assign(group, members, epoch, self._topics, default, now_ms)
        records += changes
        log.info("target assignment", group=group.group_id, epoch=epoch, members=len(members))
        return epoch, target[updated.member_id]

    def _reconciled(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        target_epoch: int,
        target: Target,
        owned: Owned,
        subscription_changed: bool,
        records: list[CoordinatorRecord],
    ) -> ConsumerMember:
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        subscribed = ids_of(group.topics_of(member), self._topics)
        moved = reconcile(
            member, target_epoch, target, subscribed, group.is_owned, owned, subscription_changed=subscription_changed
        )
        if moved == member:
            return member
        records.append(current_record(group.group_id, moved))
        key = _rebalance_key(group.group_id, member.member_id)
        if moved.state is MemberState.UNREVOKED_PARTITIONS:
            self._await_revocation(group.group_id, moved)
        else:
            self._timers.cancel(key)
        return moved

    # --- patterns ---

    def _look_up_later(
        self, group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember, may_describe: MayDescribe
    ) -> None:
        wanted = wanted_regexes(group, old, new) if old.regex or new.regex or group.subscribed_regexes else []
        interval_ms = self._settings.group_consumer_regex_refresh_interval_ms
        group_id = group.group_id
        if group_id in self._resolving or not is_due(group, wanted, self._topics_version, self._now_ms(), interval_ms):
            return
        self._resolving.add(group_id)
        self._timers.schedule((group_id, "regex"), 0, lambda: self._look_up(group_id, wanted, may_describe))

    def _look_up(self, group_id: str, wanted: Collection[str], may_describe: MayDescribe) -> None:
        self._resolving.discard(group_id)
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return
        records, resolved = resolved_records(
            group, wanted, self._topics, may_describe, self._topics_version, self._now_ms()
        )
        names = {name for member in group.members.values() for name in member.topics}
        names.update(name for regex in resolved.values() for name in regex.topics)
        found = metadata_hash(names, self._topics)
        matches = {regex: known.topics for regex, known in group.regexes.items()}
        if found != group.metadata_hash or any(
            known.topics != matches.get(regex, frozenset()) for regex, known in resolved.items()
        ):
            records.append(epoch_record(group_id, group.epoch + 1, found))
        self._carry_out(CoordinatorResult(records, key=group_id))

    # --- leaving ---

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> Answered:
        group = self._existing(request.group_id)
        response = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=0
        )
        if request.instance_id is None:
            member = group.members.get(request.member_id)
            if member is None:
                raise Refused(
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    f"Member {request.member_id} is not a member of group {group.group_id}.",
                )
        else:
            member = check_static(group.static_member(request.instance_id), request.member_id, request.instance_id)
            if request.member_epoch == AWAY_EPOCH:
                away = replace(member, epoch=AWAY_EPOCH, revoking={})
                log.info("static member is away", group=group.group_id, member=member.member_id)
                return response, CoordinatorResult([current_record(group.group_id, away)], key=group.group_id)
        return response, self._fence(group, [member], "it left")

    def leave(
        self, group: ConsumerGroup, identities: Sequence[MemberIdentity]
    ) -> tuple[list[ErrorCode], CoordinatorResult]:
        """LeaveGroup, as administrators remove members: by member id or by instance id."""
        errors: list[ErrorCode] = []
        gone: dict[str, ConsumerMember] = {}
        for identity in identities:
            error, member = ErrorCode.NONE, group.members.get(identity.member_id)
            if identity.group_instance_id is not None:
                member = group.static_member(identity.group_instance_id)
                if member is not None and identity.member_id not in ("", member.member_id):
                    error = ErrorCode.FENCED_INSTANCE_ID
            if member is None:
                error = ErrorCode.UNKNOWN_MEMBER_ID
            elif not error:
                gone[member.member_id] = member
            errors.append(error)
        return errors, self._fence(group, list(gone.values()), "it was removed") if gone else NOTHING_TO_DO

    def _fence(self, group: ConsumerGroup, gone: Sequence[ConsumerMember], reason: str) -> CoordinatorResult:
        """Remove members, and with the last that have them, patterns."""
        group_id = group.group_id
        ids = {member.member_id for member in gone}
        left = [member for member in group.members.values() if member.member_id not in ids]
        records = [record for member in gone for record in member_tombstones(group_id, member.member_id)]
        still_wanted = {member.regex for member in left}
        for regex in dict.fromkeys(member.regex for member in gone):
            if regex and regex not in still_wanted:
                records.append(regex_tombstone(group_id, regex))
        found = metadata_hash(_topics_of(group, left), self._topics)
        records.append(epoch_record(group_id, group.epoch + 1, found))
        for member in gone:
            log.info("member is gone", group=group_id, member=member.member_id, reason=reason)
            self._forget_member(group_id, member.member_id)
        return CoordinatorResult(records, key=group_id)

    # --- time ---

    def _watch(self, group_id: str, member_id: str) -> None:
        """A member has been heard. Its timer looks at this when it fires, instead of being moved."""
        key = (group_id, member_id)
        is_watched = key in self._heard_at_ms
        self._heard_at_ms[key] = self._now_ms()
        if not is_watched:
            self._await_silence(key, self._times.session_timeout_ms(group_id))

    def _await_silence(self, key: tuple[str, str], delay_ms: int) -> None:
        self._timers.schedule(key, delay_ms, lambda: self._session_elapsed(key))

    def _session_elapsed(self, key: tuple[str, str]) -> None:
        remaining = self._heard_at_ms.get(key, 0) + self._times.session_timeout_ms(key[0]) - self._now_ms()
        if remaining > 0:
            self._await_silence(key, remaining)
            return
        self._heard_at_ms.pop(key, None)
        self._fence_one(*key, "its session timed out")

    def _await_revocation(self, group_id: str, member: ConsumerMember) -> None:
        member_id, epoch = member.member_id, member.epoch

        def elapsed() -> None:
            group = self._groups.get(group_id)
            found = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
            if found is not None and found.epoch == epoch and found.state is MemberState.UNREVOKED_PARTITIONS:
                self._fence_one(group_id, member_id, "it did not let go of partitions in time")

        self._timers.schedule(_rebalance_key(group_id, member_id), member.rebalance_timeout_ms, elapsed)

    def _fence_one(self, group_id: str, member_id: str, reason: str) -> None:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if isinstance(group, ConsumerGroup) and member is not None:
            self._carry_out(self._fence(group, [member], reason))

    def _forget_member(self, group_id: str, member_id: str) -> None:
        self._heard_at_ms.pop((group_id, member_id), None)
        self._timers.cancel((group_id, member_id))
        self._timers.cancel(_rebalance_key(group_id, member_id))

    def forget(self, group: ConsumerGroup) -> None:
        """A group is gone: cancel its timers."""
        for member_id in group.members:
            self._forget_member(group.group_id, member_id)

    def watch_all(self) -> None:
        """Start every member's session timeout now, after the groups were loaded; their topics may have changed."""
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup):
                group.topics_changed = True
                for member in group.members.values():
                    self._watch(group.group_id, member.member_id)
                    if member.state is MemberState.UNREVOKED_PARTITIONS:
                        self._await_revocation(group.group_id, member)

    def topics_changed(self, names: Collection[str], are_new: bool) -> None:
        """Groups that read these topics are assigned again, if it makes a difference, with their next heartbeat."""
        if are_new:
            self._topics_version = max(self._now_ms(), self._topics_version + 1)
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup) and not group.subscribed_topics().isdisjoint(names):
                group.topics_changed = True

    def heard_at_ms(self, group_id: str, member_id: str) -> int | None:
        return self._heard_at_ms.get((group_id, member_id))


def heartbeat_error(error: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=error, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )


def _updated(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: ClientInfo) -> ConsumerMember:
    """The member with what its heartbeat says; what it leaves out is as it was."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout = request.rebalance_timeout_ms
    updated = replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.host,
    )
    return member if updated == member else updated


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    owned: dict[bytes, frozenset[int]] = {}
    for each in request.topic_partitions:
        owned[each.topic_id] = owned.get(each.topic_id, frozenset()) | frozenset(each.partitions)
    return owned


def _check_state(member: ConsumerMember, owned: Owned) -> None:
    if member.state is MemberState.UNKNOWN and (owned is None or any(owned.values())):
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH, "The member's state is unknown. It must abandon its partitions and rejoin."
        )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """A member says everything after an error, and is then told everything."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None


def _has_other_partitions(updated: ConsumerMember, member: ConsumerMember) -> bool:
    now, before = updated.assigned, member.assigned
    return now is not before and {t: set(now[t]) for t in now} != {t: set(before[t]) for t in before}


def _assignment(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            ResponseTopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in member.assigned.items()
        ]
    )


def _topics_of(group: ConsumerGroup, members: Collection[ConsumerMember]) -> set[str]:
    return {name for member in members for name in group.topics_of(member)}


def _rebalance_key(group_id: str, member_id: str) -> tuple[str, str]:
    return group_id, f"rebalance {member_id}"
