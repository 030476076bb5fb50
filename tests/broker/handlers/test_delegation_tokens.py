"""CreateDelegationToken and the other three. tests/integration/test_same_token_answers_as_kafka.py has all answers."""

import base64
from contextlib import asynccontextmanager

import pytest

from barnabas.client.requests.tokens import create_token, describe_tokens, expire_token, renew_token
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.protocol.scram import ScramClient
from tests.broker.server.harness import connected
from tests.support.running_broker import running

CREATE, RENEW = ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN
EXPIRE, DESCRIBE = ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORDS = {
    "listeners": "AUTH://127.0.0.1:0",
    "listener_security_protocol_map": "AUTH:SASL_PLAINTEXT",
    "inter_broker_listener_name": "AUTH",
    "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl_mechanism_inter_broker_protocol": "PLAIN",
    "listener.name.auth.plain.sasl.jaas.config": f'{LOGIN} required user_alice="x" user_bob="x";',
}
MINUTE_MS = 60_000


@asynccontextmanager
async def logged_in(broker, user):
    async with connected(broker.server) as client:
        await client.ask(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"), 1)
        await step(client, f"\0{user}\0x".encode())
        yield client


async def step(client, message):
    answer = await client.ask(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message), 2)
    assert not answer.error_code, answer.error_message
    return bytes(answer.auth_bytes)


@pytest.mark.parametrize("name", ["delegation.token.secret.key", "delegation.token.master.key"])
async def test_a_token_is_created_renewed_used_and_expired(tmp_path, name):
    async with running(tmp_path, **PASSWORDS, **{name: "key"}) as broker, logged_in(broker, "alice") as alice:
        token = await alice.ask(CREATE, create_token(renewers=["bob"]), 3)
        assert (token.error_code, token.principal_name) == (0, "alice")
        hmac = bytes(token.hmac)
        async with connected(broker.server) as client:
            await client.ask(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)
            password = base64.b64encode(hmac).decode()
            scram = ScramClient("SCRAM-SHA-512", token.token_id, password, b"nonce", {"tokenauth": "true"})
            scram.finish(await step(client, scram.final(await step(client, scram.first()))))
            assert "User:alice" in [str(each.principal) for each in broker.server.connections]
            refused = await client.ask(CREATE, create_token(), 3)
            assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        async with logged_in(broker, "bob") as bob:
            assert (await bob.ask(RENEW, renew_token(hmac, MINUTE_MS), 2)).error_code == 0
            (described,) = (await bob.ask(DESCRIBE, describe_tokens(["alice"]), 3)).tokens
            assert described.hmac == hmac
        assert (await alice.ask(EXPIRE, expire_token(hmac), 2)).error_code == 0
        assert (await alice.ask(DESCRIBE, describe_tokens(), 3)).tokens == []
        assert (await alice.ask(RENEW, renew_token(hmac), 2)).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


async def test_tokens_are_still_there_after_a_restart(tmp_path):
    settings = {**PASSWORDS, "delegation_token_secret_key": "key"}
    async with running(tmp_path, **settings) as broker, logged_in(broker, "alice") as alice:
        token = await alice.ask(CREATE, create_token(), 3)
    async with running(tmp_path, **settings) as broker, logged_in(broker, "alice") as alice:
        (found,) = (await alice.ask(DESCRIBE, describe_tokens(), 3)).tokens
        assert (found.token_id, found.hmac) == (token.token_id, token.hmac)


REQUESTS = [
    (CREATE, create_token(), 3),
    (RENEW, renew_token(b"x"), 2),
    (EXPIRE, expire_token(b"x"), 2),
    (DESCRIBE, describe_tokens(), 3),
]


@pytest.mark.parametrize(("key", "request_", "version"), REQUESTS)
async def test_without_a_key_there_are_no_tokens(tmp_path, key, request_, version):
    async with running(tmp_path, **PASSWORDS) as broker, logged_in(broker, "alice") as alice:
        answer = await alice.ask(key, request_, version)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


@pytest.mark.parametrize(("key", "request_", "version"), REQUESTS)
async def test_tokens_are_refused_on_plaintext_connections(tmp_path, key, request_, version):
    async with running(tmp_path, delegation_token_secret_key="key") as broker, connected(broker.server) as client:
        answer = await client.ask(key, request_, version)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
