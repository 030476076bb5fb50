import socket
import struct

import pytest

from broker.cli.client.connection import Address
from broker.cli.conformance.verdict import Failed
from broker.cli.conformance.wire import Asked, Deadline, Wire, decode
from protocol.api import ApiKey
from protocol.encoder import encode
from protocol.headers import ResponseHeader
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

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
def test_an_answer_that_is_not_whole_or_not_the_one_that_is_due_is_a_failure(body, seen):
    with pytest.raises(Failed) as failure:
        decode(body, ASKED)
    assert failure.value.seen == seen


@pytest.fixture
def peer():
    """The other end, which says what a test lets it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def connect(peer, seconds=30.0):
    wire = Wire(Address(*peer.getsockname()), Deadline(seconds))
    return wire, peer.accept()[0]


def test_a_question_and_its_answer(peer):
    wire, other = connect(peer)
    with other:
        wire.send(ApiKey.HEARTBEAT, HEARTBEAT, 4)
        answer = struct.pack(">i", 1) + WHOLE[4:]
        other.sendall(struct.pack(">i", len(answer)) + answer)
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
        other.recv(1000)  # what is not read would make closing a reset
        other.sendall(sent)
    with pytest.raises(Failed) as failure:
        wire.answer()
    assert failure.value.seen == seen
    assert failure.value.expected == "an answer to Heartbeat v4"
    wire.close()


def test_an_answer_that_does_not_come_ends_with_the_checks_time(peer):
    wire, other = connect(peer, seconds=0.2)
    with other:
        wire.send(ApiKey.HEARTBEAT, HEARTBEAT, 4)
        with pytest.raises(Failed, match=r"nothing within the check's limit of 0\.2 s"):
            wire.answer()
        with pytest.raises(Failed, match="nothing decided within its limit"):
            wire.send(ApiKey.HEARTBEAT, HEARTBEAT, 4)
    wire.close()


def test_nobody_at_the_other_end():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address(*listener.getsockname())
    with pytest.raises(Failed) as failure:
        Wire(address, Deadline(30.0))
    assert failure.value.expected == "a connection"
