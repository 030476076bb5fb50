"""How far groups have come: the offsets that they have committed, or where the share partitions of a share group start.

The state of a share partition is not with the coordinator of its group, but with a share coordinator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.group.share.group import ShareGroup
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.testing.fleet import leader_of

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.group.kind import AnyGroup
    from barnabas.broker.group.shard import GroupShard
    from barnabas.broker.share.records import Snapshot

Json = dict[str, Any]

_NOT_BEGUN: Final = -1  # a share group learns where it begins when somebody fetches


class Position(NamedTuple):
    offset: int | None  # of the first record that the group is not done with; None if that is not known here
    done: int = 0  # records after it that a share group is done with
    commit_timestamp: int | None = None
    metadata: str = ""

    def lag(self, high_watermark: int) -> int | None:
        return None if self.offset is None else max(high_watermark - self.offset - self.done, 0)


Place = tuple[str, int]  # a topic and a partition


def positions_of(brokers: list[Broker], shard: GroupShard, group: AnyGroup) -> Iterator[tuple[Place, Position]]:
    if isinstance(group, ShareGroup):
        yield from _of_share_group(brokers, group)
        return
    for place, each in list(shard.offsets.of_group(group.group_id).items()):
        yield place, Position(each.offset, 0, each.commit_timestamp, each.metadata)


def _of_share_group(brokers: list[Broker], group: ShareGroup) -> Iterator[tuple[Place, Position]]:
    shards = [shard for broker in brokers for shard in broker.share_coordinator.shards.values()]
    for topic_id, indexes in list(group.state_partitions.assignable().items()):
        image = next((image for each in brokers if (image := each.cluster.topic_by_id(topic_id)) is not None), None)
        if image is None:  # it was deleted
            continue
        for index in sorted(indexes):
            key = SharePartitionKey(group.group_id, topic_id, index)
            state = next((state for shard in shards if (state := shard.snapshot(key)) is not None), None)
            yield (image.name, index), _of_state(state)


def _of_state(state: Snapshot | None) -> Position:
    if state is None or state.start_offset == _NOT_BEGUN:
        return Position(None)
    return Position(state.start_offset, max(state.delivery_complete_count, 0), state.write_timestamp)


def reads(shard: GroupShard, group: AnyGroup, topic: str, topic_id: bytes) -> bool:
    """Whether a group has a position in some partition of a topic."""
    if isinstance(group, ShareGroup):
        return topic_id in group.state_partitions.assignable()
    return any(name == topic for name, _ in shard.offsets.of_group(group.group_id))


def lag_of(brokers: list[Broker], positions: Mapping[Place, Position]) -> tuple[int | None, int]:
    """How many records a group is behind, as far as that is known here, and of how many partitions it is not."""
    lag, known, elsewhere = 0, 0, 0
    for (topic, index), position in positions.items():
        partition = leader_of(brokers, topic, index)
        if partition is None:
            elsewhere += 1
        elif (behind := position.lag(partition.log.high_watermark)) is not None:
            lag += behind
            known += 1
    return (lag if known or elsewhere == len(positions) else None), elsewhere


def described(brokers: list[Broker], place: Place, position: Position) -> Json:
    topic, index = place
    return {
        "topic": topic,
        "partition": index,
        "offset": position.offset,
        "metadata": position.metadata,
        "commit_timestamp": position.commit_timestamp,
        "lag": _lag(brokers, topic, index, position),
    }


def _lag(brokers: list[Broker], topic: str, index: int, position: Position) -> int | None:
    partition = leader_of(brokers, topic, index)
    return None if partition is None else position.lag(partition.log.high_watermark)
