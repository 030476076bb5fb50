"""The groups of one partition of __consumer_offsets: their offsets, and the state machine of each kind of group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from barnabas.broker.background import Background
from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorRecord, CoordinatorResult, ProducerIdAndEpoch
from barnabas.broker.coordinator.timers import Timers
from barnabas.broker.coordinator.transactional import InTransaction, TransactionEnd
from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.kind import ClassicGroups
from barnabas.broker.group.classic.member import AnswerJoin, AnswerSync
from barnabas.broker.group.classic.objections import GroupSettings as ClassicSettings
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.consumer.kind import ConsumerGroups
from barnabas.broker.group.consumer.settings import ConsumerSettings
from barnabas.broker.group.kind import AnyGroup, Committer, GroupKind, makes_room
from barnabas.broker.group.of_kind import GroupsOfKind, Surroundings
from barnabas.broker.group.offsets import Offsets
from barnabas.broker.group.records import CommittedOffset, ReadRecord, offset_record
from barnabas.broker.group.share.kind import ShareGroups
from barnabas.broker.group.share.settings import ShareSettings
from barnabas.broker.group.streams.kind import StreamsGroups
from barnabas.broker.group.streams.settings import StreamsSettings
from barnabas.broker.group.topics import Topics
from barnabas.broker.share.persister import ShareState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.group_records import OffsetCommitKey
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.topic_partition import TopicPartition

_KNOWS_GROUPS_FROM: Final = 9  # version of OffsetCommit whose clients hear that a group is not there


class GroupSettings(ClassicSettings, ConsumerSettings, ShareSettings, StreamsSettings, Protocol): ...


class GroupShard:
    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        carry_out: Callable[[CoordinatorResult], None],
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        topics: Topics,
        set_for_group: Callable[[str], Mapping[str, str]],
        share_state: ShareState,
        background: Background,
    ) -> None:
        """`set_for_group` gives the settings that were set for a group."""
        self.groups: dict[str, AnyGroup] = {}
        self.offsets = Offsets()
        around = Surroundings(self.groups, settings, set_for_group, topics, timers, carry_out, now_ms, new_id)
        classic = ClassicGroups(around)
        consumers = ConsumerGroups(around, classic.membership.adopt)
        streams = StreamsGroups(around)
        self.membership = classic.membership
        self.consumers = consumers.membership
        self.streams = streams.membership
        self.shares = ShareGroups(around, share_state, background)
        kinds: tuple[GroupsOfKind, ...] = (classic, consumers, self.shares, streams)
        self._kinds = {each.kind: each for each in kinds}
        self._replays = {key: each.replay for each in self._kinds.values() for key in each.keys}
        self._timers = timers
        self._carry_out = carry_out
        self._now_ms = now_ms

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
            self.offsets.replay(key.group, TopicPartition(key.topic, key.partition), value, producer_id)
        else:
            self._replays[type(key)](key, value)

    def loaded(self) -> None:
        """All records have been replayed: from now on members must send heartbeats."""
        for each in self._kinds.values():
            each.loaded()

    def unloaded(self) -> None:
        self._timers.close()
        for each in self._kinds.values():
            each.unloaded()

    def topics_changed(self, names: Collection[str], are_new: bool) -> None:
        """Groups that read these topics may have to be assigned again."""
        for each in self._kinds.values():
            each.topics_changed(names, are_new)

    # --- members of the classic protocol, in a group of any kind ---

    def join(self, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin) -> CoordinatorResult:
        group = self.groups.get(request.group_id)
        if group is not None and makes_room(group, GroupKind.CLASSIC):
            return self.membership.join(request, client, answer)
        return self._of(request.group_id).join(request, client, answer)

    def sync(self, request: SyncGroupRequest, answer: AnswerSync) -> CoordinatorResult:
        return self._of(request.group_id).sync(request, answer)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        return self._of(request.group_id).heartbeat(request)

    def leave(self, request: LeaveGroupRequest, version: int) -> tuple[LeaveGroupResponse, CoordinatorResult]:
        return self._of(request.group_id).leave(request, version)

    def _of(self, group_id: str) -> GroupsOfKind:
        """Whom a member of the classic protocol speaks to."""
        group = self.groups.get(group_id)
        return self._kinds[GroupKind.CLASSIC if group is None else group.kind]

    # --- offsets ---

    def commit(
        self,
        group_id: str,
        by: Committer,
        offsets: Sequence[tuple[TopicPartition, CommittedOffset]],
        done: Callable[[ErrorCode], None],
        producer: ProducerIdAndEpoch | None = None,
    ) -> CoordinatorResult:
        """With a producer, these become valid when its transaction is committed, which has been verified before."""
        group = self.groups.get(group_id)
        error = _without_group(by) if group is None else group.objection_to_commit(by, offsets)
        if error:
            return CoordinatorResult(done=done, error=error, key=group_id)
        if group is not None and producer is None:
            group.heard_from(by.member_id, self._now_ms(), self._timers.elapsed_ms())
        return _commit(group_id, offsets, done)._replace(producer=producer)

    def objection_to_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Why a client may not read a group's offsets."""
        group = self.groups.get(group_id)
        return ErrorCode.NONE if group is None else group.objection_to_fetch(member_id, epoch)

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode], CoordinatorResult]:
        """Delete offsets of partitions that the group does not read. Returns one error for the whole and one each."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND, {}, NOTHING_TO_DO
        error = group.objection_to_deleting_offsets()
        if error:
            return error, {}, NOTHING_TO_DO
        read = group.read_topics()
        errors = {
            partition: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            if read is None or partition[0] in read  # consumers that do not say what they read might read anything
            else ErrorCode.NONE
            for partition in partitions
        }
        deleted = [partition for partition, error in errors.items() if not error]
        return ErrorCode.NONE, errors, CoordinatorResult(self.offsets.tombstones(group_id, deleted), key=group_id)

    def forget_topics(self, topics: Mapping[str, bytes]) -> Sequence[CoordinatorRecord]:
        """Tombstones for all offsets of deleted topics, and what else groups know of them; by name, with their ids."""
        others = [record for each in self._kinds.values() for record in each.topics_deleted(topics.values())]
        return [*self.offsets.of_topics(topics), *others]

    def expire(self, group_id: str, kept_ms: int) -> Sequence[CoordinatorRecord]:
        """Tombstones for a group's expired offsets, and for the group if nothing is left."""
        group = self.groups[group_id]
        expired = self.offsets.expired(group, self._now_ms(), kept_ms)
        records = self.offsets.tombstones(group_id, expired)
        all_expired = len(expired) == len(self.offsets.of_group(group_id))
        all_expired = all_expired and not self.offsets.pending.of_group(group_id)
        if all_expired and group.is_forgettable:
            records += group.tombstones()
        return records

    # --- groups ---

    def delete_group(self, group_id: str, done: Callable[[ErrorCode], None]) -> CoordinatorResult:
        group = self.groups.get(group_id)
        if group is None or not group.is_empty:
            error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else ErrorCode.NON_EMPTY_GROUP
            return CoordinatorResult(done=done, error=error, key=group_id)

        def go_on(error: ErrorCode) -> None:
            if error:
                done(error)
            else:
                self._carry_out(self._delete(group_id, done))

        return self._kinds[group.kind].prepare_deletion(group, go_on) or self._delete(group_id, done)

    def _delete(self, group_id: str, done: Callable[[ErrorCode], None]) -> CoordinatorResult:
        group = self.groups.get(group_id)
        if group is None or not group.is_empty:  # not any more, perhaps
            error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else ErrorCode.NON_EMPTY_GROUP
            return CoordinatorResult(done=done, error=error, key=group_id)
        known = dict.fromkeys([*self.offsets.of_group(group_id), *self.offsets.pending.of_group(group_id)])
        offsets = self.offsets.tombstones(group_id, known)
        return CoordinatorResult([*offsets, *group.tombstones()], done, key=group_id)


def _without_group(by: Committer) -> ErrorCode:
    """An administrator, or a consumer that assigns its own partitions, may commit to a group that is not there yet."""
    if by.epoch < 0:
        return ErrorCode.NONE
    if by.in_transaction or 0 <= by.version < _KNOWS_GROUPS_FROM:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.GROUP_ID_NOT_FOUND


def _commit(
    group_id: str, offsets: Sequence[tuple[TopicPartition, CommittedOffset]], done: Callable[[ErrorCode], None]
) -> CoordinatorResult:
    records = [offset_record(group_id, *partition, offset) for partition, offset in offsets]

    def committed(error: ErrorCode) -> None:
        done(ErrorCode.INVALID_COMMIT_OFFSET_SIZE if error == ErrorCode.MESSAGE_TOO_LARGE else error)

    return CoordinatorResult(records, committed, key=group_id)
