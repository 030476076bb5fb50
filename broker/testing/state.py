"""What a broker knows at this moment, as JSON takes it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from broker.group.shard import GroupShard
from protocol.consumer_protocol import ConsumerProtocolAssignment, read_with_version
from protocol.errors import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.group.group import Group
    from broker.group.member import Member
    from broker.replica.partition import Partition

Json = dict[str, Any]


def state_of(broker: Broker) -> Json:
    return {part: tell(broker) for part, tell in PARTS.items()}


# --- topics and what is in them ---


def topics(broker: Broker) -> Json:
    return {
        image.name: {
            "topic_id": str(uuid.UUID(bytes=image.topic_id)),
            "internal": image.is_internal,
            "configs": dict(image.configs),
            "partitions": [_partition(partition) for partition in broker.replicas.of_topic(image.name)],
        }
        for image in sorted(broker.cluster.topics.values(), key=lambda image: image.name)
    }


def _partition(partition: Partition) -> Json:
    log = partition.log
    return {
        "partition": partition.index,
        "leader_epoch": partition.leader_epoch,
        "log_start_offset": log.log_start_offset,
        "last_stable_offset": log.last_stable_offset,
        "high_watermark": log.high_watermark,
        "log_end_offset": log.end_offset,
        "size": log.size,
        "segments": len(log.segments),
        "waiting_fetches": len(partition.waiters),
    }


def producers(broker: Broker) -> list[Json]:
    """Who writes idempotently or in transactions to which partition."""
    return [
        {
            "topic": partition.topic,
            "partition": partition.index,
            "producer_id": producer_id,
            "producer_epoch": producer.producer_epoch,
            "last_sequence": producer.last_sequence,
            "last_timestamp": producer.last_timestamp,
            "current_transaction_first_offset": producer.current_transaction_first_offset,
        }
        for partition in broker.replicas
        for producer_id, producer in partition.log.producer_state.producers.items()
    ]


# --- groups ---


def groups(broker: Broker) -> Json:
    return {
        group_id: _group(broker, shard, group)
        for shard in broker.groups.shards
        for group_id, group in sorted(shard.groups.items())
    }


def _group(broker: Broker, shard: GroupShard, group: Group) -> Json:
    return {
        "state": group.state.value,
        "state_since_ms": group.state_since_ms,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": group.leader_id,
        "members": [_member(member) for member in group.members.values()],
        "pending_members": sorted(group.pending_members),
        "offsets": [
            {
                "topic": topic,
                "partition": index,
                "offset": committed.offset,
                "metadata": committed.metadata,
                "commit_timestamp": committed.commit_timestamp,
                "lag": _lag(broker, topic, index, committed.offset),
            }
            for (topic, index), committed in sorted(shard.offsets.of_group(group.group_id).items())
        ],
    }


def _member(member: Member) -> Json:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "heard_at_ms": member.heard_at_ms,
        "waits_for_join": member.answer_join is not None,
        "waits_for_sync": member.answer_sync is not None,
        "protocols": [name for name, _ in member.protocols],
        "assignment": _assignment(member.assignment),
    }


def _assignment(data: bytes) -> dict[str, list[int]] | None:
    """The partitions by topic; None if it is no consumer's assignment."""
    try:
        found = read_with_version(ConsumerProtocolAssignment, data)
    except ProtocolError:
        return None
    return {each.topic: list(each.partitions) for each in found.assigned_partitions}


def _lag(broker: Broker, topic: str, index: int, offset: int) -> int | None:
    partition = broker.replicas.find(topic, index)
    return None if partition is None else max(partition.log.high_watermark - offset, 0)


# --- connections ---


def connections(broker: Broker) -> list[Json]:
    return [
        {
            "peer": connection.name,
            "listener": connection.listener.name,
            "client_id": connection.client_id,
            "requests": [
                {"api": request.api_key.api_name, "version": request.version, "correlation_id": request.correlation_id}
                for request in connection.requests
            ],
        }
        for connection in sorted(broker.server.connections, key=lambda connection: connection.peer)
    ]


def clock(broker: Broker) -> Json:
    return {"now_ms": broker.clock.now_ms(), "ahead_ms": getattr(broker.clock, "ahead_ms", 0)}


def transactions(broker: Broker) -> Json:
    found = broker.transactions.all_transactions()
    if isinstance(found, ErrorCode):  # they are being loaded
        return {}
    return {
        each.transactional_id: {
            "state": each.state.label,
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "timeout_ms": each.timeout_ms,
            "started_ms": each.start_ms,
            "partitions": [{"topic": topic, "partition": index} for topic, index in sorted(each.partitions)],
        }
        for each in sorted(found, key=lambda each: each.transactional_id)
    }


PARTS: Final[dict[str, Callable[[Broker], Any]]] = {
    "clock": clock,
    "topics": topics,
    "groups": groups,
    "transactions": transactions,
    "producers": producers,
    "connections": connections,
}
