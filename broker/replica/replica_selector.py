"""Which replica a consumer should read from (KIP-392). Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class ReplicaView(NamedTuple):
    """A replica that has what the consumer asks for. Those that are further ahead are larger."""

    end_offset: int
    caught_up_ms: int
    broker_id: int
    rack: str | None


Selector = Callable[[str, ReplicaView, Sequence[ReplicaView]], ReplicaView]


def rack_aware(client_rack: str, leader: ReplicaView, followers: Sequence[ReplicaView]) -> ReplicaView:
    """The leader if it is in the client's rack, or no replica is; otherwise the replica there that is furthest
    ahead."""
    if not client_rack or leader.rack == client_rack:
        return leader
    return max((follower for follower in followers if follower.rack == client_rack), default=leader)


def selector(class_name: str | None) -> Selector | None:
    """The selector that `replica.selector.class` names. None: consumers read from the leader."""
    return rack_aware if class_name == RACK_AWARE else None
