"""broker.interbroker.channel: requests to another broker, over real sockets."""

import asyncio

import pytest

from barnabas.broker.interbroker.channel import Channel, ChannelError
from barnabas.broker.network import Network
from barnabas.protocol.api import ApiKey
from barnabas.protocol.encoder import encode
from barnabas.protocol.frames import FRAME_SIZE, framed
from barnabas.protocol.headers import ResponseHeader
from barnabas.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from tests.support.manual_clock import ManualClock

VERSION = 3


class OtherBroker:
    """Answers each request by what `answer` returns for its broker id; None closes the connection."""

    def __init__(self, answer):
        self.answer = answer
        self.connections = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc):
        self._server.close()

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            while True:
                (size,) = FRAME_SIZE.unpack(await reader.readexactly(4))
                frame = await reader.readexactly(size)
                answer = self.answer(frame)
                if answer is None:
                    return
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


def correlation_id(frame):
    return int.from_bytes(frame[4:8])


def shut_down(frame, remaining=()):
    header = encode(ResponseHeader(correlation_id=correlation_id(frame)), 1)
    return framed(header + encode(ControlledShutdownResponse(remaining_partitions=list(remaining)), VERSION))


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def channel_to(clock):
    channels = []

    def make(broker):
        loop = asyncio.get_running_loop()
        channels.append(Channel(Network(loop), clock, loop, "127.0.0.1", broker.port, "1"))
        return channels[-1]

    yield make
    for channel in channels:
        channel.close()


def ask(channel, broker_id=1, timeout_ms=10_000):
    request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=7)
    return channel.request(ApiKey.CONTROLLED_SHUTDOWN, request, VERSION, ControlledShutdownResponse, timeout_ms)


async def test_a_request_is_answered(channel_to):
    async with OtherBroker(shut_down) as broker:
        channel = channel_to(broker)
        assert (await ask(channel)).error_code == 0
        assert (await ask(channel)).error_code == 0
        assert broker.connections == 1


async def test_requests_in_flight_are_answered_in_order(channel_to):
    def answer(frame):
        return shut_down(frame, [RemainingPartition(topic_name="t", partition_index=correlation_id(frame))])

    async with OtherBroker(answer) as broker:
        channel = channel_to(broker)
        answers = await asyncio.gather(*(ask(channel) for _ in range(20)))
        assert [each.remaining_partitions[0].partition_index for each in answers] == list(range(1, 21))


async def test_an_answer_larger_than_the_buffer_is_received_whole(channel_to):
    remaining = [RemainingPartition(topic_name="t" * 100, partition_index=index) for index in range(5000)]
    async with OtherBroker(lambda frame: shut_down(frame, remaining)) as broker:
        channel = channel_to(broker)
        assert (await ask(channel)).remaining_partitions == remaining
        assert (await ask(channel)).remaining_partitions == remaining


async def test_a_refused_connection_is_an_error(channel_to):
    async with OtherBroker(shut_down) as broker:
        channel = channel_to(broker)
    with pytest.raises(ChannelError, match="cannot connect"):
        await ask(channel)


async def test_a_connection_that_is_lost_fails_what_is_in_flight_and_is_opened_again(channel_to):
    lost = False

    def answer(frame):
        nonlocal lost
        if not lost:
            lost = True
            return None
        return shut_down(frame)

    async with OtherBroker(answer) as broker:
        channel = channel_to(broker)
        with pytest.raises(ChannelError, match="closed the connection"):
            await ask(channel)
        assert (await ask(channel)).error_code == 0
        assert broker.connections == 2


async def test_no_answer_in_time_is_an_error(channel_to, clock):
    arrived = asyncio.Event()

    def silence(frame):
        arrived.set()
        return b""

    async with OtherBroker(silence) as broker:
        asked = asyncio.ensure_future(ask(channel_to(broker), timeout_ms=20))
        await arrived.wait()
        clock.advance(0.02)
        with pytest.raises(ChannelError, match="no answer within 20 ms"):
            await asked


@pytest.mark.parametrize(
    ("nonsense", "reason"),
    [
        (lambda frame: b"\xff\xff\xff\xff", "an answer of -1 bytes"),
        (lambda frame: framed(b"\0"), "cannot be read"),
        (lambda frame: shut_down(b"\0" * 8), "another order"),
    ],
)
async def test_nonsense_closes_the_connection(channel_to, nonsense, reason):
    async with OtherBroker(nonsense) as broker:
        with pytest.raises(ChannelError, match=reason):
            await ask(channel_to(broker))


async def test_a_connection_that_is_never_established_is_abandoned(clock):
    connecting = asyncio.Event()

    class Silence(Network):
        async def connect(self, host, port):
            connecting.set()
            await asyncio.Event().wait()

    loop = asyncio.get_running_loop()
    asked = asyncio.ensure_future(ask(Channel(Silence(loop), clock, loop, "127.0.0.1", 1, "1"), timeout_ms=20))
    await connecting.wait()
    clock.advance(0.02)
    with pytest.raises(ChannelError, match="no answer"):
        await asked


async def test_an_attempt_to_connect_that_was_given_up_does_not_hide_the_next_one(clock):
    """Otherwise a third would be made beside the second, and nobody would read from one of their sockets."""
    attempts, connecting = [], asyncio.Event()

    class Slow(Network):
        async def connect(self, host, port):
            attempts.append(asyncio.get_running_loop().create_future())
            connecting.set()
            try:
                return await attempts[-1]
            finally:
                for _ in range(5):  # to give up takes a while, too
                    await asyncio.sleep(0)

    loop = asyncio.get_running_loop()
    channel = Channel(Slow(loop), clock, loop, "127.0.0.1", 1, "1")
    first = asyncio.ensure_future(ask(channel, timeout_ms=20))
    await connecting.wait()
    clock.advance(0.02)  # the first attempt is given up, and its task has not ended yet
    others = [asyncio.ensure_future(ask(channel)) for _ in range(2)]
    for _ in range(10):
        await asyncio.sleep(0)
    others.append(asyncio.ensure_future(ask(channel)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(attempts) == 2
    with pytest.raises(ChannelError, match="no answer"):
        await first
    channel.close()
    await asyncio.gather(*others, return_exceptions=True)


async def test_a_closed_channel_accepts_no_requests(channel_to):
    async with OtherBroker(shut_down) as broker:
        channel = channel_to(broker)
        channel.close()
        with pytest.raises(ChannelError, match="closed"):
            await ask(channel)
