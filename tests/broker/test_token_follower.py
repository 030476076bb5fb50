"""Delegation tokens that any broker creates and changes and every broker knows."""

import asyncio
import base64

import pytest
from structlog.testing import capture_logs

from barnabas.broker.config import BrokerConfig
from barnabas.broker.registry.session import Session
from barnabas.broker.security import token_nodes
from barnabas.broker.security.principal import Principal
from barnabas.broker.security.tokens import TokenRefused, hmac_of
from barnabas.broker.token_follower import TokenFollower
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.scram import ScramCredential
from tests.broker.registry.memory import MemoryRegistry
from tests.support.manual_clock import ManualClock

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
HOUR_MS = 3_600_000
CONFIG = BrokerConfig(
    {"delegation.token.expiry.time.ms": str(2 * HOUR_MS), "delegation.token.max.lifetime.ms": str(10 * HOUR_MS)}
)


class Brokers:
    """Two of them, with the same tree. The first is the controller."""

    def __init__(self):
        self.tree = MemoryRegistry()
        self.clock = ManualClock()
        self.tasks = []
        self.followers = [
            TokenFollower(CONFIG, "key", self.clock, self.spawn, lambda is_first=is_first: is_first)
            for is_first in (True, False)
        ]

    def spawn(self, work):
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    def known(self):
        first, second = (sorted(each.known) for each in self.followers)
        assert first == second
        return first


@pytest.fixture
async def two():
    two = Brokers()
    for follower in two.followers:
        await follower.follow(Session(two.tree))
    return two


async def test_a_token_created_by_one_broker_is_known_to_all(two):
    first, second = two.followers
    made = await first.create(ALICE, BOB, [], -1)
    assert two.known() == [made]
    assert made.hmac == hmac_of(made.token.token_id, "key")
    two.clock.advance(60)
    renewed = await second.renew(made.hmac, ALICE, -1)
    assert renewed.expires_at_ms == made.token.expires_at_ms + 60_000
    assert two.known() == [made._replace(token=renewed)]
    sooner = await first.end(made.hmac, ALICE, 5000)
    assert two.known() == [made._replace(token=sooner)]
    assert await second.end(made.hmac, ALICE, -1) is None
    assert two.known() == []
    changes = two.tree.children(token_nodes.CHANGES)
    assert {two.tree.get(f"{token_nodes.CHANGES}/{name}").data.decode() for name in changes} == {made.token.token_id}
    assert len(changes) == 4


async def test_a_token_is_its_owners_password(two):
    made = await two.followers[0].create(ALICE, BOB, [], -1)
    login = two.followers[1].login(made.token.token_id, "SCRAM-SHA-256")
    password = base64.b64encode(made.hmac).decode()
    assert login.owner == "alice"
    assert login.expires_at_ms == made.token.expires_at_ms
    assert login.credential == ScramCredential.of_password("SCRAM-SHA-256", password, login.credential.salt, 4096)
    assert two.followers[1].login(made.token.token_id, "SCRAM-SHA-256") == login
    assert two.followers[1].login("another", "SCRAM-SHA-256") is None


async def test_nobody_logs_in_with_an_expired_one_and_the_controller_removes_it(two):
    made = await two.followers[0].create(ALICE, ALICE, [], 1000)
    kept = await two.followers[0].create(BOB, BOB, [], -1)
    assert two.followers[0].login(made.token.token_id, "SCRAM-SHA-512") is not None
    two.clock.advance(2)
    assert two.followers[0].login(made.token.token_id, "SCRAM-SHA-512") is None
    with pytest.raises(TokenRefused, match="EXPIRED"):
        await two.followers[0].renew(made.hmac, ALICE, -1)
    assert len(two.known()) == 2
    two.clock.advance(HOUR_MS / 1000)
    await asyncio.gather(*two.tasks)
    assert two.known() == [kept]
    with pytest.raises(TokenRefused) as refused:
        await two.followers[0].renew(made.hmac, ALICE, -1)
    assert refused.value.code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


async def test_a_new_session_finds_what_was_changed_meanwhile(two):
    first, second = two.followers
    gone = await first.create(ALICE, BOB, [], -1)
    second.stop()
    await first.end(gone.hmac, ALICE, -1)
    there = await first.create(ALICE, BOB, [], -1)
    await second.follow(Session(two.tree))
    assert two.known() == [there]


async def test_one_that_cannot_be_read_is_left_out(two):
    made = await two.followers[0].create(ALICE, BOB, [], -1)
    with capture_logs() as logs:
        await Session(two.tree).set(token_nodes.path_of(made.token.token_id), b"nonsense")
    assert two.known() == []
    assert "cannot be read" in logs[0]["event"]


async def test_only_the_controller_removes_expired_ones(two):
    controller, other = two.followers
    await controller.create(ALICE, ALICE, [], 1000)
    controller.stop()
    two.clock.advance(HOUR_MS / 1000)
    await asyncio.gather(*two.tasks)
    assert len(list(other.known)) == 1
