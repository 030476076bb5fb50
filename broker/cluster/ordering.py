"""A controller's orders to brokers: from what changed in the view to messages in each broker's line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import NamedTuple, cast

from barnabas.broker.controller.cluster_image import TopicChange
from barnabas.broker.controller.images import BrokerImage
from barnabas.broker.controller.orders import (
    TYPE_FULL,
    TYPE_PARTIAL,
    LeaderOrder,
    MetadataOrder,
    Sender,
    StopOrder,
    everything_for,
    leader_and_isr,
    orders_of,
    stop_replica,
    update_metadata,
)
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.interbroker.order_lines import OrderLines
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from barnabas.protocol.messages.update_metadata import UpdateMetadataRequest
from barnabas.protocol.schema import Message
from barnabas.protocol.topic_partition import TopicPartition

OnFailed = Callable[[int, Mapping[TopicPartition, int]], None]
"""Called with a broker, and the leader epochs of partitions whose orders it cannot carry out because of its disk."""


class _Taking(NamedTuple):
    """A broker's answer to an order, once it has given one, and the new partitions that it leads by that order."""

    answer: asyncio.Future[Message | None]
    leads: Mapping[bytes, Mapping[int, bool]]  # and whether another replica could lead it instead


class Taken:
    """The orders that create topics or partitions, until brokers have accepted them."""

    def __init__(self) -> None:
        self.topic_ids: set[bytes] = set()
        self._takings: list[_Taking] = []

    def add(self, broker_id: int, orders: Iterable[LeaderOrder], answer: asyncio.Future[Message | None]) -> None:
        leads: dict[bytes, dict[int, bool]] = {}
        for topic, partition, is_new in orders:
            if is_new and topic.topic_id in self.topic_ids and partition.leader_id == broker_id:
                leads.setdefault(topic.topic_id, {})[partition.partition_index] = len(partition.isr_nodes) > 1
        if leads:
            self._takings.append(_Taking(answer, leads))

    async def wait(self) -> None:
        """Wait until all leaders of new partitions have answered, or are gone."""
        if self._takings:
            await asyncio.wait([taking.answer for taking in self._takings])

    def is_taken(self, topic_id: bytes) -> bool:
        return all(taking.answer.done() for taking in self._takings if topic_id in taking.leads)

    def error(self, topic_id: bytes) -> ErrorCode:
        """KAFKA_STORAGE_ERROR if a leader could not create a new partition of a topic, and nobody else can lead it.

        A broker that refuses an order for another reason, such as a stale epoch, has another registration by now, or
        knows a later order.
        """
        for answer, leads in self._takings:
            if topic_id in leads and answer.done() and answer.result() is not None:
                failed = _failed(cast(LeaderAndIsrResponse, answer.result()), topic_id)
                if any(leads[topic_id].get(index) is False for index in failed):
                    return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE


def _failed(answer: LeaderAndIsrResponse, topic_id: bytes) -> Iterator[int]:
    """The partitions that a broker could not create because of its disk."""
    for topic in answer.topics:
        if topic.topic_id == topic_id:
            for partition in topic.partition_errors:
                if partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                    yield partition.partition_index


class Ordering:
    def __init__(
        self, sender: Sender, cluster: ClusterView, lines: OrderLines, listener: str, on_failed: OnFailed
    ) -> None:
        """`listener` is the one between brokers. `on_failed` is told which partitions a broker cannot write to."""
        self._sender = sender
        self._cluster = cluster
        self._lines = lines
        self._listener = listener
        self._on_failed = on_failed
        self._told: dict[int, BrokerImage] = {}  # the brokers that have a line, and since which registration
        self._everything: dict[int, list[asyncio.Future[Message | None]]] = {}  # answers to what new brokers were told
        self._awaited: list[Taken] = []
        self._last_own: asyncio.Future[Message | None] | None = None  # what the controller's own broker was told

    async def own_broker_caught_up(self) -> None:
        """Wait until the controller's own broker knows what it has been told so far."""
        if self._last_own is not None:
            await asyncio.wait([self._last_own])

    def _send(self, broker: BrokerImage, key: ApiKey, message: Message) -> asyncio.Future[Message | None]:
        answer = self._lines.send(broker.broker_id, key, message)
        if broker.broker_id == self._sender.controller_id and key is ApiKey.UPDATE_METADATA:
            self._last_own = answer
        return answer

    async def told(self, broker_id: int) -> None:
        """Wait until a broker has accepted the orders that it got when it was new."""
        if broker_id in self._everything:
            await asyncio.wait(self._everything[broker_id])

    @contextmanager
    def awaiting(self) -> Iterator[Taken]:
        """Track the orders about new partitions of the topics that the caller names, before it creates them."""
        taken = Taken()
        self._awaited.append(taken)
        try:
            yield taken
        finally:
            self._awaited.remove(taken)

    # --- brokers come and go ---

    def drop_lost(self) -> set[int]:
        """End the lines of brokers that are gone, or are back under a new registration. Returns their ids."""
        lost = {
            broker_id
            for broker_id, told in self._told.items()
            if broker_id not in self._cluster.brokers or self._cluster.brokers[broker_id].epoch != told.epoch
        }
        for broker_id in lost:
            self._lines.remove(broker_id)
        return lost

    def announce_brokers(self) -> None:
        """Tell the others about new brokers at once: Apache Kafka follows no leader that it does not know."""
        brokers = self._cluster.brokers
        if any(not _is_same(self._told.get(broker_id), broker) for broker_id, broker in brokers.items()):
            self._send_metadata(
                [each for each in self._told.values() if _is_same(brokers.get(each.broker_id), each)], []
            )

    def follow_brokers(self) -> None:
        """Tell new brokers everything, and tell the others about them. Partitions already have the leaders that they
        should have."""
        brokers = self._cluster.brokers
        before, self._told = self._told, dict(brokers)
        new = [broker for broker in brokers.values() if not _is_same(before.get(broker.broker_id), broker)]
        for broker in new:
            self._lines.add(broker)
            leaders, metadata = everything_for(broker.broker_id, self._cluster.topics.values(), brokers)
            self._introduce_others(broker)
            self._everything[broker.broker_id] = [
                self._send_leaders(broker, leaders, TYPE_FULL),
                self._send(broker, ApiKey.UPDATE_METADATA, self._metadata(broker, metadata, TYPE_FULL)),
            ]
        changed = {broker.broker_id for broker in new} | (before.keys() - brokers.keys())
        if changed or [_public(each) for each in before.values()] != [_public(each) for each in brokers.values()]:
            known = [broker for broker in brokers.values() if broker not in new]
            self._send_metadata(known, self._about(changed))

    def give_again(self, broker_id: int) -> None:
        """Send a broker its orders again, to see from its answers what it can carry out now."""
        broker = self._told.get(broker_id)
        if broker is not None and broker_id in self._cluster.brokers:
            leaders, _ = everything_for(broker_id, self._cluster.topics.values(), self._cluster.brokers)
            self._send_leaders(broker, leaders)

    def _introduce_others(self, broker: BrokerImage) -> None:
        """Tell a new broker about those that it may follow. It learns that it is a member itself when it knows the
        rest."""
        others = {each: image for each, image in self._cluster.brokers.items() if each != broker.broker_id}
        if others and broker.broker_id != self._sender.controller_id:
            self._send(broker, ApiKey.UPDATE_METADATA, update_metadata(self._sender, broker.epoch, [], others))

    def _about(self, broker_ids: Set[int]) -> list[MetadataOrder]:
        """Partitions with replicas on these brokers: they are offline now, or are no longer."""
        if not broker_ids:
            return []
        _, everything = everything_for(-1, self._cluster.topics.values(), self._cluster.brokers)
        return [each for each in everything if not broker_ids.isdisjoint(each.partition.replica_nodes)]

    # --- topics change ---

    def follow_topics(self, changes: Iterable[TopicChange]) -> None:
        receivers = [broker for broker_id, broker in self._told.items() if broker_id in self._cluster.brokers]
        for leaders, metadata, stops in orders_of(changes, self._cluster.brokers):
            for broker in receivers:
                if broker.broker_id in leaders:
                    self._send_leaders(broker, leaders[broker.broker_id])
            if metadata:
                self._send_metadata(receivers, metadata)
            for broker in receivers:
                if broker.broker_id in stops:
                    self._send_stops(broker, stops[broker.broker_id])

    def stop_following(self, broker_id: int, partitions: Iterable[TopicPartition]) -> None:
        """Make a broker that is about to stop follow nobody any more."""
        broker = self._told.get(broker_id)
        orders = []
        for topic, index in partitions:
            partition = self._cluster.partition(topic, index)
            if partition is not None:
                orders.append(StopOrder(topic, index, partition.leader_epoch, delete=False))
        if broker is not None and orders:
            self._send_stops(broker, orders)

    # --- sending ---

    def _send_leaders(
        self, broker: BrokerImage, orders: Sequence[LeaderOrder], kind: int = TYPE_PARTIAL
    ) -> asyncio.Future[Message | None]:
        message = leader_and_isr(self._sender, broker.epoch, orders, self._cluster.brokers, self._listener, kind)
        answer = self._send(broker, ApiKey.LEADER_AND_ISR, message)
        answer.add_done_callback(lambda done: self._answered(broker.broker_id, orders, done))
        for awaited in self._awaited:
            awaited.add(broker.broker_id, orders, answer)
        return answer

    def _answered(self, broker_id: int, orders: Sequence[LeaderOrder], done: asyncio.Future[Message | None]) -> None:
        answer = None if done.cancelled() else cast(LeaderAndIsrResponse | None, done.result())
        if answer is None or answer.error_code:
            return
        failed = {
            (topic.topic_id, partition.partition_index)
            for topic in answer.topics
            for partition in topic.partition_errors
            if partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        }
        if failed:
            self._on_failed(
                broker_id,
                {
                    TopicPartition(topic.name, partition.partition_index): partition.leader_epoch
                    for topic, partition, _ in orders
                    if (topic.topic_id, partition.partition_index) in failed
                },
            )

    def _send_stops(self, broker: BrokerImage, orders: Sequence[StopOrder]) -> None:
        message = stop_replica(self._sender, broker.epoch, orders)
        self._send(broker, ApiKey.STOP_REPLICA, message)

    def _send_metadata(self, brokers: Sequence[BrokerImage], orders: Sequence[MetadataOrder]) -> None:
        if not brokers:
            return
        first = self._metadata(brokers[0], orders)
        for broker in brokers:
            # All are told the same, and it may be long.
            message = UpdateMetadataRequest(
                controller_id=first.controller_id,
                controller_epoch=first.controller_epoch,
                broker_epoch=broker.epoch,
                topic_states=first.topic_states,
                live_brokers=first.live_brokers,
            )
            self._send(broker, ApiKey.UPDATE_METADATA, message)

    def _metadata(
        self, broker: BrokerImage, orders: Sequence[MetadataOrder], kind: int = TYPE_PARTIAL
    ) -> UpdateMetadataRequest:
        return update_metadata(self._sender, broker.epoch, orders, self._cluster.brokers, kind)


def _is_same(told: BrokerImage | None, broker: BrokerImage) -> bool:
    return told is not None and told.epoch == broker.epoch


def _public(broker: BrokerImage) -> BrokerImage:
    """As others see it."""
    return broker._replace(after_crash=False)
