"""broker.replica.follower_session: which parts of a fetch have to be sent."""

from barnabas.broker.replica.follower_session import FollowerSession, Wanted

T, U = b"t" * 16, b"u" * 16


def wanted(**offsets):
    """Partitions such as t0=5: topic t, partition 0, from offset 5."""
    return {
        ({"t": T, "u": U}[name[0]], int(name[1:])): Wanted(0, offset, -1, 0, 1000) for name, offset in offsets.items()
    }


def sent(session, partitions):
    topics, forgotten = session.request(partitions)
    return (
        {(topic.topic_id, each.partition): each.fetch_offset for topic in topics for each in topic.partitions},
        {(topic.topic_id, index) for topic in forgotten for index in topic.partitions},
    )


def test_the_first_fetch_names_everything():
    session = FollowerSession()
    assert (session.session_id, session.epoch) == (0, 0)
    assert sent(session, wanted(t0=5, u1=7)) == ({(T, 0): 5, (U, 1): 7}, set())


def test_later_fetches_name_what_changed():
    session = FollowerSession()
    session.request(wanted(t0=5, u1=7))
    session.answered(99)
    assert (session.session_id, session.epoch) == (99, 1)
    assert sent(session, wanted(t0=6, u1=7)) == ({(T, 0): 6}, set())
    session.answered(99)
    assert session.epoch == 2
    assert sent(session, wanted(t0=6)) == ({}, {(U, 1)})


def test_a_leader_without_room_for_a_session_is_told_everything_each_time():
    session = FollowerSession()
    session.request(wanted(t0=5))
    session.answered(0)
    assert sent(session, wanted(t0=5)) == ({(T, 0): 5}, set())


def test_a_lost_session_is_replaced_by_a_new_one():
    session = FollowerSession()
    session.request(wanted(t0=5, u1=7))
    session.answered(99)
    session.start_anew()
    assert (session.session_id, session.epoch) == (0, 0)
    assert sent(session, wanted(t0=5)) == ({(T, 0): 5}, set())


def test_a_session_is_repeated_in_a_new_one_that_ends_it():
    session = FollowerSession()
    session.request(wanted(t0=5, u1=7))
    session.answered(99)
    session.repeat()
    assert (session.session_id, session.epoch) == (99, 0)
    assert sent(session, wanted(t0=5)) == ({(T, 0): 5}, set())
    session.answered(100)
    assert (session.session_id, session.epoch) == (100, 1)


def test_epochs_wrap_to_one():
    session = FollowerSession()
    session.epoch = 2**31 - 1
    session.answered(99)
    assert session.epoch == 1
