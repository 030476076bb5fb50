"""The groups of one partition of __consumer_offsets: their members, their offsets, and queries about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorRecord, CoordinatorResult, ProducerIdAndEpoch
from barnabas.broker.coordinator.timers import Timers
from barnabas.broker.coordinator.transactional import InTransaction, TransactionEnd
from barnabas.broker.group.group import Group
from barnabas.broker.group.member import Member
from barnabas.broker.group.membership import Membership
from barnabas.broker.group.objections import GroupSettings, objection_to_commit, objection_to_transactional_commit
from barnabas.broker.group.offsets import Offsets
from barnabas.broker.group.records import (
    CommittedOffset,
    group_tombstone,
    offset_record,
    read_group,
    read_key,
    read_offset,
)
from barnabas.broker.group.states import GroupState
from barnabas.broker.group.subscription import subscribed_topics
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from barnabas.protocol.messages.list_groups import ListedGroup
from barnabas.protocol.topic_partition import TopicPartition

# A record, read: what it is about, and what it says.
ReadRecord = tuple[OffsetCommitKey | GroupMetadataKey, CommittedOffset | GroupMetadataValue | None]


def read_record(record: CoordinatorRecord) -> ReadRecord | None:
    """Decode a record; None for an unknown kind. Touches no state, so any thread may do it."""
    key = read_key(record.key)
    if key is None:
        return None
    if record.value is None:
        return key, None
    return key, read_offset(record.value) if isinstance(key, OffsetCommitKey) else read_group(record.value)


class GroupShard:
    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        carry_out: Callable[[CoordinatorResult], None],
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.membership = Membership(self.groups, settings, timers, carry_out, now_ms, new_id)
        self._timers = timers
        self._now_ms = now_ms
        self._is_loaded = False

    # --- durable state ---

    def replay(self, read: ReadRecord | InTransaction | TransactionEnd) -> None:
        if isinstance(read, TransactionEnd):
            self.offsets.end_transaction(*read)
        elif isinstance(read, InTransaction):
            self._replay(read.read, read.producer_id)
        else:
            self._replay(read)

    def _replay(self, read: ReadRecord, producer_id: int | None = None) -> None:
        key, value = read
        if isinstance(key, OffsetCommitKey):
            if value is not None and key.group not in self.groups:
                # From a consumer that assigns its own partitions: a group without members.
                self.groups[key.group] = Group(key.group, self._now_ms())
            self.offsets.replay(key.group, TopicPartition(key.topic, key.partition), value, producer_id)  # type: ignore[arg-type]
        elif isinstance(value, GroupMetadataValue):
            self._replay_group(key.group, value)
        else:
            group = self.groups.pop(key.group, None)
            if group is not None:
                self.membership.forget(group)

    def _replay_group(self, group_id: str, value: GroupMetadataValue) -> None:
        """For a live group, this brings the assignments; for one that is being loaded, everything."""
        if not self._is_loaded:
            self.groups[group_id] = _load(group_id, value)
            return
        members = self.groups[group_id].members
        for found in value.members:
            if found.member_id in members:
                members[found.member_id].assignment = found.assignment

    def loaded(self) -> None:
        """All records have been replayed: from now on members must send heartbeats."""
        self._is_loaded = True
        self.membership.watch_all()

    def unloaded(self) -> None:
        self._timers.close()
        self.membership.abandon()

    # --- offsets ---

    def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: Sequence[tuple[TopicPartition, CommittedOffset]],
        done: Callable[[ErrorCode], None],
    ) -> CoordinatorResult:
        group = self.groups.get(group_id)
        error = objection_to_commit(group, member_id, instance_id, generation)
        if error:
            return CoordinatorResult(done=done, error=error, key=group_id)
        if group is not None and member_id in group.members:
            self.membership.heard(group, group.members[member_id])
        return _commit(group_id, offsets, done)

    def commit_in_transaction(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        producer: ProducerIdAndEpoch,
        offsets: Sequence[tuple[TopicPartition, CommittedOffset]],
        done: Callable[[ErrorCode], None],
    ) -> CoordinatorResult:
        """These become valid when the producer's transaction is committed, which has been verified before."""
        error = objection_to_transactional_commit(self.groups.get(group_id), member_id, instance_id, generation)
        if error:
            return CoordinatorResult(done=done, error=error, key=group_id)
        return _commit(group_id, offsets, done)._replace(producer=producer)

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode], CoordinatorResult]:
        """Delete offsets of partitions that the group does not read. Returns one error for the whole and one each."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND, {}, NOTHING_TO_DO
        read: Collection[str] | None = ()
        if not group.is_in(GroupState.EMPTY):
            if group.protocol_type != "consumer":
                return ErrorCode.NON_EMPTY_GROUP, {}, NOTHING_TO_DO
            read = subscribed_topics(group)
        errors = {
            partition: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            if read is None or partition[0] in read  # consumers that do not say what they read might read anything
            else ErrorCode.NONE
            for partition in partitions
        }
        deleted = [partition for partition, error in errors.items() if not error]
        return ErrorCode.NONE, errors, CoordinatorResult(self.offsets.tombstones(group_id, deleted), key=group_id)

    def forget_topics(self, topics: Collection[str]) -> Sequence[CoordinatorRecord]:
        """Tombstones for all offsets of deleted topics."""
        return self.offsets.of_topics(topics)

    def expire(self, group_id: str, kept_ms: int) -> Sequence[CoordinatorRecord]:
        """Tombstones for a group's expired offsets, and for the group if nothing is left."""
        group = self.groups[group_id]
        expired = self.offsets.expired(group, self._now_ms(), kept_ms)
        records = self.offsets.tombstones(group_id, expired)
        all_expired = len(expired) == len(self.offsets.of_group(group_id))
        all_expired = all_expired and not self.offsets.pending.of_group(group_id)
        if all_expired and group.is_in(GroupState.EMPTY) and not group.pending_members:
            records.append(group_tombstone(group_id))
        return records

    # --- groups ---

    def describe(self, group_id: str) -> DescribedGroup | None:
        group = self.groups.get(group_id)
        if group is None:
            return None
        stable = group.is_in(GroupState.STABLE)
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol or "") if stable else "",
            members=[_describe(member, group.protocol if stable else None) for member in group.members.values()],
        )

    def delete_group(self, group_id: str, done: Callable[[ErrorCode], None]) -> CoordinatorResult:
        group = self.groups.get(group_id)
        if group is None or not group.is_in(GroupState.EMPTY):
            error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else ErrorCode.NON_EMPTY_GROUP
            return CoordinatorResult(done=done, error=error, key=group_id)
        known = dict.fromkeys([*self.offsets.of_group(group_id), *self.offsets.pending.of_group(group_id)])
        offsets = self.offsets.tombstones(group_id, known)
        return CoordinatorResult([*offsets, group_tombstone(group_id)], done, key=group_id)


def listing(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type="classic",
    )


def _commit(
    group_id: str, offsets: Sequence[tuple[TopicPartition, CommittedOffset]], done: Callable[[ErrorCode], None]
) -> CoordinatorResult:
    records = [offset_record(group_id, *partition, offset) for partition, offset in offsets]

    def committed(error: ErrorCode) -> None:
        done(ErrorCode.INVALID_COMMIT_OFFSET_SIZE if error == ErrorCode.MESSAGE_TOO_LARGE else error)

    return CoordinatorResult(records, committed, key=group_id)


def _load(group_id: str, value: GroupMetadataValue) -> Group:
    group = Group(group_id, value.current_state_timestamp)
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    for found in {member.member_id: member for member in value.members}.values():
        group.add(
            Member(
                found.member_id,
                group_instance_id=found.group_instance_id,
                client_id=found.client_id,
                client_host=found.client_host,
                # The first version of this record had no rebalance timeout.
                rebalance_timeout_ms=max(found.rebalance_timeout, 0) or found.session_timeout,
                session_timeout_ms=found.session_timeout,
                protocol_type=value.protocol_type,
                protocols=[(value.protocol or "", found.subscription)],
                assignment=found.assignment,
            )
        )
    if value.leader in group.members:
        group.leader_id = value.leader
    if group.members:
        group.state = GroupState.STABLE
    return group


def _describe(member: Member, protocol: str | None) -> DescribedGroupMember:
    """Only a stable group shows subscriptions: before that, the protocol is not decided."""
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=member.assignment,
    )
