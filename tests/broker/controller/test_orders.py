"""What brokers are ordered after a change: nothing is forgotten, and nothing comes in the wrong order."""

from dataclasses import replace

from barnabas.broker.controller.cluster_image import TopicChange
from barnabas.broker.controller.images import LEADER_DURING_DELETE, BrokerImage, Endpoint, PartitionImage, TopicImage
from barnabas.broker.controller.orders import (
    EPOCH_DURING_DELETE,
    TYPE_FULL,
    Sender,
    everything_for,
    leader_and_isr,
    orders_of,
    stop_replica,
    update_metadata,
)

LIVE = {1, 2, 3}


def topic(*partitions: PartitionImage, topic_id: bytes = b"1" * 16) -> TopicImage:
    return TopicImage("t", topic_id, partitions, {}, 0)


def partition(
    leader: int = 1,
    epoch: int = 0,
    isr: tuple[int, ...] = (1, 2),
    replicas: tuple[int, ...] = (1, 2),
    version: int = 0,
) -> PartitionImage:
    return PartitionImage(0, replicas, leader, epoch, isr, version)


def test_a_new_topic_is_ordered_to_its_replicas_and_announced_to_all() -> None:
    (orders,) = orders_of([TopicChange(None, topic(partition()))], LIVE)
    assert sorted(orders.leaders) == [1, 2]
    assert all(order.is_new for order in orders.leaders[2])
    assert [order.partition for order in orders.metadata] == [partition()]
    assert not orders.stops


def test_a_new_leader_is_ordered_and_no_longer_new() -> None:
    change = TopicChange(topic(partition()), topic(partition(2, 1, (2,), version=1)))
    (orders,) = orders_of([change], {2, 3})
    assert sorted(orders.leaders) == [1, 2]
    assert not orders.leaders[2][0].is_new
    assert orders.metadata[0].offline_replicas == (1,)


def test_a_changed_isr_is_announced_but_not_ordered() -> None:
    change = TopicChange(topic(partition()), topic(partition(isr=(1,), version=1)))
    (orders,) = orders_of([change], LIVE)
    assert not orders.leaders
    assert len(orders.metadata) == 1


def test_changed_settings_are_neither_announced_nor_ordered() -> None:
    before = topic(partition())
    (orders,) = orders_of([TopicChange(before, replace(before, configs={"a": "b"}))], LIVE)
    assert not any(orders)


def test_a_replica_that_went_is_stopped_with_the_epoch_in_which_it_went() -> None:
    change = TopicChange(topic(partition()), topic(partition(2, 5, (2, 3), (2, 3), 1)))
    (orders,) = orders_of([change], LIVE)
    assert sorted(orders.leaders) == [2, 3]
    assert orders.stops == {1: [("t", 0, 5, True)]}


def test_a_partition_without_a_state_waits_for_it() -> None:
    unborn = PartitionImage(0, (1, 2))
    assert [order for order in orders_of([TopicChange(None, topic(unborn))], LIVE) if any(order)] == []
    (orders,) = orders_of([TopicChange(topic(unborn), topic(partition()))], LIVE)
    assert orders.leaders[1][0].is_new


def test_a_deleted_topic_is_announced_and_stopped() -> None:
    (orders,) = orders_of([TopicChange(topic(partition()), None)], LIVE)
    assert orders.metadata[0].partition.leader_id == LEADER_DURING_DELETE
    assert orders.stops == {each: [("t", 0, EPOCH_DURING_DELETE, True)] for each in (1, 2)}


def test_a_topic_that_is_recreated_at_once_is_deleted_first() -> None:
    change = TopicChange(topic(partition()), topic(partition(3, 0, (3,), (3,)), topic_id=b"2" * 16))
    deleted, created = orders_of([change], LIVE)
    assert sorted(deleted.stops) == [1, 2]
    assert not deleted.leaders
    assert sorted(created.leaders) == [3]
    assert created.leaders[3][0].is_new
    assert not created.stops


def test_everything_is_what_a_broker_has_and_what_all_have() -> None:
    led, other = partition(), PartitionImage(1, (2, 3), 2, 0, (2, 3), 0)
    leaders, metadata = everything_for(3, [topic(led, other, PartitionImage(2, (3,)))], LIVE)
    assert [order.partition for order in leaders] == [other]
    assert [order.partition for order in metadata] == [led, other]


def test_the_messages() -> None:
    sender, brokers = Sender(2, 7), {1: BrokerImage(1, (Endpoint("IN", "SSL", "h", 1), Endpoint("OUT", "SSL", "x", 2)))}
    image = topic(partition(), partition()._replace(partition_index=1))
    (orders,) = orders_of([TopicChange(None, image)], LIVE)
    order = leader_and_isr(sender, 44, orders.leaders[1], brokers, "IN", TYPE_FULL)
    assert (order.controller_id, order.controller_epoch, order.broker_epoch, order.type) == (2, 7, 44, 2)
    assert [state.partition_index for state in order.topic_states[0].partition_states] == [0, 1]
    assert [(each.broker_id, each.host_name, each.port) for each in order.live_leaders] == [(1, "h", 1)]
    told = update_metadata(sender, 44, orders.metadata, brokers)
    assert [(each.listener, each.security_protocol) for each in told.live_brokers[0].endpoints] == [
        ("IN", 1),
        ("OUT", 1),
    ]
    (deleted,) = orders_of([TopicChange(image, None)], LIVE)
    stop = stop_replica(sender, 44, deleted.stops[1])
    assert [state.leader_epoch for state in stop.topic_states[0].partition_states] == [-2, -2]
