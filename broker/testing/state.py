"""What the brokers know at this moment, as data for JSON. For a partition, it is what its leader knows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.group.kind import AnyGroup, GroupKind
from barnabas.broker.group.records import CommittedOffset
from barnabas.broker.group.shard import GroupShard
from barnabas.broker.handlers.fetching import Fetch
from barnabas.broker.handlers.share_fetching import ShareFetching
from barnabas.broker.server.request import Pause
from barnabas.broker.testing.fleet import leader_of
from barnabas.broker.testing.nodes import describe
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment, read_with_version
from barnabas.protocol.errors import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from barnabas.broker.group.classic.group import Group
    from barnabas.broker.group.classic.member import Member
    from barnabas.broker.group.consumer.group import ConsumerGroup
    from barnabas.broker.group.consumer.member import ConsumerMember
    from barnabas.broker.group.share.group import ShareGroup
    from barnabas.broker.group.share.member import ShareMember
    from barnabas.broker.group.streams.group import StreamsGroup
    from barnabas.broker.group.streams.member import StreamsMember
    from barnabas.broker.group.streams.tasks import AssignedTasks, Tasks
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.replica.partition import Partition

Json = dict[str, Any]


def state_of(cluster: LocalCluster) -> Json:
    return {part: tell(cluster) for part, tell in PARTS.items()}


def nodes(cluster: LocalCluster) -> list[Json]:
    return [describe(cluster, node) for node in cluster.nodes.values()]


# --- topics and what is in them ---


def topics(cluster: LocalCluster) -> Json:
    """As the controller has told the brokers; the controller's own broker is told first."""
    teller = cluster.controller or next(iter(cluster.brokers), None)
    if teller is None:
        return {}
    brokers = list(cluster.brokers)
    return {
        image.name: {
            "topic_id": str(uuid.UUID(bytes=image.topic_id)),
            "internal": image.is_internal,
            "configs": dict(image.configs),
            "partitions": [
                partition_state(told, found)
                for told in image.partitions
                if (found := leader_of(brokers, image.name, told.partition_index)) is not None
            ],
        }
        for image in sorted(teller.cluster.topics.values(), key=lambda image: image.name)
    }


def partition_state(told: PartitionImage, partition: Partition) -> Json:
    log = partition.log
    return {
        "partition": partition.index,
        "leader": told.leader_id,
        "replicas": list(told.replica_nodes),
        "isr": list(told.isr_nodes),
        "leader_epoch": partition.leader_epoch,
        "log_start_offset": log.log_start_offset,
        "last_stable_offset": log.last_stable_offset,
        "high_watermark": log.high_watermark,
        "log_end_offset": log.end_offset,
        "size": log.size,
        "segments": len(log.segments),
        # The console waits there, too, for whoever looks at new messages.
        "waiting_fetches": sum(isinstance(each, (Fetch, ShareFetching)) for each in partition.waiters),
    }


def producers(cluster: LocalCluster) -> list[Json]:
    """The idempotent and transactional producers of each partition."""
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
        for broker in cluster.brokers
        for partition in broker.replicas
        if partition.leadership is not None
        for producer_id, producer in partition.log.producer_state.producers.items()
    ]


# --- groups ---


def groups(cluster: LocalCluster) -> Json:
    return {
        group_id: group_state(cluster, shard, group)
        for broker in cluster.brokers
        for shard in broker.groups.shards
        for group_id, group in sorted(shard.groups.items())
    }


def group_state(cluster: LocalCluster, shard: GroupShard, group: AnyGroup) -> Json:
    return {
        **membership_state(cluster, shard, group),
        "offsets": [
            offset_state(cluster, topic, index, committed)
            for (topic, index), committed in sorted(shard.offsets.of_group(group.group_id).items())
        ],
    }


def membership_state(cluster: LocalCluster, shard: GroupShard, group: AnyGroup) -> Json:
    """A group without its offsets, which may be very many."""
    return {
        "type": group.kind.value,
        "state": group.state_name,
        "protocol_type": group.protocol_type,
        **_OF_KIND[group.kind](shard, group, cluster),
    }


def offset_state(cluster: LocalCluster, topic: str, index: int, committed: CommittedOffset) -> Json:
    return {
        "topic": topic,
        "partition": index,
        "offset": committed.offset,
        "metadata": committed.metadata,
        "commit_timestamp": committed.commit_timestamp,
        "lag": _lag(cluster, topic, index, committed.offset),
    }


def _classic_group(shard: GroupShard, group: Group, cluster: LocalCluster) -> Json:
    return {
        "state_since_ms": group.state_since_ms,
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader_id,
        "members": [_member(member) for member in group.members.values()],
        "pending_members": sorted(group.pending_members),
    }


def _consumer_group(shard: GroupShard, group: ConsumerGroup, cluster: LocalCluster) -> Json:
    names = _topic_names(cluster)
    return {
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [_consumer_member(shard, group, member, names) for member in group.members.values()],
        "patterns": {regex: sorted(found.topics) for regex, found in group.regexes.items()},
    }


def _consumer_member(
    shard: GroupShard, group: ConsumerGroup, member: ConsumerMember, names: Mapping[bytes, str]
) -> Json:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "heard_at_ms": shard.consumers.heard_at_ms(group.group_id, member.member_id),
        "member_epoch": member.epoch,
        "state": member.state.name.lower(),
        "topics": sorted(member.topics),
        "pattern": member.regex or None,
        "assignment": _partitions(member.assigned, names),
        "revoking": _partitions(member.revoking, names),
        "target_assignment": _partitions(group.target_of(member), names),
    }


def _share_group(shard: GroupShard, group: ShareGroup, cluster: LocalCluster) -> Json:
    names = _topic_names(cluster)
    return {
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [_share_member(shard, group, member, names) for member in group.members.values()],
        "initialized": _partitions(group.state_partitions.assignable(), names),
    }


def _share_member(shard: GroupShard, group: ShareGroup, member: ShareMember, names: Mapping[bytes, str]) -> Json:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "heard_at_ms": shard.shares.sessions.heard_at_ms(group.group_id, member.member_id),
        "member_epoch": member.epoch,
        "topics": sorted(member.topics),
        "assignment": _partitions(member.assigned, names),
        "target_assignment": _partitions(group.target_of(member.member_id), names),
    }


def _streams_group(shard: GroupShard, group: StreamsGroup, cluster: LocalCluster) -> Json:
    problem = None if group.configured is None else group.configured.problem
    return {
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology_epoch": None if group.topology is None else group.topology.epoch,
        "topics": [] if group.topology is None else sorted(group.topology.required_topics),
        "problem": None if problem is None else problem.detail,
        "members": [_streams_member(shard, group, member, cluster) for member in group.members.values()],
    }


def _streams_member(shard: GroupShard, group: StreamsGroup, member: StreamsMember, cluster: LocalCluster) -> Json:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "process_id": member.process_id,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "heard_at_ms": shard.streams.heard_at_ms(group.group_id, member.member_id),
        "member_epoch": member.epoch,
        "topology_epoch": member.topology_epoch,
        "state": member.state.name.lower(),
        "assignment": _read_by(group, member, cluster),
        "tasks": _tasks(member.assigned),
        "revoking_tasks": _tasks(member.revoking),
        "target_tasks": _tasks(group.target_of(member.member_id)),
    }


def _read_by(group: StreamsGroup, member: StreamsMember, cluster: LocalCluster) -> dict[str, list[int]]:
    """The partitions that a member's active tasks read. Not every topic has a partition for each task."""
    images = {name: image for broker in cluster.brokers for name, image in broker.cluster.topics.items()}
    readers = {} if group.topology is None else group.topology.readers
    found = {
        topic: [index for index in sorted(member.assigned.active.get(id, ())) if index < len(images[topic].partitions)]
        for topic, id in readers.items()
        if topic in images
    }
    return {topic: indexes for topic, indexes in found.items() if indexes}


def _tasks(tasks: Tasks | AssignedTasks) -> Json:
    """By role and subtopology."""
    return {
        role: {subtopology: sorted(indexes) for subtopology, indexes in found.items()}
        for role, found in tasks._asdict().items()
    }


def _topic_names(cluster: LocalCluster) -> Mapping[bytes, str]:
    return {image.topic_id: name for broker in cluster.brokers for name, image in broker.cluster.topics.items()}


def _partitions(assigned: Mapping[bytes, Collection[int]], names: Mapping[bytes, str]) -> dict[str, list[int]]:
    """By topic; one that was deleted no longer has a name."""
    return {names.get(topic_id, topic_id.hex()): sorted(indexes) for topic_id, indexes in assigned.items()}


_OF_KIND: Final[dict[GroupKind, Callable[..., Json]]] = {
    GroupKind.CLASSIC: _classic_group,
    GroupKind.CONSUMER: _consumer_group,
    GroupKind.SHARE: _share_group,
    GroupKind.STREAMS: _streams_group,
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
        "assignment": assignment_of(member.assignment),
    }


def assignment_of(data: bytes) -> dict[str, list[int]] | None:
    """The partitions by topic; None if it is not a consumer's assignment."""
    try:
        found = read_with_version(ConsumerProtocolAssignment, data)
    except ProtocolError:
        return None
    return {each.topic: list(each.partitions) for each in found.assigned_partitions}


def _lag(cluster: LocalCluster, topic: str, index: int, offset: int) -> int | None:
    partition = leader_of(cluster.brokers, topic, index)
    return None if partition is None else max(partition.log.high_watermark - offset, 0)


# --- connections ---


def connections(cluster: LocalCluster) -> list[Json]:
    """Those of clients; brokers have connections of their own."""
    return [
        {
            "broker": broker.config.node_id,
            "peer": connection.name,
            "listener": connection.listener.name,
            "client_id": connection.client_id,
            "software": connection.software,
            "principal": str(connection.principal),
            "requests": [
                {"api": request.api_key.api_name, "version": request.version, "correlation_id": request.correlation_id}
                for request in connection.requests
                if not isinstance(request, Pause)
            ],
        }
        for broker in cluster.brokers
        for connection in sorted(broker.server.connections, key=lambda connection: connection.peer)
        if not connection.is_from_broker
    ]


def failed_authentications(cluster: LocalCluster) -> list[Json]:
    return [
        {"broker": broker.config.node_id, "listener": listener, "mechanism": mechanism, "count": count}
        for broker in cluster.brokers
        for (listener, mechanism), count in sorted(broker.server.failed_authentications.items())
    ]


def clock(cluster: LocalCluster) -> Json:
    return {"now_ms": cluster.clock.now_ms(), "ahead_ms": getattr(cluster.clock, "ahead_ms", 0)}


def transactions(cluster: LocalCluster) -> Json:
    found: list[TransactionMetadata] = []
    for broker in cluster.brokers:
        known = broker.transactions.all_transactions()
        if not isinstance(known, ErrorCode):  # they are being loaded
            found += known
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


def set_aside(cluster: LocalCluster) -> list[Json]:
    return [
        {"broker": broker.config.node_id, **entry._asdict()}
        for broker in cluster.brokers
        for entry in broker.set_aside.entries()
    ]


PARTS: Final[dict[str, Callable[[LocalCluster], Any]]] = {
    "clock": clock,
    "nodes": nodes,
    "topics": topics,
    "groups": groups,
    "transactions": transactions,
    "producers": producers,
    "connections": connections,
    "failed_authentications": failed_authentications,
    "set_aside": set_aside,
}
