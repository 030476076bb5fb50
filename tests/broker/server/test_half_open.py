"""Ten thousand clients that start a handshake and never finish it: nobody waits for them, and they are disconnected."""

import asyncio
import resource
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.handlers import sasl_authenticate, sasl_handshake
from barnabas.broker.server.dispatch import Api
from barnabas.broker.server.server import Server
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.server.harness import connected, frame
from tests.broker.server.test_tls_connection import Serving
from tests.support.manual_clock import ManualClock

HALF_OPEN = 10_000
DESCRIPTORS = HALF_OPEN + 500
# The time of a client that comes last. On an idle machine it takes milliseconds.
PATIENCE = 60.0

# The clients are in a process of their own: few machines allow one process both ends of so many connections.
CLIENTS = """
import resource, socket, sys
count, port, sent = int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
clients = []
for _ in range(count):
    clients.append(socket.create_connection(("127.0.0.1", port)))
    clients[-1].sendall(sent)
print("connected", flush=True)
sys.stdin.read()
"""

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
HELLO = b"\x16\x03\x01\x02\x00\x01\x00"  # the first bytes of TLS
CHOICE = frame(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"), 1)
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
APIS = [
    Api(ApiKey.HEARTBEAT, lambda request, message: HeartbeatResponse()),
    Api(ApiKey.SASL_HANDSHAKE, lambda *args: sasl_handshake.handle(None, *args)),
    Api(ApiKey.SASL_AUTHENTICATE, lambda *args: sasl_authenticate.handle(None, *args)),
]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        pytest.skip(f"{DESCRIPTORS} descriptors are needed, and {hard} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTORS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@asynccontextmanager
async def half_open(server, sent):
    """Make thousands of clients connect and send the beginning of a handshake."""
    arguments = (str(HALF_OPEN), str(server.listeners[0].port), sent.hex())
    clients = await asyncio.create_subprocess_exec(sys.executable, "-c", CLIENTS, *arguments, stdin=PIPE, stdout=PIPE)
    try:
        assert await clients.stdout.readline() == b"connected\n"
        await until(lambda: len(server.connections) == HALF_OPEN)
        yield
    finally:
        clients.stdin.close()
        await clients.wait()


async def until(is_so):
    async with asyncio.timeout(PATIENCE):
        while not is_so():  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.005)


async def test_tls():
    clock = ManualClock()
    async with Serving(*APIS, clock=clock) as serving, half_open(serving.server, HELLO):
        async with asyncio.timeout(PATIENCE):
            client = await serving.connect()
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert all(not connection._buffer for connection in serving.server.connections)  # nobody holds memory
        await until(lambda: sum(each._deadline is not None for each in serving.server.connections) == HALF_OPEN)
        clock.advance(31)
        await until(lambda: len(serving.server.connections) == 1)
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert serving.server.failed_authentications == {("SSL", "TLS"): HALF_OPEN}
        client.close()


async def test_sasl():
    clock = ManualClock()
    config = BrokerConfig(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
            "connections.max.idle.ms": "60000",
        }
    )
    server = Server(config, APIS, clock, asyncio.get_running_loop())
    server.bind()
    server.start()
    try:
        async with half_open(server, CHOICE), connected(server) as client:
            async with asyncio.timeout(PATIENCE):
                await client.ask(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"), 1)
                login = SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")
                assert not (await client.ask(ApiKey.SASL_AUTHENTICATE, login, 2)).error_code
                for _ in range(12):  # each a tenth of the time after which a silent connection is closed
                    clock.advance(6)
                    await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            await until(lambda: len(server.connections) == 1)
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
    finally:
        await server.stop()
