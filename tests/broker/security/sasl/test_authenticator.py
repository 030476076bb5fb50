"""Authentication over a real socket: what a client may send at which stage, and how it ends."""

import asyncio
from contextlib import asynccontextmanager

import jwt
import pytest
from structlog.testing import capture_logs

from barnabas.broker.config import BrokerConfig
from barnabas.broker.handlers import sasl_authenticate, sasl_handshake
from barnabas.broker.security.errors import SecurityError
from barnabas.broker.server.dispatch import Api
from barnabas.broker.server.server import Server
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import FRAME_SIZE, framed
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.protocol.scram import ScramClient, ScramCredential
from tests.broker.server.harness import Client, connected, frame
from tests.support.manual_clock import ManualClock

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="word";'
CREDENTIAL = ScramCredential.of_password("SCRAM-SHA-512", "secret", b"salt", 4096)
DELAY = 0.1


class Serving:
    def __init__(self, settings):
        self.seen = []
        self.clock = ManualClock()
        config = BrokerConfig(
            {
                "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
                **settings,
            }
        )
        apis = [
            Api(ApiKey.HEARTBEAT, self.heartbeat),
            Api(ApiKey.API_VERSIONS, lambda request, message: ApiVersionsResponse(api_keys=[])),
            Api(ApiKey.SASL_HANDSHAKE, lambda *args: sasl_handshake.handle(None, *args)),
            Api(ApiKey.SASL_AUTHENTICATE, lambda *args: sasl_authenticate.handle(None, *args)),
        ]
        self.server = Server(config, apis, self.clock, asyncio.get_running_loop())
        self.server.scram_credential = lambda user, mechanism: CREDENTIAL if user == "carol" else None

    def heartbeat(self, request, message):
        self.seen.append(str(request.connection.principal))
        return HeartbeatResponse()


@asynccontextmanager
async def client_of(settings=None):
    serving = Serving(settings or {})
    serving.server.bind()
    serving.server.start()
    try:
        async with connected(serving.server) as client:
            yield serving, client
    finally:
        await serving.server.stop()


async def handshake(client: Client, mechanism="PLAIN", version=1):
    return await client.ask(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism), version)


async def authenticate(client: Client, message: bytes, version=2):
    return await client.ask(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message), version)


async def failed(serving, client):
    """Let the time pass after which a client is told that it failed."""
    await serving.clock.timer_set(DELAY)
    serving.clock.advance(DELAY)


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_plain(version):
    async with client_of() as (serving, client):
        await client.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)
        assert (await handshake(client)).mechanisms == ["PLAIN", "SCRAM-SHA-512"]
        answer = await authenticate(client, b"\0alice\0secret", version)
        assert (answer.error_code, answer.error_message, answer.session_lifetime_ms) == (0, None, 0)
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert serving.seen == ["User:alice"]


async def test_all_of_it_may_come_at_once():
    async with client_of() as (serving, client):
        client.send(
            frame(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"), 1)
            + frame(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2)
            + 20 * frame(ApiKey.HEARTBEAT, HEARTBEAT)
        )
        await client.answer(ApiKey.SASL_HANDSHAKE, 1)
        await client.answer(ApiKey.SASL_AUTHENTICATE, 2)
        for _ in range(20):
            await client.answer(ApiKey.HEARTBEAT)
        assert serving.seen == 20 * ["User:alice"]


async def test_scram():
    async with client_of() as (serving, client):
        await handshake(client, "SCRAM-SHA-512")
        scram = ScramClient("SCRAM-SHA-512", "carol", "secret", b"nonce")
        challenge = (await authenticate(client, scram.first())).auth_bytes
        scram.finish(bytes((await authenticate(client, scram.final(bytes(challenge)))).auth_bytes))
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert serving.seen == ["User:carol"]


async def test_bare_messages_after_a_handshake_of_version_0():
    async with client_of() as (serving, client):
        await handshake(client, "PLAIN", version=0)
        client.send(framed(b"\0alice\0secret"))
        assert await client.reader.readexactly(FRAME_SIZE.size) == bytes(4)
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert serving.seen == ["User:alice"]


@pytest.mark.parametrize("message", [b"\0alice\0wrong", b"\0nobody\0secret"], ids=["password", "user"])
async def test_a_failure_is_reported_after_a_while_and_ends_the_connection(message):
    with capture_logs() as logs:
        async with client_of() as (serving, client):
            await handshake(client)
            client.send(frame(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message), 2))
            await failed(serving, client)
            _, answer = await client.answer(ApiKey.SASL_AUTHENTICATE, 2)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert answer.error_message == "Authentication failed: Invalid username or password"
            assert await client.closed()
            assert serving.server.failed_authentications == {("SASL_PLAINTEXT", "PLAIN"): 1}
    assert [line["reason"] for line in logs] == ["it failed to authenticate with PLAIN"]
    assert "wrong" not in str(logs)


async def test_a_failed_bare_message_has_no_answer():
    async with client_of() as (serving, client):
        await handshake(client, "PLAIN", version=0)
        client.send(framed(b"\0alice\0wrong"))
        await failed(serving, client)
        assert await client.closed()


async def test_an_unknown_mechanism_is_told_which_there_are():
    async with client_of() as (serving, client):
        client.send(frame(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="GSSAPI"), 1))
        await failed(serving, client)
        _, answer = await client.answer(ApiKey.SASL_HANDSHAKE, 1)
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-512"]
        assert await client.closed()
        assert serving.server.failed_authentications == {("SASL_PLAINTEXT", "none"): 1}


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([frame(ApiKey.HEARTBEAT, HEARTBEAT)], "it sent Heartbeat before it was authenticated"),
        (
            [frame(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2)],
            "it sent SaslAuthenticate before it was authenticated",
        ),
        (
            [
                frame(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"), 1),
                frame(ApiKey.HEARTBEAT, HEARTBEAT),
            ],
            "it sent Heartbeat before it was authenticated",
        ),
        ([framed(b"\x7f\xff")], "it sent a request of key 32767 before it was authenticated"),
        ([framed(b"")], "it sent a request of key -1 before it was authenticated"),
        ([(600_000).to_bytes(4) + bytes(100)], "a frame of 600000 bytes"),
    ],
)
async def test_nothing_else_comes_before_authentication(frames, reason):
    with capture_logs() as logs:
        async with client_of() as (serving, client):
            for each in frames:
                client.send(each)
            await client.reader.read()
            assert serving.seen == []
            mechanism = "PLAIN" if len(frames) == 2 else "none"
            counted = {} if "bytes" in reason else {("SASL_PLAINTEXT", mechanism): 1}
            assert serving.server.failed_authentications == counted
    assert [line["reason"] for line in logs] == [reason]


async def test_a_second_authentication_is_refused():
    async with client_of() as (_, client):
        await handshake(client)
        await authenticate(client, b"\0alice\0secret")
        assert (await handshake(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert (await authenticate(client, b"\0bob\0word")).error_code == ErrorCode.ILLEGAL_SASL_STATE


async def test_a_session_ends_unless_the_client_authenticates_again():
    with capture_logs() as logs:
        async with client_of({"connections.max.reauth.ms": "60000"}) as (serving, client):
            await handshake(client)
            assert (await authenticate(client, b"\0alice\0secret")).session_lifetime_ms == 60_000
            serving.clock.advance(59)
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            await handshake(client)
            await authenticate(client, b"\0alice\0secret")
            serving.clock.advance(59)
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            serving.clock.advance(2)
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
            assert await client.closed()
    assert [line["reason"] for line in logs] == ["its session is over, and it did not authenticate again"]


async def test_another_user_cannot_take_over_a_session():
    async with client_of({"connections.max.reauth.ms": "60000"}) as (serving, client):
        await handshake(client)
        await authenticate(client, b"\0alice\0secret")
        await handshake(client)
        client.send(frame(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=b"\0bob\0word"), 2))
        await failed(serving, client)
        _, answer = await client.answer(ApiKey.SASL_AUTHENTICATE, 2)
        assert answer.error_message == "Cannot change principals during re-authentication"
        assert await client.closed()


PREFIX = "listener.name.sasl_plaintext."
HANDLER = f"{PREFIX}oauthbearer.sasl.server.callback.handler.class"
OAUTHBEARER = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    HANDLER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
}
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "supports only PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ({f"{PREFIX}plain.sasl.jaas.config": "nonsense"}, "cannot be read"),
        ({f"{PREFIX}plain.sasl.server.callback.handler.class": "a.B"}, "cannot run callback handlers"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "for signed tokens, or .* for unsigned ones"),
        ({**OAUTHBEARER, HANDLER: "a.B"}, "for signed tokens, or .* for unsigned ones"),
        (OAUTHBEARER, r"OAUTHBEARER needs sasl\.oauthbearer\.jwks\.endpoint\.url"),
        ({**OAUTHBEARER, "sasl.oauthbearer.jwks.endpoint.url": "file:///not/there"}, "cannot be used: No such file"),
    ],
)
async def test_unsupported_settings_keep_the_broker_from_starting(settings, complaint):
    base = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        f"{PREFIX}plain.sasl.jaas.config": JAAS,
    }
    server = Server(BrokerConfig({**base, **settings}), [], ManualClock(), asyncio.get_running_loop())
    with pytest.raises(SecurityError, match=complaint):
        server.bind()


async def test_the_session_of_a_token_does_not_outlast_it():
    settings = {"sasl.enabled.mechanisms": "OAUTHBEARER", HANDLER: UNSECURED, "connections.max.reauth.ms": "60000"}
    async with client_of(settings) as (serving, client):
        now = serving.clock.now_ms() // 1000
        token = jwt.encode({"sub": "alice", "iat": now, "exp": now + 20}, None, "none")
        await handshake(client, "OAUTHBEARER")
        answer = await authenticate(client, f"n,,\x01auth=Bearer {token}\x01\x01".encode())
        assert 19_000 <= answer.session_lifetime_ms <= 20_000
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert serving.seen == ["User:alice"]
