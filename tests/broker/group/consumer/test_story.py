"""What is noted of a consumer group's rebalances, and how the console tells it."""

import pytest

from barnabas.broker.console.stories import told_of
from tests.broker.group.consumer.harness import group_of
from tests.broker.group.harness import GROUP, topic_id


@pytest.fixture
def group():
    return group_of(("t", 4))


def told(group):
    names = {topic_id("t"): "t"}
    return told_of(group.coordinator.shard, group.group, names)


def test_the_first_member(group):
    group.join("first", "t")
    group.settle("first")
    (story,) = told(group)
    assert story["words"] == [
        "It began because a member joined: c.",
        "The broker assigned the partitions with uniform.",
        "After 0 ms every member had its partitions.",
        "Moved to c: t 0-3.",
    ]
    assert story["ended_ms"] is not None


def test_a_second_one_waits_until_the_first_has_let_go(group):
    group.join("first", "t")
    group.settle("first")
    group.join("second", "t")
    group.advance(1000)
    group.beat("first", owned=group.owned["first"])  # it is asked to let go
    story = told(group)[0]
    assert any("that it must let go of partitions; it has not done so yet." in words for words in story["words"])
    assert story["ended_ms"] is None
    group.advance(2000)
    group.settle("first", "second")
    story = told(group)[0]
    assert any("that it must let go of partitions; it did within 2.0 s." in words for words in story["words"])
    assert "After 3.0 s every member had its partitions." in story["words"]
    assert len(story["moves"]) == 2
    assert all((move["from"], move["to"]) == ("first", "second") for move in story["moves"])
    kinds = [note["kind"] for note in story["notes"] if note["member_id"] == "first"]
    assert kinds == ["revoke", "join", "sync"] or kinds == ["revoke", "join", "sync", "sync"]


def test_who_takes_over_from_a_member_that_left_just_before(group):
    group.join("first", "t")
    group.join("second", "t")
    group.advance(1000)
    group.settle("first", "second")
    group.leave("second")
    group.join("third", "t")
    group.advance(1000)
    group.settle("first", "third")
    story = told(group)[0]
    assert {(move["from"], move["to"]) for move in story["moves"]} == {("second", "third")}


def test_a_member_that_falls_silent(group):
    group.join("first", "t")
    group.join("second", "t")
    group.settle("first", "second")
    group.advance(30_000)
    group.beat("first", owned=group.owned["first"])
    group.advance(30_000)
    assert "second" not in group.group.members
    story = told(group)[0]
    assert story["words"][0].endswith(", its session timed out after 45 s without a heartbeat.")


def test_a_heartbeat_that_changes_nothing_notes_nothing(group):
    group.join("first", "t")
    group.settle("first")
    before = told(group)
    group.settle("first")
    assert told(group) == before


def test_only_the_last_ones_are_kept_and_none_of_a_group_that_is_gone(group):
    group.join("first", "t")
    for _ in range(30):
        group.join("other", "t")
        group.leave("other")
    stories = group.coordinator.shard.consumers.stories
    assert len(stories.of(GROUP)) == 20
    group.coordinator.shard.consumers.forget(group.group)
    assert stories.of(GROUP) == ()
