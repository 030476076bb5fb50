"""A rebalance in words: why it began, who was late, what moved."""

import pytest

from barnabas.broker.console.stories import duration, told
from barnabas.broker.group.classic.story import Story
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, with_version
from tests.broker.group.classic.test_story import member

A, B = "billing-1-11111111-2222-3333-4444-555555555555", "billing-2-aaaaaaaa-2222-3333-4444-555555555555"


def having(member_id, *partitions):
    assigned = [TopicPartition(topic="orders", partitions=list(partitions))]
    data = with_version(ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=None), 0)
    found = member(member_id, data)
    found.client_id = member_id[:9]
    return found


def first_generation():
    story = Story()
    story.note(1000, A, "joins")
    story.begin(1000, f"a member joined: {A}")
    story.all_joined(4000, 1, A, "range", [having(A)])
    story.assigned(4005, [having(A, 0, 1)])
    return story


def test_the_first_member():
    words = told(first_generation().rebalances[-1])["words"]
    assert words == [
        "It began because a member joined: billing-1.",
        "After 3.0 s its member had joined.",
        "5 ms later billing-1, the leader, had assigned the partitions with range.",
        "Moved to billing-1: orders 0-1.",
    ]


def test_what_moved_is_told_by_members_and_in_ranges():
    story = first_generation()
    story.begin(9000, f"a member joined: {B}")
    story.all_joined(9250, 2, A, "range", [having(A), having(B)])
    story.assigned(9260, [having(A, 0, 5), having(B, 1, 2, 3, 7)])
    moved = told(story.rebalances[-1])["words"][-1]
    assert moved == "Moved from billing-1 to billing-2: orders 1; to billing-2: orders 2-3, 7; to billing-1: orders 5."


def test_a_second_member_takes_something_over():
    story = first_generation()
    story.note(9000, B, "joins")
    story.begin(9000, f"a member joined: {B}")
    story.note(9250, A, "joins again")
    story.all_joined(9250, 2, A, "range", [having(A), having(B)])
    story.assigned(9260, [having(A, 0), having(B, 1)])
    found = told(story.rebalances[-1])
    assert found["words"][0] == "It began because a member joined: billing-2."
    assert found["words"][1] == "After 250 ms both members had joined; billing-1 came last."
    assert found["words"][-1] == "Moved from billing-1 to billing-2: orders 1."
    assert found["moves"] == [{"topic": "orders", "partition": 1, "from": A, "to": B}]
    assert [each["name"] for each in found["members"]] == ["billing-1", "billing-2"]


def test_a_member_that_fell_silent():
    story = first_generation()
    silence = "its session timed out after 45 s without a heartbeat"
    story.note(50_000, A, silence)
    story.begin(50_000, f"a member is gone: {A}, {silence}")
    story.all_joined(50_000, 2, None, None, [])
    words = told(story.rebalances[-1])["words"]
    assert words[0] == f"It began because a member is gone: billing-1, {silence}."
    assert words[-1] == "After 0 ms nobody was left in the group."


def test_one_that_is_still_going_on():
    story = Story()
    story.begin(1000, f"a member joined: {A}")
    assert told(story.rebalances[-1])["words"][-1] == "It waits for members to join."
    story.all_joined(4000, 1, A, "range", [having(A)])
    assert "to say who gets what" in told(story.rebalances[-1])["words"][-1]


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1900, "1.9 s"),
        (59_949, "59.9 s"),
        (59_960, "1 min"),
        (552_000, "9 min 12 s"),
        (3_600_000, "1 h"),
        (90_000_000, "25 h"),
        (7_530_000, "2 h 5 min"),
    ],
)
def test_how_long_something_took_as_people_say_it(ms, words):
    assert duration(ms) == words
