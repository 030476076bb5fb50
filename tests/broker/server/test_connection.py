"""Connections, as the bytes go over a real socket: pipelining, odd cuts, large frames, slow and broken clients."""

import asyncio
import itertools
import os
import struct

import pytest
from structlog.testing import capture_logs

from barnabas.broker.server import connection as connection_module
from barnabas.broker.server.buffers import SMALLEST
from barnabas.broker.server.dispatch import Api
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import framed
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.open_files import Handle
from barnabas.storage.segment import FileSlice
from tests.broker.server.harness import connected, frame, serving
from tests.support.compiled import replaces_a_method

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def answer_at_once(request, message):
    return HeartbeatResponse()


def echo(request, message):
    return SyncGroupResponse(assignment=message.member_id.encode())


def sync_group(text):
    return SyncGroupRequest(group_id="g", generation_id=1, member_id=text, assignments=[])


AT_ONCE = Api(ApiKey.HEARTBEAT, answer_at_once)
ECHO = Api(ApiKey.SYNC_GROUP, echo)


class Parking:
    """A handler that keeps requests until the test answers them."""

    def __init__(self):
        self.requests = asyncio.Queue()
        self.abandoned = asyncio.Event()

    def __call__(self, request, message):
        request.on_abandon = self.abandoned.set
        self.requests.put_nowait((request, message))


async def test_requests_that_arrive_together_are_answered_in_their_order():
    async with serving(AT_ONCE) as server, connected(server) as client:
        client.send(b"".join(frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=n) for n in range(50)))
        assert [(await client.answer(ApiKey.HEARTBEAT))[0] for _ in range(50)] == list(range(50))


async def test_a_request_may_arrive_byte_by_byte():
    async with serving(ECHO) as server, connected(server) as client:
        for byte in frame(ApiKey.SYNC_GROUP, sync_group("hello")):
            client.send(bytes([byte]))
            await client.writer.drain()
        assert (await client.answer(ApiKey.SYNC_GROUP))[1].assignment == b"hello"


async def test_the_next_request_waits_for_the_answer_to_the_former():
    parking = Parking()
    async with serving(Api(ApiKey.HEARTBEAT, parking), ECHO) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT) + frame(ApiKey.SYNC_GROUP, sync_group("x"), correlation_id=2))
        request, _ = await parking.requests.get()
        (connection,) = server.connections
        assert list(connection.requests) == [request]  # the second one is not started
        request.answer(HeartbeatResponse())
        assert (await client.answer(ApiKey.HEARTBEAT))[0] == 1
        assert (await client.answer(ApiKey.SYNC_GROUP))[0] == 2


async def test_produces_that_arrive_together_are_started_together_and_answered_in_order():
    begun = asyncio.Queue()

    def produce(request, message):
        request.connection.append_is_due()
        begun.put_nowait(request)

    async with serving(Api(ApiKey.PRODUCE, produce), AT_ONCE) as server, connected(server) as client:
        message = ProduceRequest(acks=1, timeout_ms=1, topic_data=[])
        client.send(
            b"".join(frame(ApiKey.PRODUCE, message, version=9, correlation_id=n) for n in (1, 2, 3))
            + frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=4)
        )
        requests = [await begun.get() for _ in range(3)]
        for request in reversed(requests):  # even if they are done in another order
            request.connection.appended()
            request.answer(ProduceResponse(responses=[]))
        assert [(await client.answer(ApiKey.PRODUCE, 9))[0] for _ in range(3)] == [1, 2, 3]
        assert (await client.answer(ApiKey.HEARTBEAT))[0] == 4


async def test_a_request_without_an_answer_lets_the_next_one_pass():
    def silent(request, message):
        request.drop_answer()

    async with serving(Api(ApiKey.PRODUCE, silent), AT_ONCE) as server, connected(server) as client:
        message = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
        client.send(frame(ApiKey.PRODUCE, message, version=9) + frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=7))
        assert (await client.answer(ApiKey.HEARTBEAT))[0] == 7


async def test_a_coroutine_may_handle_a_request():
    async def slow(request, message):
        await asyncio.sleep(0)
        return HeartbeatResponse(throttle_time_ms=5)

    async with serving(Api(ApiKey.HEARTBEAT, slow)) as server, connected(server) as client:
        assert (await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, version=1)).throttle_time_ms == 5


async def test_a_client_whose_requests_take_long_lets_others_have_their_turn(monkeypatch):
    handled = []

    def handle(request, message):
        handled.append(request.client_id)
        return HeartbeatResponse()

    async with (
        serving(Api(ApiKey.HEARTBEAT, handle)) as server,
        connected(server) as slow,
        connected(server) as other,
    ):
        await slow.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        monkeypatch.setattr(
            connection_module, "perf_counter", itertools.count(0.0).__next__
        )  # each request takes a second
        slow.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, client_id="slow") * 10)
        other.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, client_id="other"))
        await other.answer(ApiKey.HEARTBEAT)
        for _ in range(10):
            await slow.answer(ApiKey.HEARTBEAT)
    assert handled.index("other") < 5


async def test_a_client_that_sends_very_much_at_once_lets_others_have_their_turn():
    handled = []

    def handle(request, message):
        handled.append(request.client_id)
        return HeartbeatResponse()

    async with (
        serving(Api(ApiKey.HEARTBEAT, handle)) as server,
        connected(server) as greedy,
        connected(server) as other,
    ):
        greedy.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, client_id="greedy") * 500)
        other.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, client_id="other"))
        await other.answer(ApiKey.HEARTBEAT)
        assert handled.index("other") < 100
        for _ in range(500):
            await greedy.answer(ApiKey.HEARTBEAT)
        assert len(handled) == 501


@replaces_a_method
async def test_a_very_large_frame_is_not_copied_again_and_again():
    async with serving(ECHO, socket_request_max_bytes=200_000_000) as server, connected(server) as client:
        taken = []
        take = server.buffers.take
        server.buffers.take = lambda size=SMALLEST: taken.append(size) or take(size)
        text = "x" * 30_000
        assignments = [SyncGroupRequestAssignment(member_id="m", assignment=bytes(15_000_000))]
        request = SyncGroupRequest(group_id="g", generation_id=1, member_id=text, assignments=assignments)
        response = await client.ask(ApiKey.SYNC_GROUP, request)
        assert response.assignment == text.encode()
        # Twice as large until it has shown that it is large.
        assert [size for size in taken if size > 4 * 1024 * 1024] == [pytest.approx(15_030_000, rel=0.01)]


async def test_what_arrives_while_a_frame_is_decoded_in_pieces_does_not_disturb_it():
    def names(request, message):
        return SyncGroupResponse(assignment=",".join(each.member_id for each in message.assignments).encode())

    async with serving(Api(ApiKey.SYNC_GROUP, names), AT_ONCE) as server, connected(server) as client:
        wanted = [f"member{number}" for number in range(20_000)]
        request = sync_group("m")
        request.assignments += [SyncGroupRequestAssignment(member_id=name, assignment=b"") for name in wanted]
        for _ in range(3):
            client.send(frame(ApiKey.SYNC_GROUP, request) + frame(ApiKey.HEARTBEAT, HEARTBEAT))
        for _ in range(3):
            assert (await client.answer(ApiKey.SYNC_GROUP))[1].assignment == ",".join(wanted).encode()
            await client.answer(ApiKey.HEARTBEAT)
        (connection,) = server.connections
        assert not connection._buffer


async def test_a_buffer_grows_for_a_large_frame_and_goes_back_to_the_pool():
    def count(request, message):
        return SyncGroupResponse(assignment=str(len(message.assignments[0].assignment)).encode())

    async with serving(Api(ApiKey.SYNC_GROUP, count)) as server, connected(server) as client:
        for size in (5 * SMALLEST, *[10] * 10):
            message = sync_group("m")
            message.assignments.append(SyncGroupRequestAssignment(member_id="m", assignment=b"x" * size))
            response = await client.ask(ApiKey.SYNC_GROUP, message)
            assert response.assignment == str(size).encode()
            (connection,) = server.connections
            assert not connection._buffer
        assert connection._wanted == SMALLEST


async def test_a_frame_gets_memory_as_its_bytes_arrive_and_not_by_its_declared_size():
    async with serving(AT_ONCE) as server, connected(server) as client:
        client.send(struct.pack(">i", 90_000_000) + b"\0" * 100)
        await client.writer.drain()
        async with connected(server) as other:  # once this is answered, the first connection's bytes have been read too
            await other.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert max(len(c._buffer) for c in server.connections if c._buffer) <= SMALLEST


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">i", -1), "a frame of -1 bytes"),
        (struct.pack(">i", 2**31 - 1), "a frame of 2147483647 bytes"),
        (b"GET / HTTP/1.1\r\n\r\n", "looks like HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "looks like TLS"),
        (struct.pack(">i", 3) + b"abc", "holds no request header"),
        (struct.pack(">ihhih", 10, 999, 0, 1, -1), "no API has key 999"),
        (struct.pack(">ihhih", 10, 12, 99, 1, -1), "Heartbeat has no version 99"),
        (struct.pack(">ihhih", 10, 12, 0, 1, 500), "cut short"),
        (struct.pack(">ihhih", 10, 12, 0, 1, -5), "a client id of length -5"),
        (struct.pack(">ihhih", 12, 12, 0, 1, -1) + b"\0\5", "HeartbeatRequest v0: cut short"),
    ],
)
async def test_garbage_closes_its_own_connection_with_one_log_line(data, reason):
    async with serving(AT_ONCE) as server, connected(server) as other:
        with capture_logs() as logs:
            async with connected(server) as client:
                client.send(data)
                assert await client.closed()
        assert [entry["event"] for entry in logs] == ["connection closed"]
        assert reason in logs[0]["reason"]
        assert logs[0]["peer"].startswith("127.0.0.1:")
        await other.ask(ApiKey.HEARTBEAT, HEARTBEAT)


async def test_bytes_after_a_request_are_ignored_as_in_kafka():
    async with serving(AT_ONCE) as server, connected(server) as client:
        body = frame(ApiKey.HEARTBEAT, HEARTBEAT)[4:] + b"x"
        client.send(framed(body))
        assert (await client.answer(ApiKey.HEARTBEAT))[0] == 1


async def test_half_a_frame_and_a_hang_up_leave_one_log_line():
    async with serving(AT_ONCE) as server:
        with capture_logs() as logs:
            async with connected(server) as client:
                client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT)[:9])
                client.writer.write_eof()
                assert await client.closed()
        assert [entry["reason"] for entry in logs] == ["half a frame"]


async def test_what_a_client_sent_before_it_hung_up_is_carried_out():
    """A producer that wants no answers closes its connection when it has sent everything."""
    handled = asyncio.Queue()

    def silent(request, message):
        handled.put_nowait(request.correlation_id)
        request.drop_answer()

    async with serving(Api(ApiKey.PRODUCE, silent)) as server:
        message = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
        with capture_logs() as logs:
            async with connected(server) as client:  # more than are started in one turn
                client.send(b"".join(frame(ApiKey.PRODUCE, message, 9, number) for number in range(200)))
                client.writer.write_eof()
                assert await client.closed()
        assert [handled.get_nowait() for _ in range(handled.qsize())] == list(range(200))
        assert not logs


async def test_a_frame_that_is_decoded_in_pieces_is_carried_out_although_its_client_hangs_up():
    handled = asyncio.Queue()

    async with serving(
        Api(ApiKey.SYNC_GROUP, lambda request, message: handled.put_nowait(len(message.assignments)))
    ) as server:
        request = sync_group("m")
        request.assignments += [SyncGroupRequestAssignment(member_id="n", assignment=b"") for _ in range(20_000)]
        async with connected(server) as client:
            client.send(frame(ApiKey.SYNC_GROUP, request))
            client.writer.write_eof()
            assert await handled.get() == 20_000


async def test_a_parked_request_learns_that_its_client_has_gone():
    parking = Parking()
    async with serving(Api(ApiKey.HEARTBEAT, parking)) as server:
        async with connected(server) as client:
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
            request, _ = await parking.requests.get()
        await parking.abandoned.wait()
        request.answer(HeartbeatResponse())  # goes nowhere, and does no harm
        assert not server.connections


async def test_a_parked_request_learns_that_too_if_another_waits_behind_it():
    parking = Parking()
    async with serving(Api(ApiKey.HEARTBEAT, parking), ECHO) as server:
        async with connected(server) as client:
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT) + frame(ApiKey.SYNC_GROUP, sync_group("x")))
            await parking.requests.get()
        await parking.abandoned.wait()
        assert not server.connections


async def test_a_failing_handler_closes_only_the_connection_of_its_client():
    def broken(request, message):
        raise RuntimeError("a bug")

    async with serving(Api(ApiKey.SYNC_GROUP, broken), AT_ONCE) as server, connected(server) as other:
        with capture_logs() as logs:
            async with connected(server) as client:
                client.send(frame(ApiKey.SYNC_GROUP, sync_group("x")))
                assert await client.closed()
        assert logs[0]["event"] == "request failed"
        await other.ask(ApiKey.HEARTBEAT, HEARTBEAT)


async def test_a_client_that_does_not_read_its_answers_stops_being_read():
    begun = 0

    def large(request, message):
        nonlocal begun
        begun += 1
        return SyncGroupResponse(assignment=b"x" * 1_000_000)

    async with serving(Api(ApiKey.SYNC_GROUP, large), AT_ONCE) as server:
        async with connected(server, receive_buffer=4096) as client, connected(server) as other:
            client.reader._transport.pause_reading()
            requests = frame(ApiKey.SYNC_GROUP, sync_group("x")) * 20_000
            client.send(requests)
            while not any(c.requests or c._out for c in server.connections):
                await other.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            for _ in range(200):
                await other.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            assert begun == 1
            (stalled,) = [c for c in server.connections if c._out]
            assert not stalled._reading  # its buffer is full, and the rest waits there
            client.reader._transport.resume_reading()
            for _ in range(3):
                assert len((await client.answer(ApiKey.SYNC_GROUP))[1].assignment) == 1_000_000


def fetch_answer(slice_):
    partition = PartitionData(partition_index=0, high_watermark=1, records=slice_)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition, partition])])


@pytest.fixture
def segment(tmp_path):
    data = os.urandom(3_000_000)
    (tmp_path / "segment").write_bytes(data)
    return Handle(FileSystem(), str(tmp_path / "segment")), data


@pytest.mark.parametrize("send_file", ["_send_file_zero_copy", "send_file_copying"])
async def test_records_go_from_file_to_socket_between_the_bytes_around_them(segment, monkeypatch, send_file):
    monkeypatch.setattr(connection_module, "send_file", getattr(connection_module, send_file))
    handle, data = segment

    def fetch(request, message):
        return fetch_answer(FileSlice(handle, 7, 2_500_000))

    async with serving(Api(ApiKey.FETCH, fetch)) as server, connected(server) as client:
        for version in (4, 12):
            response = await client.ask(
                ApiKey.FETCH, FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), version=version
            )
            for partition in response.responses[0].partitions:
                assert bytes(partition.records) == data[7 : 7 + 2_500_000]


async def test_a_segment_shorter_than_its_slice_closes_the_connection(segment):
    handle, data = segment

    def fetch(request, message):
        return fetch_answer(FileSlice(handle, 0, len(data) + 1))

    async with serving(Api(ApiKey.FETCH, fetch)) as server, connected(server) as client:
        client.send(frame(ApiKey.FETCH, FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), version=4))
        with pytest.raises(asyncio.IncompleteReadError):
            await client.reader.readexactly(2 * len(data))


async def test_a_slow_reader_of_a_file_does_not_stall_the_others(segment):
    handle, data = segment

    def fetch(request, message):
        return fetch_answer(FileSlice(handle, 0, len(data)))

    async with serving(Api(ApiKey.FETCH, fetch), AT_ONCE) as server:
        async with connected(server, receive_buffer=4096) as slow, connected(server) as other:
            slow.reader._transport.pause_reading()
            slow.send(frame(ApiKey.FETCH, FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), version=4))
            for _ in range(100):
                await other.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            slow.reader._transport.resume_reading()
            _, response = await slow.answer(ApiKey.FETCH, 4)
            assert bytes(response.responses[0].partitions[1].records) == data
