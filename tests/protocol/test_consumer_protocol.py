"""What consumers tell each other: the same bytes as kafka-python's, whose classes come from Apache Kafka's schemas."""

from random import Random

import pytest
from kafka.protocol.consumer import metadata as kafka_python

from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_with_version,
    with_version,
)
from barnabas.protocol.errors import ProtocolError
from tests.protocol.values import random_value
from tests.support.effort import examples

SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=["orders", "ü"],
    user_data=b"\x01",
    owned_partitions=[TopicPartition(topic="orders", partitions=[0, 2])],
    generation_id=7,
    rack_id="r",
)
ASSIGNMENT = ConsumerProtocolAssignment(
    assigned_partitions=[TopicPartition(topic="orders", partitions=[0, 2])], user_data=None
)


@pytest.mark.parametrize("version", list(ConsumerProtocolSubscription.versions))
def test_the_same_subscription_as_kafka_pythons(version):
    random = Random(version)
    for _ in range(examples(100)):
        ours = random_value(random, ConsumerProtocolSubscription, version)
        their_class = kafka_python.ConsumerProtocolSubscription
        theirs = their_class(
            version=version,
            topics=ours.topics,
            user_data=ours.user_data,
            owned_partitions=[
                their_class.TopicPartition(each.topic, each.partitions) for each in ours.owned_partitions
            ],
            generation_id=ours.generation_id,
            rack_id=ours.rack_id,
        )
        assert with_version(ours, version) == theirs.encode(), ours
        assert read_with_version(ConsumerProtocolSubscription, theirs.encode()) == ours


@pytest.mark.parametrize("version", list(ConsumerProtocolAssignment.versions))
def test_the_same_assignment_as_kafka_pythons(version):
    random = Random(version)
    for _ in range(examples(100)):
        ours = random_value(random, ConsumerProtocolAssignment, version)
        their_class = kafka_python.ConsumerProtocolAssignment
        theirs = their_class(
            version=version,
            assigned_partitions=[
                their_class.TopicPartition(each.topic, each.partitions) for each in ours.assigned_partitions
            ],
            user_data=ours.user_data,
        )
        assert with_version(ours, version) == theirs.encode(), ours
        assert read_with_version(ConsumerProtocolAssignment, theirs.encode()) == ours


@pytest.mark.parametrize("message", [SUBSCRIPTION, ASSIGNMENT])
def test_one_of_a_later_version_is_read_as_far_as_it_is_known(message):
    later = b"\x00\x09" + with_version(message, 3)[2:] + b"a field of version 9"
    assert read_with_version(type(message), later) == message


@pytest.mark.parametrize("message", [SUBSCRIPTION, ASSIGNMENT])
def test_what_is_cut_short_is_refused(message):
    whole = with_version(message, 3)
    for size in range(len(whole)):
        with pytest.raises(ProtocolError):
            read_with_version(type(message), whole[:size])


def test_a_version_below_the_first_is_refused():
    with pytest.raises(ProtocolError, match="no version -1"):
        read_with_version(ConsumerProtocolAssignment, b"\xff\xff" + with_version(ASSIGNMENT, 0)[2:])
