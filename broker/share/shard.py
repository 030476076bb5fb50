"""The share partitions of one partition of __share_group_state: what may be written and read. Pure decisions.

A share partition is written as a snapshot, followed by updates of it; after a number of updates the next write is a
snapshot again. Everything before the oldest snapshot that counts may be deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from barnabas.broker.coordinator.at_offset import AtOffset
from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.records import ReadRecord, Snapshot, Update, snapshot_record, tombstone, update_record
from barnabas.broker.share.state_batches import StateBatch, combined
from barnabas.protocol.errors import ErrorCode

_NONE: Final = -1

NEGATIVE_PARTITION: Final = "A partition cannot be negative."
WRITE_UNINITIALIZED: Final = "A share partition must be initialized before it is written."
READ_UNINITIALIZED: Final = "A share partition must be initialized before it is read."


class Refusal(NamedTuple):
    error: ErrorCode
    message: str | None = None  # None is the error's own text


class Write(NamedTuple):
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class _Kept:
    """What is known of a share partition. Epochs are the highest seen, which a later snapshot may have lowered."""

    __slots__ = ("leader_epoch", "snapshot", "snapshot_offset", "state_epoch", "updates")

    def __init__(self, snapshot: Snapshot, offset: int) -> None:
        self.snapshot = snapshot
        self.leader_epoch = snapshot.leader_epoch
        self.state_epoch = snapshot.state_epoch
        self.updates = 0  # since the last snapshot that was due
        self.snapshot_offset = offset


class ShareShard:
    def __init__(
        self,
        updates_per_snapshot: Callable[[], int],
        partition_count: Callable[[bytes], int],
        now_ms: Callable[[], int],
    ) -> None:
        """`partition_count` is how many partitions the topic with an id has; 0 if there is none."""
        self._updates_per_snapshot = updates_per_snapshot
        self._partition_count = partition_count
        self._now_ms = now_ms
        self._kept: dict[SharePartitionKey, _Kept] = {}

    @property
    def keys(self) -> Collection[SharePartitionKey]:
        return self._kept.keys()

    def snapshot(self, key: SharePartitionKey) -> Snapshot | None:
        """The state of a share partition, with all updates."""
        kept = self._kept.get(key)
        return None if kept is None else kept.snapshot

    # --- requests ---

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Refusal | CoordinatorRecord:
        kept = self._kept.get(key)
        if key.partition < 0:
            return Refusal(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if kept is not None and _NONE != state_epoch < kept.state_epoch:
            return Refusal(ErrorCode.FENCED_STATE_EPOCH)
        if self._is_unknown(key):
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        now_ms = self._now_ms()
        epoch = 0 if kept is None else kept.snapshot.snapshot_epoch + 1
        completed = _NONE if start_offset == _NONE else 0
        return snapshot_record(key, Snapshot(epoch, state_epoch, 0, start_offset, completed, now_ms, now_ms))

    def write(self, key: SharePartitionKey, write: Write) -> Refusal | CoordinatorRecord:
        kept = self._kept.get(key)
        if key.partition < 0:
            return Refusal(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if kept is None:
            return Refusal(ErrorCode.INVALID_REQUEST, WRITE_UNINITIALIZED)
        if _NONE != write.leader_epoch < kept.leader_epoch:
            return Refusal(ErrorCode.FENCED_LEADER_EPOCH)
        if _NONE != write.state_epoch < kept.state_epoch:
            return Refusal(ErrorCode.FENCED_STATE_EPOCH)
        if self._is_unknown(key):
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self._next_record(key, kept, kept.snapshot.leader_epoch, write)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Refusal | tuple[Snapshot, CoordinatorRecord | None]:
        """The state, and what has to be written first: a new leader fences those before it."""
        kept = self._kept.get(key)
        if key.partition < 0:
            return Refusal(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if kept is None:
            return Refusal(ErrorCode.INVALID_REQUEST, READ_UNINITIALIZED)
        if _NONE != leader_epoch < kept.leader_epoch:
            return Refusal(ErrorCode.FENCED_LEADER_EPOCH)
        if self._is_unknown(key):
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        snapshot = kept.snapshot
        if leader_epoch in (_NONE, kept.leader_epoch):
            return snapshot, None
        write = Write(snapshot.state_epoch, leader_epoch, snapshot.start_offset, snapshot.delivery_complete_count, ())
        return snapshot, self._next_record(key, kept, leader_epoch, write)

    def read_summary(self, key: SharePartitionKey) -> Refusal | Snapshot | None:
        """None of what was never initialized."""
        if key.partition < 0:
            return Refusal(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if self._is_unknown(key):
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.snapshot(key)

    def delete(self, key: SharePartitionKey) -> Refusal | CoordinatorRecord | None:
        """None if there is nothing to delete."""
        if key.partition < 0:
            return Refusal(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if self._is_unknown(key):
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return tombstone(key) if key in self._kept else None

    def _is_unknown(self, key: SharePartitionKey) -> bool:
        return key.partition >= self._partition_count(key.topic_id)

    def _next_record(self, key: SharePartitionKey, kept: _Kept, leader_epoch: int, write: Write) -> CoordinatorRecord:
        now_ms = self._now_ms()
        before = kept.snapshot
        if kept.updates < self._updates_per_snapshot():
            batches = combined((), write.batches, write.start_offset)
            return update_record(
                key,
                Update(before.snapshot_epoch, leader_epoch, write.start_offset, write.delivery_complete_count, batches),
            )
        start_offset = before.start_offset if write.start_offset == _NONE else write.start_offset
        snapshot = Snapshot(
            before.snapshot_epoch + 1,
            before.state_epoch,
            leader_epoch,
            start_offset,
            write.delivery_complete_count,
            now_ms,
            now_ms,
            combined(before.batches, write.batches, start_offset),
        )
        return snapshot_record(key, snapshot)

    # --- housekeeping ---

    def cold_snapshots(self, interval_ms: int) -> list[CoordinatorRecord]:
        """New snapshots of what has not been written for long, so that what is before them can be deleted.

        None if each was written that way already: then nothing holds up the deletion of others' records.
        """
        if all(kept.snapshot.create_timestamp != kept.snapshot.write_timestamp for kept in self._kept.values()):
            return []
        now_ms = self._now_ms()
        return [
            snapshot_record(
                key,
                kept.snapshot._replace(snapshot_epoch=kept.snapshot.snapshot_epoch + 1, write_timestamp=now_ms),
            )
            for key, kept in self._kept.items()
            if now_ms - kept.snapshot.write_timestamp >= interval_ms
        ]

    def forget_topics(self, topic_ids: Collection[bytes]) -> Sequence[CoordinatorRecord]:
        return [tombstone(key) for key in self._kept if key.topic_id in topic_ids]

    def first_needed_offset(self, end_offset: int) -> int:
        """All records below are redundant."""
        return min((kept.snapshot_offset for kept in self._kept.values()), default=end_offset)

    # --- replaying ---

    def replay(self, at: AtOffset) -> None:
        read: ReadRecord = at.read
        key, value = read
        if value is None:
            self._kept.pop(key, None)
        elif isinstance(value, Snapshot):
            self._replay_snapshot(key, value, at.offset)
        else:
            self._replay_update(key, value, at.offset)

    def _replay_snapshot(self, key: SharePartitionKey, snapshot: Snapshot, offset: int) -> None:
        kept = self._kept.get(key)
        if kept is None:
            self._kept[key] = _Kept(snapshot, offset)
            return
        kept.snapshot = snapshot
        kept.snapshot_offset = offset
        kept.leader_epoch = max(kept.leader_epoch, snapshot.leader_epoch)
        kept.state_epoch = max(kept.state_epoch, snapshot.state_epoch)
        if kept.updates >= self._updates_per_snapshot():
            kept.updates = 0

    def _replay_update(self, key: SharePartitionKey, update: Update, offset: int) -> None:
        kept = self._kept.get(key)
        if kept is None:  # its snapshot is lost; what is known counts
            kept = self._kept[key] = _Kept(Snapshot(update.snapshot_epoch, 0, 0, _NONE, _NONE, 0, 0), offset)
        before = kept.snapshot
        start_offset = before.start_offset if update.start_offset == _NONE else update.start_offset
        kept.snapshot = before._replace(
            leader_epoch=before.leader_epoch if update.leader_epoch == _NONE else update.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            batches=combined(before.batches, update.batches, start_offset),
        )
        kept.leader_epoch = max(kept.leader_epoch, update.leader_epoch)
        kept.updates += 1

    def loaded(self) -> None:
        pass

    def unloaded(self) -> None:
        """No request waits within a shard."""
