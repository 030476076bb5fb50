import pytest

from barnabas.broker.share.sessions import FINAL_EPOCH, SessionKey, ShareSessions
from barnabas.protocol.errors import ErrorCode

A, B, C = ((bytes(16), index) for index in range(3))
KEY = SessionKey("g", "m")


class Connection:
    closed = False


@pytest.fixture
def connection():
    return Connection()


@pytest.fixture
def sessions():
    return ShareSessions(lambda: 2)


def fetch(sessions, connection, epoch, added=(), forgotten=(), key=KEY, acknowledges=False):
    return sessions.fetch(key, epoch, connection, list(added), list(forgotten), acknowledges)


def test_partitions_come_and_go(sessions, connection):
    session = fetch(sessions, connection, 0, [A, B])
    assert session.rotated(0) == [A, B]
    assert fetch(sessions, connection, 1, [C], [A]).rotated(1) == [C, B]
    assert session.epoch == 2


def test_every_request_has_the_next_epoch(sessions, connection):
    fetch(sessions, connection, 0)
    assert fetch(sessions, connection, 2) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.acknowledge(KEY, 2) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.acknowledge(KEY, 0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.acknowledge(KEY, 1) == ErrorCode.NONE
    assert sessions.acknowledge(KEY, FINAL_EPOCH) == ErrorCode.NONE
    assert fetch(sessions, connection, 2).epoch == 3


def test_after_the_last_epoch_comes_the_first(sessions, connection):
    fetch(sessions, connection, 0).epoch = 2**31 - 1
    assert fetch(sessions, connection, 2**31 - 1).epoch == 1


def test_sessions_that_are_not_there(sessions, connection):
    for epoch in (1, FINAL_EPOCH):
        assert fetch(sessions, connection, epoch) == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert sessions.acknowledge(KEY, epoch) == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_session_does_not_begin_with_acknowledgements(sessions, connection):
    assert fetch(sessions, connection, 0, acknowledges=True) == ErrorCode.INVALID_REQUEST


def test_there_is_only_so_much_room(sessions, connection):
    fetch(sessions, connection, 0)
    fetch(sessions, connection, 0, key=SessionKey("g", "n"))
    assert fetch(sessions, connection, 0, key=SessionKey("g", "o")) == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert fetch(sessions, connection, 0).epoch == 1


def test_sessions_end_with_their_connection(sessions, connection):
    fetch(sessions, connection, 0, [A])
    fetch(sessions, Connection(), 0, [A], key=SessionKey("g", "n"))
    (ended,) = sessions.connection_closed(connection)
    assert ended.key == KEY
    assert sessions.are_in("g")
    assert sessions.end(SessionKey("g", "n")) is not None
    assert not sessions.are_in("g")
    assert not len(sessions)
