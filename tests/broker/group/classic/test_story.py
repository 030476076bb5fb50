"""What a group remembers of its last rebalances."""

from barnabas.broker.group.classic.member import Member
from barnabas.broker.group.classic.story import Story


def member(member_id, assignment=b""):
    return Member(
        member_id,
        group_instance_id=None,
        client_id=f"client of {member_id}",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        protocol_type="consumer",
        protocols=[],
        assignment=assignment,
    )


def test_a_rebalance_from_its_reason_to_its_end():
    story = Story()
    story.note(10, "a", "joins")
    story.begin(10, "a member joined: a")
    story.note(12, "b", "joins")
    story.all_joined(20, 1, "a", "range", [member("a"), member("b")])
    story.note(21, "a", "asks for its part")
    story.assigned(25, [member("a", b"1"), member("b", b"2")])
    (told,) = story.rebalances
    assert (told.began_ms, told.joined_ms, told.ended_ms, told.generation) == (10, 20, 25, 1)
    assert [(note.at_ms, note.member_id) for note in told.notes] == [(10, "a"), (12, "b"), (21, "a")]
    assert (told.before, told.after) == ({}, {"a": b"1", "b": b"2"})
    assert told.clients == {"a": "client of a", "b": "client of b"}


def test_what_comes_after_the_end_belongs_to_the_next_one():
    story = Story()
    story.begin(10, "first")
    story.all_joined(11, 1, "a", "range", [member("a")])
    story.assigned(12, [member("a", b"1")])
    story.note(99, "a", "it left")
    story.begin(99, "a member left: a")
    story.all_joined(99, 2, None, None, [])
    first, second = story.rebalances
    assert not first.notes
    assert [note.what for note in second.notes] == ["it left"]
    assert second.before == {"a": b"1"}
    assert second.ended_ms == 99  # nobody is left to share out anything


def test_one_that_comes_in_between_ends_the_other():
    story = Story()
    story.begin(10, "first")
    story.note(11, "a", "joins")
    story.note(15, "b", "joins")
    story.begin(15, "a member joined: b")
    first, second = story.rebalances
    assert (first.ended_ms, first.joined_ms) == (15, None)
    assert second.ended_ms is None
    assert [note.member_id for note in first.notes] == ["a"]
    assert [note.member_id for note in second.notes] == ["b"]  # what it did belongs to what it caused


def test_only_the_last_ones_are_kept():
    story = Story()
    for number in range(100):
        story.begin(number, "again")
        for _ in range(1000):
            story.note(number, "a", "joins")
    assert len(story.rebalances) == 20
    assert len(story.rebalances[-1].notes) == 500
