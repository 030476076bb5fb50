"""Sends frames over a few connections, and checks that each answer belongs to its request."""

from __future__ import annotations

import select
import socket
import struct
from collections import deque
from random import Random

from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.frames import read_answer
from tests.fuzz.frames import Frame
from tests.fuzz.world import World

_CONNECTIONS = 8
# How long to wait for an answer before the next frame is sent. A request that takes longer is a long poll.
_PATIENCE = 0.02
_MOST_EXPECTED = 3


class Boundaries:
    """Where the broker sees frames start in the bytes that it receives."""

    def __init__(self) -> None:
        self._prefix = b""  # the first bytes of a length of which the rest is missing
        self._missing = 0  # how many bytes of a frame are missing

    def begins_a_frame(self, data: bytes) -> bool:
        """Record what is sent next; true if it starts where the broker expects a frame."""
        begins = not self._prefix and not self._missing
        while data:
            if self._missing:
                taken = min(self._missing, len(data))
                self._missing -= taken
            else:
                taken = min(4 - len(self._prefix), len(data))
                self._prefix += data[:taken]
                if len(self._prefix) == 4:
                    self._missing = max(0, int.from_bytes(self._prefix, "big", signed=True))
                    self._prefix = b""
            data = data[taken:]
        return begins


class Connection:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.expected: deque[Frame] = deque()
        self.received = bytearray()
        self._boundaries = Boundaries()

    def send(self, frame: Frame) -> bool:
        try:
            self.socket.sendall(frame.data)
        except OSError:
            return False
        # What follows a frame that claims more bytes than it has is read as the rest of that frame.
        is_read_as_sent = self._boundaries.begins_a_frame(frame.data)
        self.expected.append(frame if is_read_as_sent else frame._replace(message=None))
        return True

    def receive(self, timeout: float) -> list[bytes] | None:
        """The answers that have arrived, or None if the broker has closed the connection."""
        if not select.select([self.socket], [], [], timeout)[0]:
            return []
        try:
            data = self.socket.recv(1 << 20)
        except OSError:
            return None
        if not data:
            return None
        self.received += data
        answers = []
        while len(self.received) >= 4:
            (size,) = struct.unpack_from(">i", self.received)
            if len(self.received) < 4 + size:
                break
            answers.append(bytes(self.received[4 : 4 + size]))
            del self.received[: 4 + size]
        return answers


class Attacker:
    def __init__(self, seed: int, port: int, world: World) -> None:
        self._random = Random(seed)
        self._port = port
        self._world = world
        self._connections = [Connection(port) for _ in range(_CONNECTIONS)]
        self.answered = 0
        self.closed = 0
        self.problems: list[str] = []

    def send(self, frame: Frame) -> None:
        at = self._random.randrange(_CONNECTIONS)
        connection = self._connections[at]
        if len(connection.expected) >= _MOST_EXPECTED or not connection.send(frame):
            connection = self._reconnect(at)
            connection.send(frame)
        while connection.expected:
            answers = connection.receive(_PATIENCE)
            if answers is None:
                self.closed += 1
                self._reconnect(at)
                return
            if not answers:
                return
            for answer in answers:
                self._look_at(connection, answer)

    def reconnect(self) -> None:
        for at in range(_CONNECTIONS):
            self._reconnect(at)

    def close(self) -> None:
        for connection in self._connections:
            connection.socket.close()

    def _reconnect(self, at: int) -> Connection:
        self._connections[at].socket.close()
        self._connections[at] = Connection(self._port)
        return self._connections[at]

    def _look_at(self, connection: Connection, body: bytes) -> None:
        self.answered += 1
        correlation_id = int.from_bytes(body[:4], "big", signed=True)
        frame = _answered(connection.expected, correlation_id)
        if frame is None:
            self.problems.append(f"an answer to nothing: correlation id {correlation_id}")
        elif frame.message is not None:
            self._learn(frame, body)

    def _learn(self, frame: Frame, body: bytes) -> None:
        try:
            answer = read_answer(body, frame.key, frame.version)
        except ProtocolError as error:
            self.problems.append(f"{frame}: its answer cannot be read: {error}")
            return
        if answer.left_over:
            self.problems.append(f"{frame}: {answer.left_over} bytes follow its answer")
        if frame.message is not None:
            self._world.learn(frame.key, frame.message, answer.message)


def _answered(expected: deque[Frame], correlation_id: int) -> Frame | None:
    """The frame that an answer belongs to. It and the frames before it are no longer expected.

    Frames whose bytes were damaged may have no answer, or one with another correlation id.
    """
    skipped = []
    for frame in expected:
        skipped.append(frame)
        if frame.correlation_id == correlation_id:
            for _ in skipped:
                expected.popleft()
            return frame
        if frame.message is not None and not _may_be_unanswered(frame):
            break
    for frame in skipped:
        if frame.message is None:
            expected.remove(frame)
            return frame
    return None


def _may_be_unanswered(frame: Frame) -> bool:
    """A Produce with acks=0 has no answer."""
    return frame.key == ApiKey.PRODUCE
