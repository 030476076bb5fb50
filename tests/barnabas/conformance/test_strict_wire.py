import socket
import struct

import pytest

from barnabas.client.connection import Address
from barnabas.conformance.strict_wire import Asked, Deadline, StrictWire, decode
from barnabas.conformance.verdict import Failed
from barnabas.protocol.api import ApiKey
from barnabas.protocol.encoder import encode
from barnabas.protocol.frames import framed
from barnabas.protocol.headers import ResponseHeader
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
ASKED = Asked(ApiKey.HEARTBEAT, 4, 7)
WHOLE = encode(ResponseHeader(correlation_id=7), 1) + encode(HeartbeatResponse(error_code=27), 4)


def test_an_answer_is_read_to_its_last_byte():
    assert decode(WHOLE, ASKED).error_code == 27


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        (WHOLE + b"\0", "1 byte over"),
        (WHOLE + b"\0\0", "2 bytes over"),
        (WHOLE[:-1], "HeartbeatResponse v4: cut short at byte 5"),
        (struct.pack(">i", 8) + WHOLE[4:], "one with 8"),
        (b"\0", "a frame of 1 bytes"),
    ],
)
def test_an_incomplete_answer_or_one_to_another_request_is_a_failure(body, seen):
    with pytest.raises(Failed) as failure:
        decode(body, ASKED)
    assert failure.value.seen == seen


@pytest.fixture
def peer():
    """The other end, which sends what a test tells it to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def connect(peer, seconds=30.0):
    wire = StrictWire(Address(*peer.getsockname()), Deadline(seconds))
    return wire, peer.accept()[0]


def test_a_question_and_its_answer(peer):
    wire, other = connect(peer)
    with other:
        wire.send(ApiKey.HEARTBEAT, HEARTBEAT, 4)
        answer = struct.pack(">i", 1) + WHOLE[4:]
        other.sendall(framed(answer))
        assert wire.answer().error_code == 27
    wire.close()


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        (b"", "the connection was closed"),
        (b"\0\0", "the connection was closed after 2 bytes of a frame"),
        (b"\0\0\0\x09abc", "the connection was closed 6 bytes before the frame's end"),
        (b"\xff\xff\xff\xff", "a frame whose size is -1"),
    ],
)
def test_an_answer_that_breaks_off(peer, sent, seen):
    wire, other = connect(peer)
    wire.send(ApiKey.HEARTBEAT, HEARTBEAT, 4)
    with other:
        other.recv(1000)  # closing with unread data would send a reset
        other.sendall(sent)
    with pytest.raises(Failed) as failure:
        wire.answer()
    assert failure.value.seen == seen
    assert failure.value.expected == "a response to Heartbeat v4"
    wire.close()


def test_an_answer_that_does_not_come_ends_with_the_checks_time(peer):
    wire, other = connect(peer, seconds=0.2)
    with other:
        wire.send(ApiKey.HEARTBEAT, HEARTBEAT, 4)
        with pytest.raises(Failed, match=r"nothing within the check's limit of 0\.2 s"):
            wire.answer()
        with pytest.raises(Failed, match="no result within its limit"):
            wire.send(ApiKey.HEARTBEAT, HEARTBEAT, 4)
    wire.close()


def test_nothing_listens_at_the_other_end():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address(*listener.getsockname())
    with pytest.raises(Failed) as failure:
        StrictWire(address, Deadline(30.0))
    assert failure.value.expected == "a connection"
