"""Mistakes in what controllers order, and in how brokers take it: roles, moves, deletions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from barnabas.broker.cluster import term
from barnabas.broker.controller import orders, reassignments
from barnabas.broker.controller.cluster_image import TopicChange
from barnabas.broker.controller.images import TopicImage
from barnabas.broker.controller.orders import Orders
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.registry.tree_operations import Operation
from barnabas.broker.replica.order_sequence import Order, OrderSequence
from barnabas.broker.replica.replicas import Replicas
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.stop_replica import StopReplicaTopicState
from barnabas.simulation.museum.exhibit import Exhibit, Replacement


def _is_never_overtaken(self: OrderSequence, order: Order, correlation_id: int) -> bool:
    return False


# Brokers notice by a second sign that an order comes late. It would hide the mistakes of those that had no such sign.
_ONE_SIGN = Replacement(OrderSequence, "is_overtaken", _is_never_overtaken)


def _takes_any() -> list[Replacement]:
    original = Replicas.check_sender

    def check_sender(self: Replicas, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        return original(self, controller_epoch, -1)

    return [Replacement(Replicas, "check_sender", check_sender), _ONE_SIGN]


KAFKA_7235 = Exhibit(
    "kafka-7235",
    "a broker takes orders that were meant for its former life",
    "KAFKA-7235",
    """
An order may be on its way for a long time. If the broker loses its session meanwhile and registers anew, it is told
everything; then the old order arrives, and ends or deletes a replica that has been created since. So orders carry the
epoch of the registration that they are meant for.
""",
    _takes_any,
    seed=17,
    weather="hearsay",
)


def _refuses_newer() -> list[Replacement]:
    original = Replicas.check_sender

    def check_sender(self: Replicas, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        if broker_epoch != self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        return original(self, controller_epoch, broker_epoch)

    return [Replacement(Replicas, "check_sender", check_sender)]


KAFKA_9839 = Exhibit(
    "kafka-9839",
    "a broker refuses orders because they know it in a newer life",
    "KAFKA-9839",
    """
Orders carry the epoch of the broker that they are meant for, so that one that restarted does not take those for its
former life. After a new registration the controller may hear of the new epoch before the broker itself does. A broker
that then refuses everything but the epoch that it knows misses what it was told.
""",
    _refuses_newer,
    seed=3,
    weather="hearsay",
)


def _stops_whatever() -> list[Replacement]:
    original = Replicas._drop_roles_of

    def _drop_roles_of(self: Replicas, order: StopReplicaTopicState) -> Any:
        for state in order.partition_states:
            state.leader_epoch = -1
        return original(self, order)

    return [Replacement(Replicas, "_drop_roles_of", _drop_roles_of), _ONE_SIGN]


KAFKA_9539 = Exhibit(
    "kafka-9539",
    "an order to stop a replica has no leader epoch",
    "KAFKA-9539",
    """
A partition is moved away from a broker and back again. The order to delete the replica is sent twice, because its
first answer did not come in time, and the second copy arrives after the order to have the replica again. Without the
leader epoch in it nobody notices, and a replica is deleted that is needed.
""",
    _stops_whatever,
    seed=19,
    weather="migrations",
)


def _leaves_replicas_of_cancelled_moves() -> list[Replacement]:
    original = orders._change_orders

    def _change_orders(changes: Iterable[TopicChange], live: Collection[int]) -> Orders:
        all_changes = list(changes)
        found = original(all_changes, live)
        for old, _ in all_changes:
            for partition in () if old is None else old.partitions:
                for broker_id in partition.adding_replicas:
                    found.stops[broker_id] = [
                        stop
                        for stop in found.stops.get(broker_id, ())
                        if old is None or (stop.topic, stop.partition_index) != (old.name, partition.partition_index)
                    ]
        return found

    return [Replacement(orders, "_change_orders", _change_orders)]


KAFKA_13972 = Exhibit(
    "kafka-13972",
    "a move is called off, and the replicas that it had begun stay",
    "KAFKA-13972",
    """
While a partition moves, the brokers that are to have it are replicas already. When the move is called off, they must
be told to stop. Otherwise they keep the partition, follow its leader forever, and may take part again some day with
what they had then.
""",
    _leaves_replicas_of_cancelled_moves,
    seed=12,
    weather="moves",
)


def _forgets_moves() -> list[Replacement]:
    begin, finish = reassignments.alter_partition_reassignments, reassignments.finish_reassignments
    begun: dict[tuple[int, str, int], None] = {}

    def alter_partition_reassignments(cluster: ClusterView, moves: Sequence[Any], **settings: Any) -> Any:
        begun.update(dict.fromkeys((cluster.controller_epoch, each.topic, each.partition_index) for each in moves))
        return begin(cluster, moves, **settings)

    def finish_reassignments(cluster: ClusterView, topics: Iterable[TopicImage]) -> list[Operation]:
        known = [
            topic
            for topic in topics
            if any((cluster.controller_epoch, topic.name, each.partition_index) in begun for each in topic.partitions)
        ]
        return finish(cluster, known)

    return [
        Replacement(term, "alter_partition_reassignments", alter_partition_reassignments),
        Replacement(term, "finish_reassignments", finish_reassignments),
    ]


KAFKA_9478 = Exhibit(
    "kafka-9478",
    "a move that a former controller has begun is never ended",
    "KAFKA-9478",
    """
Moving a partition takes as long as copying it, and the controller may change meanwhile. One that looks after the moves
that it was asked for, and not after those that the tree says are under way, leaves partitions with the old and the new
replicas forever.
""",
    _forgets_moves,
    seed=10,
    weather="migrations",
)


def _forgets_those_that_are_added() -> list[Replacement]:
    original = orders._deletion_orders

    def _deletion_orders(topics: Iterable[TopicImage]) -> Orders:
        return original(
            replace(
                topic,
                partitions=tuple(
                    each._replace(replica_nodes=tuple(r for r in each.replica_nodes if r not in each.adding_replicas))
                    for each in topic.partitions
                ),
            )
            for topic in topics
        )

    return [Replacement(orders, "_deletion_orders", _deletion_orders)]


KAFKA_3978 = Exhibit(
    "kafka-3978",
    "a topic is deleted while it moves, and brokers that were to have it keep it",
    "KAFKA-3978",
    """
A topic is deleted while one of its partitions moves. Whoever has begun to copy it has a replica, though the move has
not ended. A controller that tells only the settled replicas to delete theirs leaves a replica of a topic that is no
more.
""",
    _forgets_those_that_are_added,
    seed=2,
    weather="migrations",
)

EXHIBITS = [KAFKA_7235, KAFKA_9839, KAFKA_9539, KAFKA_13972, KAFKA_9478, KAFKA_3978]
