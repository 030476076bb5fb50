"""Range: the worked examples that people learn from, and kafka-python's own assignor on the same groups."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.range import RangePartitionAssignor

from barnabas.client.range_assignor import assign
from barnabas.protocol.topic_partition import TopicPartition


def test_two_topics_of_three_partitions_and_two_members():
    """Each topic by itself, so the first member gets two of each: four and two."""
    assigned = assign({"a": ["x", "y"], "b": ["x", "y"]}, {"x": 3, "y": 3})
    assert assigned == {
        "a": [TopicPartition("x", 0), TopicPartition("x", 1), TopicPartition("y", 0), TopicPartition("y", 1)],
        "b": [TopicPartition("x", 2), TopicPartition("y", 2)],
    }


def test_more_members_than_partitions():
    assigned = assign({"a": ["x"], "b": ["x"], "c": ["x"]}, {"x": 2})
    assert [len(assigned[member]) for member in "abc"] == [1, 1, 0]


def test_only_readers_of_a_topic_get_it():
    assigned = assign({"a": ["x"], "b": ["y"], "c": []}, {"x": 2, "y": 1, "z": 5})
    assert assigned == {"a": [TopicPartition("x", 0), TopicPartition("x", 1)], "b": [TopicPartition("y", 0)], "c": []}


def test_an_unknown_topic_is_left_out():
    assert assign({"a": ["gone"]}, {}) == {"a": []}


@given(
    subscriptions=st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("xyz")), min_size=1),
    counts=st.dictionaries(st.sampled_from("xyz"), st.integers(1, 12)),
)
def test_the_same_as_kafka_pythons(subscriptions, counts):
    ours = assign({member: sorted(subscriptions[member]) for member in sorted(subscriptions)}, counts)
    cluster = SimpleNamespace(
        partitions_for_topic=lambda topic: set(range(counts[topic])) if topic in counts else None,
    )
    members = [
        SimpleNamespace(member_id=member, group_instance_id=None, metadata=SimpleNamespace(topics=sorted(topics)))
        for member, topics in subscriptions.items()
    ]
    theirs = RangePartitionAssignor.assign(cluster, members)
    assert ours == {
        member: [TopicPartition(*each) for each in assignment.partitions()] for member, assignment in theirs.items()
    }
