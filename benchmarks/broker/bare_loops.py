"""The physical limit: how much one Python thread can move through the kernel without any protocol.

The write loop receives, writes what it received to a file and answers with fixed bytes; the send loop answers with
fixed bytes and a slice of a file by sendfile. Both know the request size in advance and do not parse anything. The load
clients cannot tell them from a broker. A loop serves one load and ends when its first connection closes.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.synchronize import Event
from typing import Final, NamedTuple

import psutil

BUFFER_BYTES: Final = 256 * 1024
SEND_BUFFER_BYTES: Final = 256 * 1024
SLICE_BYTES: Final = 1024 * 1024
START_TIMEOUT: Final = 30.0


class BareLoop(NamedTuple):
    port: int
    process: psutil.Process


def write_loop(request_size: int, answer: bytes) -> AbstractContextManager[BareLoop]:
    return _process(_receive_and_write, request_size, answer)


def send_loop(request_size: int, answer_size: int, file_bytes: int) -> AbstractContextManager[BareLoop]:
    """Every response is the next slice of a file of `file_bytes`, which is in the page cache."""
    return _process(_send_file, request_size, answer_size, file_bytes)


@contextmanager
def _process(loop: Callable[..., None], *arguments: object) -> Iterator[BareLoop]:
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        process = context.Process(target=loop, args=(listener, ready, *arguments), daemon=True)
        process.start()
        try:
            if not ready.wait(START_TIMEOUT):
                raise TimeoutError("the bare loop did not start")
            yield BareLoop(listener.getsockname()[1], psutil.Process(process.pid))
        finally:
            process.kill()
            process.join()


def _receive_and_write(listener: socket.socket, ready: Event, request_size: int, answer: bytes) -> None:
    buffer = memoryview(bytearray(BUFFER_BYTES))
    partial: dict[int, int] = {}
    connections: dict[int, socket.socket] = {}
    with tempfile.TemporaryFile() as file, select.epoll() as poll:
        target = file.fileno()
        poll.register(listener, select.EPOLLIN)
        ready.set()
        while True:
            for number, _ in poll.poll():
                if number == listener.fileno():
                    connection = _accept(listener, poll)
                    connections[connection.fileno()] = connection
                    partial[connection.fileno()] = 0
                    continue
                connection = connections[number]
                received = connection.recv_into(buffer)
                if not received:
                    return
                os.write(target, buffer[:received])
                requests, partial[number] = divmod(partial[number] + received, request_size)
                if requests:
                    connection.send(answer * requests)


def _send_file(listener: socket.socket, ready: Event, request_size: int, answer_size: int, file_bytes: int) -> None:
    head = struct.pack(">i", answer_size)
    connections: dict[int, socket.socket] = {}
    sending: dict[int, tuple[int, int]] = {}  # the position in the file, and how much of the response is left
    following = 0
    # The client disconnects in the middle of a response.
    with suppress(ConnectionError), tempfile.TemporaryFile() as file, select.epoll() as poll:
        source = file.fileno()
        os.write(source, bytes(file_bytes))
        poll.register(listener, select.EPOLLIN)
        ready.set()
        while True:
            for number, event in poll.poll():
                if number == listener.fileno():
                    connection = _accept(listener, poll)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
                    connections[connection.fileno()] = connection
                    continue
                connection = connections[number]
                if event & select.EPOLLOUT:
                    position, left = sending[number]
                    sent = os.sendfile(number, source, position, min(left, SLICE_BYTES))
                    sending[number] = position + sent, left - sent
                    if sent == left:
                        poll.modify(number, select.EPOLLIN)
                elif connection.recv(request_size):
                    connection.send(head, socket.MSG_MORE)
                    sending[number] = following, answer_size
                    following = (following + answer_size) % file_bytes
                    poll.modify(number, select.EPOLLOUT)
                else:
                    return


def _accept(listener: socket.socket, poll: select.epoll) -> socket.socket:
    connection, _ = listener.accept()
    connection.setblocking(False)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    poll.register(connection, select.EPOLLIN)
    return connection
