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
from barnabas.broker.coordinator.timers import DecidingTimers, Timers
from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.responses import refuse_waiting
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.group.consumer.member import AWAY_EPOCH, JOINING_EPOCH, LEAVING_EPOCH, ConsumerMember, MemberState
from barnabas.broker.group.consumer.migration import check_upgrade, downgraded, upgraded
from barnabas.broker.group.consumer.objections import check_epoch, check_request, check_static
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
from barnabas.broker.group.consumer.regex_lookups import RegexLookups
from barnabas.broker.group.consumer.regexes import MayDescribe, RegexChange, changed_regex
from barnabas.broker.group.consumer.replay import applied
from barnabas.broker.group.consumer.requests import (
    assignment_of,
    check_state,
    has_other_partitions,
    heartbeat_error,
    is_full,
    owned_partitions,
    updated_member,
)
from barnabas.broker.group.consumer.settings import ConsumerSettings, GroupTimes, may_downgrade
from barnabas.broker.group.consumer.story import Stories
from barnabas.broker.group.consumer.target import assign, subscription_type
from barnabas.broker.group.intervals import has_passed
from barnabas.broker.group.kind import AnyGroup, GroupKind, makes_room
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.sessions import Sessions
from barnabas.broker.group.topics import Topics, ids_of, metadata_hash
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.leave_group import MemberIdentity

log = structlog.get_logger()

# Takes over a group that has become a classic one: what removes its records of before, and why it rebalances, if so.
Adopt = Callable[[Group, Sequence[CoordinatorRecord], str | None], CoordinatorResult]
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
        adopt: Adopt,
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
        self._deciding = DecidingTimers(timers, carry_out)
        self._adopt = adopt
        self._now_ms = now_ms
        self._new_id = new_id
        self._sessions = Sessions(self._deciding, now_ms, self.fence_one)
        self.stories = Stories()
        self._lookups = RegexLookups(groups, topics, timers, carry_out, now_ms, self.stories)

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
        records: list[CoordinatorRecord] = []
        is_joining = request.member_epoch == JOINING_EPOCH
        group = self._join(request.group_id, records) if is_joining else self._existing(request.group_id)
        self.check_size(group, request.member_id)
        owned = owned_partitions(request)
        member, replaced = self._member(group, request, owned, records)
        updated, decision = self.advance(
            group, member, updated_member(member, request, client), replaced, owned, may_describe, records
        )
        decision = self._watching(decision, updated.member_id)
        if isinstance(self._groups.get(group.group_id), Group):
            decision = self._watching_classic_members(decision)
        response = ConsumerGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.epoch,
            heartbeat_interval_ms=self._times.heartbeat_interval_ms(group.group_id),
        )
        if is_joining or is_full(request) or has_other_partitions(updated, member):
            response.assignment = assignment_of(updated)
        return response, decision

    def advance(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        updated: ConsumerMember,
        replaced: str | None,
        owned: Owned,
        may_describe: MayDescribe,
        records: list[CoordinatorRecord],
    ) -> tuple[ConsumerMember, CoordinatorResult]:
        """Take the group one step further with an update of one of its members, and the member, too.

        `replaced` is the id under which a static member was known before. `records` are those that come first.
        """
        now_ms = self._now_ms()
        if updated is not member:
            records.append(member_record(group.group_id, updated))
        names_changed = updated.topics != member.topics
        regex_change = changed_regex(group, member, updated, records)
        refresh_interval_ms = self._settings.group_consumer_regex_refresh_interval_ms
        self._lookups.begin_if_due(group, member, updated, may_describe, refresh_interval_ms)
        subscription_changed = names_changed or regex_change is not RegexChange.NONE

        epoch = group.epoch
        bump = names_changed or regex_change is RegexChange.UPDATED_AND_RESOLVED
        looks_again = bump or group.topics_changed
        if looks_again:
            if group.regexes:
                names = group.topics_of_all(group.members_after(updated, replaced).values())
            else:
                names = group.topics_after(member, updated)
            found = metadata_hash(names, self._topics)
            if bump or found != group.metadata_hash:
                epoch += 1
                records.append(epoch_record(group.group_id, epoch, found))
                self.stories.begin(now_ms, group, epoch, (updated,), _why(member, updated, bump))
            if group.has_partition_metadata:
                records.append(partition_metadata_tombstone(group.group_id))
        target_epoch, target = self._target(group, epoch, updated, replaced, looks_again, now_ms, records)
        moved = self._reconciled(group, updated, target_epoch, target, owned, subscription_changed, records)
        had_changed, group.topics_changed = group.topics_changed, False

        def done(error: ErrorCode) -> None:
            if error:
                group.topics_changed |= had_changed  # the epoch that this led to is not there

        return moved, CoordinatorResult(records, done, key=group.group_id)

    def _join(self, group_id: str, records: list[CoordinatorRecord]) -> ConsumerGroup:
        """The group, or a new one; in place of an empty one of another kind, if need be."""
        found = self._groups.get(group_id)
        if isinstance(found, ConsumerGroup):
            return found
        if isinstance(found, Group) and not found.is_empty:
            return self._upgraded(found, records)
        if found is not None:
            if not makes_room(found, GroupKind.CONSUMER):
                return self._existing(group_id)
            records += found.tombstones()
        log.info("consumer group begins", group=group_id)
        return ConsumerGroup(group_id)

    def _upgraded(self, classic: Group, records: list[CoordinatorRecord]) -> ConsumerGroup:
        """A classic group with members becomes a consumer group. Whoever waits in it has to join again."""
        check_upgrade(classic, self._settings)
        changes = upgraded(classic, self._topics)
        refuse_waiting(classic, ErrorCode.REBALANCE_IN_PROGRESS)
        records += classic.tombstones()
        records += changes
        log.info("classic group becomes a consumer group", group=classic.group_id)
        return applied(ConsumerGroup(classic.group_id), changes)

    def _existing(self, group_id: str) -> ConsumerGroup:
        found = self._groups.get(group_id)
        if isinstance(found, ConsumerGroup):
            return found
        reason = "is not a consumer group" if found is not None else "not found"
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")

    def check_size(self, group: ConsumerGroup, member_id: str) -> None:
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
            check_state(member, owned)
            return member, None
        known = group.static_member(instance_id)
        if not is_joining:
            member = check_static(known, member_id, instance_id)
            check_epoch(member, request.member_epoch, owned)
            check_state(member, owned)
            return member, None
        if known is None:
            return group.members.get(member_id) or ConsumerMember(member_id), None
        if known.epoch != AWAY_EPOCH and known.classic is None:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Member {member_id} cannot join: instance id {instance_id} belongs to member {known.member_id}.",
            )
        return replaced_static(group, known, member_id, records), known.member_id

    def _target(
        self,
        group: ConsumerGroup,
        epoch: int,
        updated: ConsumerMember,
        replaced: str | None,
        looks_again: bool,
        now_ms: int,
        records: list[CoordinatorRecord],
    ) -> tuple[int, Target]:
        """The target assignment's epoch, and what it gives this member."""
        if epoch <= group.assignment_epoch:
            return group.assignment_epoch, group.target_of(updated)
        if not has_passed(group.assignment_timestamp, self._times.assignment_interval_ms(group.group_id), now_ms):
            return group.assignment_epoch, group.target_of(updated)
        members = group.members_after(updated, replaced)
        default = self._settings.group_consumer_assignors[0]
        # As in Kafka, a new member that reads nothing changes nothing about what the others read.
        reads = subscription_type((members if looks_again else group.members).values())
        target, changes = assign(group, members, reads, epoch, self._topics, default, now_ms)
        records += changes
        log.info("target assignment", group=group.group_id, epoch=epoch, members=len(members))
        self.stories.assigned(
            now_ms, group, epoch, members, target, group.preferred_assignor(members.values(), default)
        )
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
        self.stories.moved(self._now_ms(), group.group_id, member, moved, target_epoch)
        if moved.state is MemberState.UNREVOKED_PARTITIONS and moved.classic is None:
            self._await_revocation(group.group_id, moved)
        return moved

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
                # Its next self may commit for them in any epoch.
                kept = {topic_id: dict.fromkeys(indexes, 0) for topic_id, indexes in member.assigned.items()}
                away = replace(member, epoch=AWAY_EPOCH, assigned=kept, revoking={})
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
        for member in gone:
            log.info("member is gone", group=group_id, member=member.member_id, reason=reason)
        if left and self.is_downgraded_to(left):
            return self.downgrade(group, left, group.epoch, "its last member of the consumer protocol is gone")
        records = [record for member in gone for record in member_tombstones(group_id, member.member_id)]
        still_wanted = {member.regex for member in left}
        for regex in dict.fromkeys(member.regex for member in gone):
            if regex and regex not in still_wanted:
                records.append(regex_tombstone(group_id, regex))
        found = metadata_hash(group.topics_of_all(left), self._topics)
        records.append(epoch_record(group_id, group.epoch + 1, found))
        self.stories.gone(self._now_ms(), group, gone, {each.member_id: each for each in left}, reason)
        return CoordinatorResult(records, key=group_id)

    # --- back to the classic protocol ---

    def is_downgraded_to(self, left: Collection[ConsumerMember]) -> bool:
        """Whether a group with these members, and no others, becomes a classic one."""
        return (
            all(member.classic is not None for member in left)
            and may_downgrade(self._settings)
            and len(left) <= self._settings.group_max_size
        )

    def downgrade(
        self, group: ConsumerGroup, left: Collection[ConsumerMember], epoch: int, rebalance: str | None
    ) -> CoordinatorResult:
        """Go on as a classic group; with a reason for it, by a rebalance."""
        classic = downgraded(group, left, epoch, self._topics, self._now_ms())
        log.info("consumer group becomes a classic group", group=group.group_id)
        return self._adopt(classic, group.tombstones(), rebalance)

    # --- time ---

    def watch(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """A member has been heard."""
        self._sessions.watch(group_id, member_id, timeout_ms)

    def _await_revocation(self, group_id: str, member: ConsumerMember) -> None:
        member_id, epoch = member.member_id, member.epoch

        def elapsed() -> CoordinatorResult:
            group = self._groups.get(group_id)
            found = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
            if found is None or found.epoch != epoch or found.state is not MemberState.UNREVOKED_PARTITIONS:
                return NOTHING_TO_DO
            return self.fence_one(group_id, member_id, "it did not let go of partitions in time")

        self._deciding.schedule(_rebalance_key(group_id, member_id), member.rebalance_timeout_ms, elapsed)

    def remove_after(self, key: tuple[str, str, str], group: ConsumerGroup, member: ConsumerMember, why: str) -> None:
        """Remove a member unless the timer with this key is cancelled within the member's rebalance timeout."""
        group_id, member_id = group.group_id, member.member_id
        self._deciding.schedule(key, member.rebalance_timeout_ms, lambda: self.fence_one(group_id, member_id, why))

    def fence_one(self, group_id: str, member_id: str, reason: str) -> CoordinatorResult:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if not isinstance(group, ConsumerGroup) or member is None:
            return NOTHING_TO_DO
        return self._fence(group, [member], reason)

    def forget_member(self, group_id: str, member_id: str) -> None:
        self._sessions.forget(group_id, member_id)
        for key in (_rebalance_key(group_id, member_id), join_key(group_id, member_id), sync_key(group_id, member_id)):
            self._timers.cancel(key)

    def forget(self, group: ConsumerGroup) -> None:
        """A group is gone: cancel its timers."""
        for member_id in group.members:
            self.forget_member(group.group_id, member_id)
        self.stories.forget(group.group_id)

    def watch_all(self) -> None:
        """Start every member's session timeout now, after the groups were loaded; their topics may have changed."""
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup):
                group.topics_changed = True
                self._watch_classic_members(group)
                for member in group.members.values():
                    if member.classic is None:
                        self.watch(group.group_id, member.member_id, self._times.session_timeout_ms(group.group_id))
                    if member.state is MemberState.UNREVOKED_PARTITIONS:
                        self._await_revocation(group.group_id, member)

    def _watching(self, heartbeat: CoordinatorResult, member_id: str) -> CoordinatorResult:
        """A member is watched from then on when it is there. Not before: a static member that is back under its own id
        is first removed, and its session forgotten. And also after an error: it may be there nevertheless."""

        def done(error: ErrorCode) -> None:
            heartbeat.done(error)
            self.watch(heartbeat.key, member_id, self._times.session_timeout_ms(heartbeat.key))

        return heartbeat._replace(done=done)

    def _watching_classic_members(self, upgrade: CoordinatorResult) -> CoordinatorResult:
        """Once a classic group has become a consumer group, its members are watched here."""

        def done(error: ErrorCode) -> None:
            upgrade.done(error)
            group = self._groups.get(upgrade.key)
            if isinstance(group, ConsumerGroup):  # otherwise this was not written
                self._watch_classic_members(group)

        return upgrade._replace(done=done)

    def _watch_classic_members(self, group: ConsumerGroup) -> None:
        for member in group.members.values():
            if member.classic is not None:
                self.watch(group.group_id, member.member_id, member.classic.session_timeout_ms)

    def topics_changed(self, names: Collection[str], are_new: bool) -> None:
        """Groups that read these topics are assigned again, if it makes a difference, with their next heartbeat."""
        if are_new:
            self._lookups.topics_created()
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup) and not group.subscribed_topics().isdisjoint(names):
                group.topics_changed = True

    def heard_at_ms(self, group_id: str, member_id: str) -> int | None:
        return self._sessions.heard_at_ms(group_id, member_id)


def _why(member: ConsumerMember, updated: ConsumerMember, bump: bool) -> str:
    if not bump:
        return "topics that it reads have changed"
    who = updated.member_id
    is_new = not member.topics and not member.regex
    return f"a member joined: {who}" if is_new else f"a member reads other topics now: {who}"


# Keys of timers beside those of sessions, (group, member). Clients choose the ids of members: no id can be such a key.


def _rebalance_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return group_id, "rebalance", member_id


def join_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Of the timer of a member of the classic protocol that has to join again."""
    return group_id, "join", member_id


def sync_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Of the timer of a member of the classic protocol that has joined and has to sync."""
    return group_id, "sync", member_id


def replaced_static(
    group: ConsumerGroup, known: ConsumerMember, member_id: str, records: list[CoordinatorRecord]
) -> ConsumerMember:
    """A static member is back under another id, and has what it had."""
    member = replace(known, member_id=member_id, epoch=0, previous_epoch=0)
    records += member_tombstones(group.group_id, known.member_id)
    records.append(member_record(group.group_id, member))
    records.append(target_record(group.group_id, member_id, group.target_of(known)))
    records.append(current_record(group.group_id, member))
    log.info("static member is back", group=group.group_id, member=member_id, replaces=known.member_id)
    return member
