"""Signing in: with the broker's own passwords, and then only what the user may see and do."""

import asyncio
import base64

import aiohttp
import pytest

from barnabas.broker.security.acls import Entry, Pattern
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from tests.broker.console.conftest import looking, next_news
from tests.support.running_broker import partition

_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="a-secret" user_alice="b-secret";'
_SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.clients.plain.sasl.jaas.config": _JAAS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
    "connection.failed.authentication.delay.ms": "0",
}


def allow(console, operation, resource_type, name):
    authorizer = console.broker.authorizer
    pattern = Pattern(resource_type, name, PatternType.LITERAL)
    entry = Entry("User:alice", "*", operation, PermissionType.ALLOW)
    authorizer.acls.put(pattern, [*authorizer.acls.entries(pattern), entry])
    authorizer.changed()


@pytest.fixture
async def secured(tmp_path):
    async with looking(tmp_path, writes=True, **_SETTINGS) as found:
        # Cookies of addresses, too.
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            found.session = session
            yield found


async def sign_in(console, user, password):
    return (await console.post("/api/sign-in", {"user": user, "password": password}))[0]


async def test_nobody_sees_anything_before_signing_in(secured):
    for path in ("/api/overview", "/api/topics", "/api/live", "/api/messages", "/metrics", "/api/pipelines"):
        async with secured.session.get(secured.url + path) as response:
            assert response.status == 401, path
            assert (await response.json())["sign_in"] is True
    assert (await secured.post("/api/topics/create", {"name": "t"}))[0] == 401
    async with secured.session.get(secured.url) as response:
        assert response.status == 200  # the page that asks for the password
    assert (await secured.get("/api/me"))[1] == {"user": None, "sign_in": True}


async def test_a_wrong_password_and_an_unknown_user_are_told_the_same(secured):
    _, wrong = await secured.post("/api/sign-in", {"user": "alice", "password": "guess"})
    _, unknown = await secured.post("/api/sign-in", {"user": "nobody", "password": "guess"})
    assert wrong == unknown
    assert await sign_in(secured, "alice", "guess") == 401
    assert (await secured.get("/api/me"))[1]["user"] is None
    assert sum(secured.broker.server.failed_authentications.values()) == 6  # by both mechanisms


async def test_a_super_user_sees_everything(secured):
    await secured.topic("secret", 1, [b"x"])
    assert await sign_in(secured, "admin", "a-secret") == 200
    assert (await secured.get("/api/topics"))[1]["total"] == 1
    assert (await secured.get("/api/messages", topic="secret"))[0] == 200
    assert (await secured.get("/api/journal"))[0] == 200
    assert (await secured.post("/api/sign-out", {}))[0] == 200
    assert (await secured.get("/api/topics"))[0] == 401


async def test_others_see_what_they_may_describe(secured):
    await secured.topic("secret", 1, [b"x"])
    await secured.topic("shared", 1, [b"y"])
    allow(secured, AclOperation.DESCRIBE, ResourceType.TOPIC, "shared")
    assert await sign_in(secured, "alice", "b-secret") == 200
    assert (await secured.get("/api/me"))[1] == {"user": "alice", "sign_in": True}
    assert [row["name"] for row in (await secured.get("/api/topics"))[1]["rows"]] == ["shared"]
    overview = (await secured.get("/api/overview"))[1]
    assert (overview["topics"], overview["connections"], overview["requests"]) == (1, 0, 0)
    assert overview["traffic"]["messages_in"] == 1
    for path in ("/api/topic?name=secret", "/api/messages?topic=secret", "/api/tail?topic=secret"):
        async with secured.session.get(secured.url + path) as response:
            assert response.status == 404, path
    assert (await secured.get("/api/topic", name="shared"))[1]["configs"] == []
    assert (await secured.get("/api/messages", topic="shared"))[0] == 403
    assert (await secured.get("/api/connections"))[0] == 403
    assert (await secured.get("/api/journal"))[0] == 403
    assert (await secured.post("/api/journal", {"on": True}))[0] == 403
    async with secured.session.get(f"{secured.url}/metrics") as response:
        assert response.status == 403


async def test_others_change_what_they_may(secured):
    await secured.topic("shared")
    allow(secured, AclOperation.DESCRIBE, ResourceType.TOPIC, "shared")
    assert await sign_in(secured, "alice", "b-secret") == 200
    produce = {"topic": "shared", "value": "v"}
    for path, body in (
        ("/api/messages/produce", produce),
        ("/api/topics/delete", {"name": "shared"}),
        ("/api/topics/create", {"name": "new"}),
        ("/api/topics/grow", {"name": "shared", "partitions": 3}),
        ("/api/topics/alter", {"name": "shared", "configs": {"retention.ms": "1"}}),
        ("/api/messages/delete", {"topic": "shared", "offset": -1}),
        ("/api/messages/replay", {"from": "shared", "to": "shared", "records": [{"partition": 0, "offset": 0}]}),
    ):
        assert (await secured.post(path, body))[0] == 403, path
    allow(secured, AclOperation.WRITE, ResourceType.TOPIC, "shared")
    assert (await secured.post("/api/messages/produce", produce))[0] == 200
    may = (await secured.get("/api/topic", name="shared"))[1]["may"]
    assert may == {"read": False, "write": True, "alter": False, "alter_configs": False, "delete": False}


async def test_groups_are_hidden_too(secured):
    assert await sign_in(secured, "alice", "b-secret") == 200
    assert (await secured.post("/api/groups/delete", {"name": "castle"}))[0] == 404
    assert (await secured.get("/api/groups"))[1]["total"] == 0


async def test_prometheus_sends_a_password_with_each_request(secured):
    def basic(user, password):
        return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}

    async with secured.session.get(f"{secured.url}/metrics", headers=basic("admin", "a-secret")) as response:
        assert response.status == 200
    async with secured.session.get(f"{secured.url}/metrics", headers=basic("admin", "wrong")) as response:
        assert response.status == 401


async def test_a_stream_ends_when_its_reader_signs_out(secured):
    assert await sign_in(secured, "admin", "a-secret") == 200
    stream = await secured.session.get(f'{secured.url}/api/live?watch={{"o":{{"view":"overview"}}}}')
    assert (await stream.content.readline()).startswith(b"data: ")
    await secured.post("/api/sign-out", {})
    async with asyncio.timeout(30):
        while await stream.content.readline():
            pass


async def test_where_there_are_no_users_nobody_signs_in(console):
    assert (await console.get("/api/me"))[1] == {"user": None, "sign_in": False}


async def test_new_messages_are_not_shown_any_longer_after_signing_out(secured):
    """A stream that somebody has opened is not a way around it."""
    assert await sign_in(secured, "admin", "a-secret") == 200
    await secured.topic("t")
    async with secured.session.get(f"{secured.url}/api/tail", params={"topic": "t"}) as stream:
        while not partition(secured.broker, "t").waiters:  # noqa: ASYNC110
            await asyncio.sleep(0)
        secured.write("t", b"seen")
        assert (await next_news(stream))["records"]
        await secured.post("/api/sign-out", {})
        secured.write("t", b"too late")
        assert b"too late" not in await stream.content.read()
