"""What the controller orders brokers to do: derived from what changed in the cluster, as messages.

LeaderAndIsr goes to the replicas of partitions whose leader or leader epoch changed, which happens whenever replicas
come or go; a change of the ISR alone was made by the leader, which knows about it. UpdateMetadata tells every broker
what partitions and brokers look like. StopReplica ends a replica. For one broker they go out in that order, so that it
leads a partition before it tells clients so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.broker.controller.cluster_image import TopicChange
from barnabas.broker.controller.images import LEADER_DURING_DELETE, BrokerImage, PartitionImage, TopicImage
from barnabas.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from barnabas.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from barnabas.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

# In place of a leader epoch, while a topic is being deleted.
EPOCH_DURING_DELETE: Final = -2

# In LeaderAndIsr: whether it names all partitions of a broker, so that any others that it has are of no use.
TYPE_PARTIAL: Final = 0
TYPE_FULL: Final = 2

_SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class Sender(NamedTuple):
    """Whose orders these are."""

    controller_id: int
    controller_epoch: int


class LeaderOrder(NamedTuple):
    topic: TopicImage
    partition: PartitionImage
    is_new: bool


class StopOrder(NamedTuple):
    topic: str
    partition_index: int
    leader_epoch: int
    delete: bool


class MetadataOrder(NamedTuple):
    """`partition.leader_id` is LEADER_DURING_DELETE where the topic is being deleted."""

    topic: TopicImage
    partition: PartitionImage
    offline_replicas: tuple[int, ...] = ()


class Orders(NamedTuple):
    """What changes of topics mean for brokers, by their ids. Everybody gets the metadata."""

    leaders: dict[int, list[LeaderOrder]]
    metadata: list[MetadataOrder]
    stops: dict[int, list[StopOrder]]


def orders_of(changes: Iterable[TopicChange], live: Collection[int]) -> Iterator[Orders]:
    """What brokers must be told after topics changed, in the order in which they must be told."""
    deleted: list[TopicImage] = []
    changed: list[TopicChange] = []
    for old, new in changes:
        if old is not None and (new is None or new.topic_id != old.topic_id):
            deleted.append(old)
            old = None
        if new is not None:
            changed.append(TopicChange(old, new))
    if deleted:
        # A topic of the same name may have been created at once: its order must not come before this one.
        yield _deletion_orders(deleted)
    if changed:
        yield _change_orders(changed, live)


def _deletion_orders(topics: Iterable[TopicImage]) -> Orders:
    orders = Orders({}, [], {})
    for topic in topics:
        for partition in topic.partitions:
            orders.metadata.append(MetadataOrder(topic, partition._replace(leader_id=LEADER_DURING_DELETE)))
            stop = StopOrder(topic.name, partition.partition_index, EPOCH_DURING_DELETE, delete=True)
            for broker_id in partition.replica_nodes:
                orders.stops.setdefault(broker_id, []).append(stop)
    return orders


def _change_orders(changes: Iterable[TopicChange], live: Collection[int]) -> Orders:
    orders = Orders({}, [], {})
    for old, new in changes:
        if new is None:
            continue
        before: Sequence[PartitionImage] = () if old is None else old.partitions
        for partition in new.partitions:
            index = partition.partition_index
            known = before[index] if index < len(before) and before[index].partition_epoch >= 0 else None
            if partition.partition_epoch < 0 or partition == known:
                continue  # without a state it has no leader yet
            if known is None or _leads_anew(known, partition):
                for broker_id in partition.replica_nodes:
                    orders.leaders.setdefault(broker_id, []).append(LeaderOrder(new, partition, known is None))
            orders.metadata.append(metadata_order(new, partition, live))
            for broker_id in () if known is None else known.replica_nodes:
                if broker_id not in partition.replica_nodes:
                    stop = StopOrder(new.name, index, partition.leader_epoch, delete=True)
                    orders.stops.setdefault(broker_id, []).append(stop)
    return orders


def _leads_anew(old: PartitionImage, new: PartitionImage) -> bool:
    return (old.leader_id, old.leader_epoch) != (new.leader_id, new.leader_epoch)


def metadata_order(topic: TopicImage, partition: PartitionImage, live: Collection[int]) -> MetadataOrder:
    offline = tuple(broker_id for broker_id in partition.replica_nodes if broker_id not in live)
    return MetadataOrder(topic, partition, offline)


def everything_for(
    broker_id: int, topics: Iterable[TopicImage], live: Collection[int]
) -> tuple[list[LeaderOrder], list[MetadataOrder]]:
    """What a broker that knows nothing must be told: because it has started, or because the controller has."""
    leaders: list[LeaderOrder] = []
    metadata: list[MetadataOrder] = []
    for topic in topics:
        for partition in topic.partitions:
            if partition.partition_epoch >= 0:
                metadata.append(metadata_order(topic, partition, live))
                if broker_id in partition.replica_nodes:
                    leaders.append(LeaderOrder(topic, partition, is_new=False))
    return leaders, metadata


def leader_and_isr(
    sender: Sender,
    broker_epoch: int,
    orders: Iterable[LeaderOrder],
    brokers: Mapping[int, BrokerImage],
    listener: str,
    kind: int = TYPE_PARTIAL,
) -> LeaderAndIsrRequest:
    """`listener` is the one between brokers, under which live leaders are named."""
    states: dict[str, LeaderAndIsrTopicState] = {}
    leaders: set[int] = set()
    for topic, partition, is_new in orders:
        state = states.get(topic.name)
        if state is None:
            state = states[topic.name] = LeaderAndIsrTopicState(
                topic_name=topic.name, topic_id=topic.topic_id, partition_states=[]
            )
        leaders.add(partition.leader_id)
        state.partition_states.append(
            LeaderAndIsrPartitionState(
                partition_index=partition.partition_index,
                controller_epoch=sender.controller_epoch,
                leader=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                isr=list(partition.isr_nodes),
                partition_epoch=partition.partition_epoch,
                replicas=list(partition.replica_nodes),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
                is_new=is_new,
            )
        )
    return LeaderAndIsrRequest(
        controller_id=sender.controller_id,
        controller_epoch=sender.controller_epoch,
        broker_epoch=broker_epoch,
        type=kind,
        topic_states=list(states.values()),
        live_leaders=[
            LeaderAndIsrLiveLeader(broker_id=broker_id, host_name=endpoint.host, port=endpoint.port)
            for broker_id in sorted(leaders & brokers.keys())
            for endpoint in brokers[broker_id].endpoints
            if endpoint.name == listener
        ],
    )


def update_metadata(
    sender: Sender,
    broker_epoch: int,
    orders: Iterable[MetadataOrder],
    brokers: Mapping[int, BrokerImage],
    kind: int = TYPE_PARTIAL,
) -> UpdateMetadataRequest:
    """With TYPE_FULL, there are no topics other than these."""
    states: dict[str, UpdateMetadataTopicState] = {}
    for topic, partition, offline_replicas in orders:
        state = states.get(topic.name)
        if state is None:
            state = states[topic.name] = UpdateMetadataTopicState(
                topic_name=topic.name, topic_id=topic.topic_id, partition_states=[]
            )
        state.partition_states.append(
            UpdateMetadataPartitionState(
                partition_index=partition.partition_index,
                controller_epoch=sender.controller_epoch,
                leader=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                isr=list(partition.isr_nodes),
                zk_version=partition.partition_epoch,
                replicas=list(partition.replica_nodes),
                offline_replicas=list(offline_replicas),
            )
        )
    return UpdateMetadataRequest(
        controller_id=sender.controller_id,
        type=kind,
        controller_epoch=sender.controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=list(states.values()),
        live_brokers=[
            UpdateMetadataBroker(
                id=broker.broker_id,
                endpoints=[
                    UpdateMetadataEndpoint(
                        port=endpoint.port,
                        host=endpoint.host,
                        listener=endpoint.name,
                        security_protocol=_SECURITY_PROTOCOLS[endpoint.security_protocol],
                    )
                    for endpoint in broker.endpoints
                ],
                rack=broker.rack,
            )
            for broker in brokers.values()
        ],
    )


def stop_replica(sender: Sender, broker_epoch: int, orders: Iterable[StopOrder]) -> StopReplicaRequest:
    states: dict[str, StopReplicaTopicState] = {}
    for topic, index, leader_epoch, delete in orders:
        state = states.get(topic)
        if state is None:
            state = states[topic] = StopReplicaTopicState(topic_name=topic, partition_states=[])
        state.partition_states.append(
            StopReplicaPartitionState(partition_index=index, leader_epoch=leader_epoch, delete_partition=delete)
        )
    return StopReplicaRequest(
        controller_id=sender.controller_id,
        controller_epoch=sender.controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=list(states.values()),
    )
