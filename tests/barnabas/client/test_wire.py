"""Frames over a socket, and what may arrive instead of a frame."""

import socket

import pytest

from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.frames import framed
from barnabas.protocol.headers import ResponseHeader
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
ANSWER = encode(ResponseHeader(correlation_id=1), 1) + encode(HeartbeatResponse(error_code=27), 4)


@pytest.fixture
def ends():
    """Both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with Wire("127.0.0.1", listener.getsockname()[1]) as wire:
            broker, _ = listener.accept()
            with broker:
                yield wire, broker


def test_a_question_and_its_answer(ends):
    wire, broker = ends
    broker.sendall(framed(ANSWER))
    assert wire.ask(ApiKey.HEARTBEAT, HEARTBEAT, 4).error_code == 27


def test_an_answer_has_to_fill_its_frame(ends):
    wire, broker = ends
    broker.sendall(framed(ANSWER + b"\0"))
    with pytest.raises(ProtocolError, match="1 bytes follow"):
        wire.ask(ApiKey.HEARTBEAT, HEARTBEAT, 4)


def test_frames_come_one_by_one(ends):
    wire, broker = ends
    broker.sendall(framed(b"one") + framed(b"") + framed(b"three"))
    broker.close()
    assert [wire.receive() for _ in range(4)] == [b"one", b"", b"three", None]


def test_a_connection_that_is_closed_instead_of_an_answer(ends):
    wire, broker = ends
    broker.close()
    with pytest.raises(ConnectionError, match="closed"):
        wire.answer(ApiKey.HEARTBEAT, 4)


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        (b"\0\0", "closed after 2 bytes of a frame"),
        (b"\0\0\0\x09abc", "closed 6 bytes before the frame's end"),
    ],
)
def test_a_frame_that_breaks_off(ends, sent, seen):
    wire, broker = ends
    broker.sendall(sent)
    broker.close()
    with pytest.raises(ConnectionError, match=seen):
        wire.receive()


def test_a_size_that_cannot_be_right(ends):
    wire, broker = ends
    broker.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(ProtocolError, match="a frame whose size is -1"):
        wire.receive()


def test_a_whole_frame_has_to_arrive_in_time(ends):
    wire, broker = ends
    broker.sendall(b"\0\0\0\x09abc")
    with pytest.raises(TimeoutError, match="3 of 9 bytes"):
        wire.receive(timeout=0.01)
