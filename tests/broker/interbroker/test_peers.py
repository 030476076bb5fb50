"""broker.interbroker.peers: finding other brokers, and whoever is the controller."""

import asyncio
from types import SimpleNamespace

import pytest

from barnabas.broker.clock import SystemClock
from barnabas.broker.controller.images import BrokerImage, Endpoint
from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.interbroker.peers import Peers
from barnabas.broker.network import Network
from barnabas.protocol.api import ApiKey
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import FRAME_SIZE, framed
from barnabas.protocol.headers import ResponseHeader
from barnabas.protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse

VERSION = 3


def image(broker_id, port=9092, listener="PLAINTEXT"):
    return BrokerImage(broker_id, (Endpoint(listener, "PLAINTEXT", "127.0.0.1", port),))


@pytest.fixture
async def make_peers():
    made = []

    def make(cluster, serve_locally=None, broker_epoch=lambda: 7):
        loop = asyncio.get_running_loop()
        made.append(Peers(1, "PLAINTEXT", cluster, Network(loop), SystemClock(loop), loop, serve_locally, broker_epoch))
        return made[-1]

    yield make
    for peers in made:
        peers.close()


def ask(peers, timeout_ms=5000):
    request = ControlledShutdownRequest(broker_id=1, broker_epoch=7)
    return peers.ask_controller(ApiKey.CONTROLLED_SHUTDOWN, request, VERSION, ControlledShutdownResponse, timeout_ms)


async def test_a_channel_is_shared_by_those_who_ask_for_the_same_purpose(make_peers):
    peers = make_peers(SimpleNamespace(brokers={2: image(2)}, controller_id=-1))
    assert peers.channel(2, "markers") is peers.channel(2, "markers")
    assert peers.channel(2, "markers") is not peers.channel(2, "verification")
    assert peers.channel(3, "markers") is None


async def test_a_broker_that_moved_gets_a_new_channel(make_peers):
    cluster = SimpleNamespace(brokers={2: image(2, 9092)}, controller_id=-1)
    peers = make_peers(cluster)
    old = peers.channel(2, "markers")
    cluster.brokers = {2: image(2, 9093)}
    new = peers.channel(2, "markers")
    assert (old.closed, new.port) == (True, 9093)


async def test_a_broker_without_the_listener_between_brokers_cannot_be_asked(make_peers):
    peers = make_peers(SimpleNamespace(brokers={2: image(2, listener="CLIENTS")}, controller_id=2))
    assert peers.channel(2, "markers") is None


async def test_this_broker_is_asked_directly_when_it_is_the_controller(make_peers):
    asked = []

    async def serve(key, message):
        asked.append((key, message.broker_epoch))
        return ControlledShutdownResponse()

    peers = make_peers(SimpleNamespace(brokers={1: image(1)}, controller_id=1), serve)
    assert (await ask(peers)).error_code == 0
    assert asked == [(ApiKey.CONTROLLED_SHUTDOWN, 7)]


async def test_a_deposed_controller_is_not_believed(make_peers):
    """Another one is asked as soon as this broker knows about it."""

    async def serve(key, message):
        cluster.controller_id = 2
        return ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER)

    async def answer(reader, writer):
        (size,) = FRAME_SIZE.unpack(await reader.readexactly(4))
        frame = await reader.readexactly(size)
        header = encode(ResponseHeader(correlation_id=int.from_bytes(frame[4:8])), 1)
        writer.write(framed(header + encode(ControlledShutdownResponse(), VERSION)))
        await writer.drain()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        cluster = SimpleNamespace(brokers={1: image(1), 2: image(2, port)}, controller_id=1)
        peers = make_peers(cluster, serve)
        assert (await ask(peers)).error_code == 0
        peers.close()


async def test_a_controller_that_does_not_know_this_registration_yet_is_asked_again(make_peers):
    answers = [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NONE]

    async def serve(key, message):
        return ControlledShutdownResponse(error_code=answers.pop(0))

    peers = make_peers(SimpleNamespace(brokers={1: image(1)}, controller_id=1), serve)
    assert (await ask(peers)).error_code == ErrorCode.NONE
    assert answers == []


async def test_a_broker_that_has_registered_again_must_make_a_new_request(make_peers):
    """The same request would be refused every time."""

    async def serve(key, message):
        return ControlledShutdownResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)

    peers = make_peers(SimpleNamespace(brokers={1: image(1)}, controller_id=1), serve, lambda: 8)
    assert (await ask(peers)).error_code == ErrorCode.STALE_BROKER_EPOCH


async def test_without_a_controller_it_gives_up_in_time(make_peers):
    peers = make_peers(SimpleNamespace(brokers={}, controller_id=-1))
    with pytest.raises(ChannelError, match="there is no controller"):
        await ask(peers, timeout_ms=30)


@pytest.fixture
async def silent_port():
    """Where connections are accepted and nothing is answered, as by a host that was cut off."""
    connected = []

    async def say_nothing(reader, writer):
        connected.append(writer)

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        for writer in connected:
            writer.close()


async def test_nobody_waits_for_a_broker_that_is_gone(make_peers, silent_port):
    cluster = SimpleNamespace(brokers={2: image(2, silent_port), 3: image(3, silent_port)}, controller_id=3)
    peers = make_peers(cluster)
    lost, other = peers.channel(2, "markers"), peers.channel(3, "markers")
    request = ControlledShutdownRequest(broker_id=1, broker_epoch=7)
    waiting = asyncio.create_task(
        lost.request(ApiKey.CONTROLLED_SHUTDOWN, request, VERSION, ControlledShutdownResponse, 60_000)
    )
    await asyncio.sleep(0)  # it has asked
    cluster.brokers = {3: image(3, silent_port)}
    peers.cluster_changed()
    with pytest.raises(ChannelError):
        await waiting
    assert peers.channel(3, "markers") is other
    assert not other.closed


async def test_nobody_waits_for_a_former_controller(make_peers, silent_port):
    async def serve(key, message):
        return ControlledShutdownResponse()

    cluster = SimpleNamespace(brokers={1: image(1), 2: image(2, silent_port)}, controller_id=2)
    peers = make_peers(cluster, serve)
    markers = peers.channel(2, "markers")
    waiting = asyncio.create_task(ask(peers, timeout_ms=60_000))
    await asyncio.sleep(0)  # it has asked
    cluster.controller_id = 1
    peers.cluster_changed()
    assert (await waiting).error_code == ErrorCode.NONE
    assert not markers.closed
