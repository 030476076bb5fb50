"""Joining, staying in and leaving a streams group: each heartbeat takes a group one step further.

A heartbeat updates its member; the first one brings the topology. If members or topics have changed, the group's epoch
is raised, and the topology configured again. If the target assignment is older than the group, it is computed. Then the
member is reconciled with it. Members that fall silent, or do not let go of tasks in time, are removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import structlog

from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorRecord, CoordinatorResult
from barnabas.broker.coordinator.timers import DecidingTimers
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.intervals import has_passed
from barnabas.broker.group.kind import GroupKind, makes_room
from barnabas.broker.group.of_kind import Surroundings
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.sessions import Sessions
from barnabas.broker.group.streams.configuration import ConfiguredTopology, InternalTopic, configure
from barnabas.broker.group.streams.endpoints import endpoints
from barnabas.broker.group.streams.group import StreamsGroup
from barnabas.broker.group.streams.member import JOINING_EPOCH, LEAVING_EPOCH, MemberState, StreamsMember
from barnabas.broker.group.streams.objections import check_epoch, check_owned, check_request
from barnabas.broker.group.streams.reconciliation import reconcile
from barnabas.broker.group.streams.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    topology_record,
)
from barnabas.broker.group.streams.requests import answer, heartbeat_error, owned_tasks, told_tasks, updated_member
from barnabas.broker.group.streams.settings import OfGroup, StreamsSettings
from barnabas.broker.group.streams.statuses import StatusCode, status
from barnabas.broker.group.streams.target import assign
from barnabas.broker.group.streams.tasks import NO_TASKS, Tasks
from barnabas.broker.group.streams.topology import Topology, topology_in
from barnabas.broker.group.topics import metadata_hash
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

log = structlog.get_logger()


class Answered(NamedTuple):
    response: StreamsGroupHeartbeatResponse
    decision: CoordinatorResult
    missing: Sequence[InternalTopic] = ()
    """Topics of the application that are to be created."""


class StreamsMembership:
    """Decides for the streams groups of one coordinator partition."""

    def __init__(self, around: Surroundings) -> None:
        self._groups = around.groups
        self._settings: StreamsSettings = around.settings
        self._of = OfGroup(around.settings, around.set_for_group)
        self._topics = around.topics
        self._timers = around.timers
        self._carry_out = around.carry_out
        self._now_ms = around.now_ms
        self._deciding = DecidingTimers(around.timers, around.carry_out)
        self._sessions = Sessions(self._deciding, around.now_ms, self._fence_one)
        self._delayed: set[str] = set()  # groups that wait for more members before their first assignment

    # --- heartbeats ---

    def heartbeat(self, request: StreamsGroupHeartbeatRequest, client: ClientInfo) -> Answered:
        """The answer, which counts once what was decided is committed."""
        try:
            check_request(request)
            if request.member_epoch == LEAVING_EPOCH:
                return self._leave(request)
            return self._stay(request, client)
        except Refused as refused:
            # Kafka has no words for what it did not expect.
            text = None if refused.error == ErrorCode.UNKNOWN_SERVER_ERROR else str(refused)
            return Answered(heartbeat_error(refused.error, text), NOTHING_TO_DO)

    def _stay(self, request: StreamsGroupHeartbeatRequest, client: ClientInfo) -> Answered:
        group_id, records, statuses = request.group_id, list[CoordinatorRecord](), list[Status]()
        is_joining = request.member_epoch == JOINING_EPOCH
        group = self._join(group_id, records) if is_joining else self._existing(group_id)
        owned = owned_tasks(request)
        member = self._member(group, request, owned)
        updated = updated_member(member, request, client)
        if updated is not member:
            records.append(member_record(group_id, updated))
        topology = self._topology(group, request, records)
        if group.topology is not None and updated.topology_epoch < topology.epoch:
            detail = f"The member's topology epoch {updated.topology_epoch} is behind the group's, {topology.epoch}."
            statuses.append(status(StatusCode.STALE_TOPOLOGY, detail))

        found, configured = self._configured(group, topology)
        if configured.is_ready:
            check_owned(owned, configured)
        validated = topology.epoch if configured.is_ready else -1
        configs = self._of.assignment_configs(group_id)
        epoch = group.epoch
        if (
            updated is not member
            or found != group.metadata_hash
            or validated != group.validated_topology_epoch
            or configs != group.assignment_configs
        ):
            epoch += 1
            records.append(epoch_record(group_id, epoch, found, validated, configs))

        if group.is_empty:
            self._delay_first_assignment(group_id)
        target_epoch, target = self._target(group, epoch, updated, configured, configs, statuses, records)
        moved = self._reconciled(group, updated, target_epoch, target, owned, records)
        self._watch(group_id, moved.member_id)
        group.configured = configured
        if request.shutdown_application:
            group.ask_for_shutdown(moved.member_id)
        response = answer(
            member_id=moved.member_id,
            member_epoch=moved.epoch,
            heartbeat_interval_ms=self._of.heartbeat_interval_ms(group_id),
        )
        self._tell_tasks(group, member, moved, response, request)
        if configured.problem is not None:
            statuses.append(status(configured.problem.code, configured.problem.detail))
        if group.shutdown_by is not None:
            detail = f"Member {group.shutdown_by} has met a fatal error, and asked to shut the whole application down."
            statuses.append(status(StatusCode.SHUTDOWN_APPLICATION, detail))
        response.status = statuses
        had_changed, group.topics_changed = group.topics_changed, False

        def done(error: ErrorCode) -> None:
            if error:
                group.topics_changed |= had_changed  # the epoch that this led to is not there

        return Answered(response, CoordinatorResult(records, done, key=group_id), configured.missing)

    def _tell_tasks(
        self,
        group: StreamsGroup,
        before: StreamsMember,
        member: StreamsMember,
        response: StreamsGroupHeartbeatResponse,
        request: StreamsGroupHeartbeatRequest,
    ) -> None:
        if request.member_epoch == JOINING_EPOCH or member.assigned != before.assigned:
            response.active_tasks = told_tasks(member.assigned.active)
            response.standby_tasks = told_tasks(member.assigned.standby)
            response.warmup_tasks = told_tasks(member.assigned.warmup)
            if member.endpoint is not None:
                group.endpoint_epoch += 1
        if group.endpoint_epoch != request.endpoint_information_epoch and group.configured is not None:
            others = [each for each in group.members.values() if each.member_id != member.member_id]
            response.partitions_by_user_endpoint = endpoints([*others, member], group.configured, self._count)
        if group.group_id in self._groups:  # what a new one knows is forgotten until its records are replayed
            response.endpoint_information_epoch = group.endpoint_epoch

    def _join(self, group_id: str, records: list[CoordinatorRecord]) -> StreamsGroup:
        """The group, or a new one; in place of an empty classic one, if need be."""
        found = self._groups.get(group_id)
        if isinstance(found, StreamsGroup):
            limit = self._settings.group_streams_max_size
            if len(found.members) >= limit:
                raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group may not have more than {limit} members.")
            return found
        if found is not None:
            if not makes_room(found, GroupKind.STREAMS):
                return self._existing(group_id)
            records += found.tombstones()
        log.info("streams group begins", group=group_id)
        return StreamsGroup(group_id)

    def _existing(self, group_id: str) -> StreamsGroup:
        found = self._groups.get(group_id)
        if isinstance(found, StreamsGroup):
            return found
        reason = "is not a streams group" if found is not None else "not found"
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")

    def _member(self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, owned: Tasks | None) -> StreamsMember:
        member = group.members.get(request.member_id)
        if member is None:
            if request.member_epoch != JOINING_EPOCH:
                raise _unknown(request)
            member = StreamsMember(request.member_id)
        check_epoch(member, request.member_epoch, owned)
        return member

    def _topology(
        self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, records: list[CoordinatorRecord]
    ) -> Topology:
        """The group's topology. The first member brings it; it does not change as long as the group exists."""
        asked = None if request.topology is None else topology_in(request.topology)
        if group.topology is None:
            if asked is None:
                raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "The group has no topology.")
            records.append(topology_record(group.group_id, asked))
            return asked
        if asked is not None and asked.epoch >= group.topology.epoch and not asked.is_same(group.topology):
            raise Refused(ErrorCode.INVALID_REQUEST, "The group has another topology, and it cannot be changed.")
        return group.topology

    def _configured(self, group: StreamsGroup, topology: Topology) -> tuple[int, ConfiguredTopology]:
        """The topology configured for the topics that there are now, and a number that stands for them."""
        configured, found = group.configured, group.metadata_hash
        if configured is not None and not group.topics_changed:
            return found, configured
        found = metadata_hash(topology.required_topics, self._topics)
        if configured is None or found != group.metadata_hash:
            configured = configure(topology, self._count)
            log.info(
                "topology configured",
                group=group.group_id,
                epoch=topology.epoch,
                problem=None if configured.problem is None else configured.problem.detail,
            )
        return found, configured

    def _count(self, topic: str) -> int | None:
        image = self._topics.topic(topic)
        return None if image is None else len(image.partitions)

    # --- assignments ---

    def _target(
        self,
        group: StreamsGroup,
        epoch: int,
        member: StreamsMember,
        configured: ConfiguredTopology,
        configs: Mapping[str, str],
        statuses: list[Status],
        records: list[CoordinatorRecord],
    ) -> tuple[int, Tasks]:
        """The target assignment's epoch, and what it gives this member."""
        if group.group_id in self._delayed:
            detail = "The assignment waits for more members (initial rebalance delay)."
            statuses.append(status(StatusCode.ASSIGNMENT_DELAYED, detail))
            return group.assignment_epoch, NO_TASKS
        if epoch <= group.assignment_epoch:
            return group.assignment_epoch, group.target_of(member.member_id)
        if not self._may_assign(group):
            detail = "The assignment waits until some time has passed since the last (assignment interval)."
            statuses.append(status(StatusCode.ASSIGNMENT_DELAYED, detail))
            return group.assignment_epoch, group.target_of(member.member_id)
        members = {**group.members, member.member_id: member}
        target, changes = assign(group, members, epoch, configured, configs, self._now_ms())
        records += changes
        log.info("target assignment", group=group.group_id, epoch=epoch, members=len(members))
        return epoch, target[member.member_id]

    def _may_assign(self, group: StreamsGroup) -> bool:
        """Whether enough time has passed since the last target."""
        interval_ms = self._of.assignment_interval_ms(group.group_id)
        return has_passed(group.assignment_timestamp, interval_ms, self._now_ms())

    def _delay_first_assignment(self, group_id: str) -> None:
        delay_ms = self._of.initial_rebalance_delay_ms(group_id)
        if delay_ms > 0 and group_id not in self._delayed:
            self._delayed.add(group_id)
            self._timers.schedule(_delay_key(group_id), delay_ms, lambda: self._assign_delayed(group_id))

    def _assign_delayed(self, group_id: str) -> None:
        self._delayed.discard(group_id)
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup) or group.is_empty or group.configured is None:
            return
        if group.epoch > group.assignment_epoch and self._may_assign(group):
            _, records = assign(
                group, group.members, group.epoch, group.configured, group.assignment_configs, self._now_ms()
            )
            self._carry_out(CoordinatorResult(records, key=group_id))

    def _reconciled(
        self,
        group: StreamsGroup,
        member: StreamsMember,
        target_epoch: int,
        target: Tasks,
        owned: Tasks | None,
        records: list[CoordinatorRecord],
    ) -> StreamsMember:
        moved = reconcile(member, target_epoch, target, group, owned)
        if moved == member:
            return member
        records.append(current_record(group.group_id, moved))
        if moved.state is MemberState.UNREVOKED_TASKS:
            self._await_revocation(group.group_id, moved)
        return moved

    # --- leaving ---

    def _leave(self, request: StreamsGroupHeartbeatRequest) -> Answered:
        group = self._existing(request.group_id)
        if request.shutdown_application:
            group.ask_for_shutdown(request.member_id)
        if request.member_id not in group.members:
            raise _unknown(request)
        response = answer(member_id=request.member_id, member_epoch=request.member_epoch)
        return Answered(response, self._fence(group, request.member_id, "it left"))

    def _fence(self, group: StreamsGroup, member_id: str, reason: str) -> CoordinatorResult:
        group_id = group.group_id
        log.info("member is gone", group=group_id, member=member_id, reason=reason)
        epoch = epoch_record(
            group_id, group.epoch + 1, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs
        )
        return CoordinatorResult([*member_tombstones(group_id, member_id), epoch], key=group_id)

    # --- time ---

    def _watch(self, group_id: str, member_id: str) -> None:
        """A member has been heard."""
        self._sessions.watch(group_id, member_id, self._of.session_timeout_ms(group_id))

    def _await_revocation(self, group_id: str, member: StreamsMember) -> None:
        member_id, epoch = member.member_id, member.epoch

        def elapsed() -> CoordinatorResult:
            group = self._groups.get(group_id)
            found = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
            if found is None or found.epoch != epoch or found.state is not MemberState.UNREVOKED_TASKS:
                return NOTHING_TO_DO
            return self._fence_one(group_id, member_id, "it did not let go of tasks in time")

        self._deciding.schedule(_rebalance_key(group_id, member_id), member.rebalance_timeout_ms, elapsed)

    def _fence_one(self, group_id: str, member_id: str, reason: str) -> CoordinatorResult:
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup) or member_id not in group.members:
            return NOTHING_TO_DO
        return self._fence(group, member_id, reason)

    def forget_member(self, group_id: str, member_id: str) -> None:
        self._sessions.forget(group_id, member_id)
        self._timers.cancel(_rebalance_key(group_id, member_id))

    def forget(self, group: StreamsGroup) -> None:
        """A group is gone: cancel its timers."""
        self._delayed.discard(group.group_id)
        self._timers.cancel(_delay_key(group.group_id))
        for member_id in group.members:
            self.forget_member(group.group_id, member_id)

    def watch_all(self) -> None:
        """Start every member's session timeout now, after the groups were loaded."""
        for group in self._groups.values():
            if isinstance(group, StreamsGroup):
                for member in group.members.values():
                    self._watch(group.group_id, member.member_id)
                    if member.state is MemberState.UNREVOKED_TASKS:
                        self._await_revocation(group.group_id, member)

    def topics_changed(self, names: Collection[str]) -> None:
        """Groups that need these topics are configured again, if it makes a difference, with their next heartbeat."""
        for group in self._groups.values():
            if isinstance(group, StreamsGroup) and group.needs(names):
                group.topics_changed = True

    def heard_at_ms(self, group_id: str, member_id: str) -> int | None:
        return self._sessions.heard_at_ms(group_id, member_id)


def _unknown(request: StreamsGroupHeartbeatRequest) -> Refused:
    return Refused(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {request.member_id} is not a member of group {request.group_id}."
    )


# Keys of timers beside those of sessions, (group, member). Clients choose the ids of members: no id can be such a key.


def _rebalance_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return group_id, "rebalance", member_id


def _delay_key(group_id: str) -> tuple[str, str, str]:
    return group_id, "initial delay", ""
