"""The number that stands for the topics that a group reads."""

import pytest

from barnabas.broker.group.topics import ids_of, metadata_hash, partitions_of
from tests.broker.group.harness import FewTopics, topic_id


@pytest.fixture
def topics():
    few = FewTopics()
    few.create("t", 2)
    return few


def test_it_is_0_without_topics(topics):
    assert metadata_hash([], topics) == metadata_hash(["nowhere"], topics) == 0


def test_it_changes_with_what_matters_to_an_assignment(topics):
    before = metadata_hash(["t"], topics)
    assert metadata_hash(["nowhere", "t"], topics) == before
    seen = {before}
    topics.create("u", 1)
    seen.add(metadata_hash(["t", "u"], topics))
    topics.create("t", 3)
    seen.add(metadata_hash(["t"], topics))
    topics.create("t", 3, racks=["a", "b"])
    seen.add(metadata_hash(["t"], topics))
    topics.create("t", 3, racks=["a", "c"])
    seen.add(metadata_hash(["t"], topics))
    assert len(seen) == 5


def test_assignors_are_told_of_topics_that_exist(topics):
    topics.create("r", 1, racks=["a", None])
    assert ids_of(["r", "nowhere"], topics) == {topic_id("r")}
    (found,) = partitions_of(["r", "nowhere"], topics).values()
    assert (found.count, found.racks) == (1, (frozenset({"a"}),))
