"""Requests about delegation tokens, bad ones included, get the same answers from Apache Kafka and from Barnabas."""

import base64

import pytest

from barnabas.client.errors import NotAuthenticated
from barnabas.client.requests.lookup import metadata
from barnabas.client.requests.tokens import create_token, describe_tokens, expire_token, renew_token
from barnabas.client.security import Security
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_delegation_token import CreatableRenewers
from barnabas.protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner
from tests.support.acl_side_by_side import guarded
from tests.support.polling import pause
from tests.support.side_by_side import SideBySide

pytestmark = pytest.mark.java

CREATE, RENEW, EXPIRE, DESCRIBE = (
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
)
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
SETTINGS = {
    "node.id": "1",
    "delegation.token.secret.key": "a key",
    "delegation.token.expiry.time.ms": str(2 * HOUR_MS),
    "delegation.token.max.lifetime.ms": str(10 * HOUR_MS),
}
RIGHTS = {
    "alice": ["describe topic *"],
    "bob": [],
    "carol": ["create_tokens user User:alice"],
    "dave": ["describe_tokens user User:alice"],
    "eve": ["describe delegation_token *"],
    "frank": ["describe_tokens user User:nobody"],
}


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    with guarded(tmp_path_factory.mktemp("data"), RIGHTS, SETTINGS) as (kafka, barnabas):
        yield SideBySide(kafka, barnabas)


class Meaning:
    """An answer without what each broker chooses: ids, HMACs, and the time of day."""

    def __init__(self, side, issued_at_ms=0):
        self._side = side
        self._issued_at_ms = issued_at_ms

    def of(self, answer):
        fields = self._side.comparable(answer)
        return {name: self._field(name, value) for name, value in fields.items()}

    def _field(self, name, value):
        if name == "tokens":
            return [Meaning(self._side, each["issue_timestamp"])._each(each) for each in value]
        if name in ("token_id", "hmac"):
            return len(value)
        if "timestamp" in name and value > 0:
            return f"{round((value - self._issued_at_ms) / MINUTE_MS)} minutes"
        return value

    def _each(self, fields):
        return {name: self._field(name, value) for name, value in fields.items()}


def created(side, user, request, version=3):
    side.user = user
    answer = side.ask(CREATE, request, version)
    return answer, Meaning(side, answer.issue_timestamp_ms).of(answer)


def asked(side, user, key, request, version, issued_at_ms):
    side.user = user
    return Meaning(side, issued_at_ms).of(side.ask(key, request, version))


def known(side, user, hmac):
    """Wait until a broker knows a token: Apache Kafka's controller answers before that."""
    side.user = user
    while hmac not in [bytes(each.hmac) for each in side.ask(DESCRIBE, describe_tokens(), 3).tokens]:
        pause()


def changed(side, hmac, key, request, version, issued_at_ms):
    """Renew or expire a token of alice, and wait until the broker knows about it."""
    side.user = "alice"
    answer = side.ask(key, request, version)
    while [each.expiry_timestamp for each in side.ask(DESCRIBE, describe_tokens(), 3).tokens if each.hmac == hmac] != [
        answer.expiry_timestamp_ms
    ]:
        pause()
    return Meaning(side, issued_at_ms).of(answer)


def cleared(side, *hmacs):
    side.user = "alice"
    for hmac in hmacs:
        assert side.ask(EXPIRE, expire_token(hmac), 2).error_code == 0
    while side.ask(DESCRIBE, describe_tokens(), 3).tokens:
        pause()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    "request_",
    [
        create_token(),
        create_token(renewers=["bob", "carol"], max_lifetime_ms=0),
        create_token(max_lifetime_ms=HOUR_MS),
        create_token(max_lifetime_ms=5 * HOUR_MS),
        create_token(max_lifetime_ms=50 * HOUR_MS),
        create_token("", renewers=["alice"]),
        create_token("alice"),
    ],
    ids=["simple", "renewers", "one hour", "five hours", "too long", "empty owner", "own name"],
)
def test_a_life_from_its_creation_to_its_end(sides, request_, version):
    other = min(version, 2)

    def story(side):
        answer, meaning = created(side, "alice", request_, version)
        yield meaning
        hmac, start = bytes(answer.hmac), answer.issue_timestamp_ms
        known(side, "alice", hmac)
        yield asked(side, "alice", DESCRIBE, describe_tokens(), version, start)
        for period in (10 * MINUTE_MS, 100 * HOUR_MS, -1, 0):
            yield changed(side, hmac, RENEW, renew_token(hmac, period), other, start)
        for period in (100 * HOUR_MS, 20 * MINUTE_MS):
            yield changed(side, hmac, EXPIRE, expire_token(hmac, period), other, start)
        yield asked(side, "alice", EXPIRE, expire_token(hmac), other, start)
        cleared(side)
        for key, request in ((RENEW, renew_token(hmac)), (EXPIRE, expire_token(hmac))):
            yield asked(side, "alice", key, request, other, start)

    sides.play(story)


def test_who_sees_what(sides):
    def story(side):
        own, _ = created(side, "alice", create_token(renewers=["bob"]))
        for_alice, meaning = created(side, "carol", create_token("alice"))
        yield meaning
        for token in (own, for_alice):
            known(side, "alice", bytes(token.hmac))
        for user in ("admin", *RIGHTS):
            for owners in (None, [], ["alice"], ["bob"], ["carol"], ["nobody", "alice"]):
                yield asked(side, user, DESCRIBE, describe_tokens(owners), 3, 0)
        cleared(side, bytes(own.hmac), bytes(for_alice.hmac))

    sides.play(story)


def test_who_may_renew_and_end_them(sides):
    def story(side):
        token, _ = created(side, "carol", create_token("alice", renewers=["bob"]))
        hmac, start = bytes(token.hmac), token.issue_timestamp_ms
        known(side, "alice", hmac)
        for user in ("alice", "bob", "carol", "dave", "eve", "admin"):
            yield asked(side, user, RENEW, renew_token(hmac, HOUR_MS), 2, start)
            yield asked(side, user, EXPIRE, expire_token(hmac, HOUR_MS), 2, start)
        yield asked(side, "dave", EXPIRE, expire_token(hmac), 2, start)
        yield asked(side, "bob", EXPIRE, expire_token(hmac), 2, start)
        cleared(side)

    sides.play(story)


def of_another_type(version):
    request = create_token("alice")
    request.owner_principal_type = "Group"
    return request


def with_a_renewer_of_another_type(version):
    request = create_token()
    request.renewers = [CreatableRenewers(principal_type="Group", principal_name="staff")]
    return request


@pytest.mark.parametrize("user", ["alice", "bob", "carol", "admin"])
@pytest.mark.parametrize(
    "request_",
    [create_token("alice"), create_token("bob"), of_another_type(3), with_a_renewer_of_another_type(3)],
    ids=["of alice", "of bob", "of a group", "for a group"],
)
def test_who_may_have_whose(sides, user, request_):
    def story(side):
        answer, meaning = created(side, user, request_)
        yield meaning
        if not answer.error_code:
            known(side, "admin", bytes(answer.hmac))
            side.user = answer.principal_name
            side.ask(EXPIRE, expire_token(bytes(answer.hmac)), 2)
            cleared(side)

    sides.play(story)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("hmac", [b"", b"nonsense", bytes(64)], ids=["none", "short", "zeros"])
@pytest.mark.parametrize(("key", "make"), [(RENEW, renew_token), (EXPIRE, expire_token)], ids=["renew", "expire"])
def test_what_is_not_there(sides, key, make, hmac, version):
    sides.play(lambda side: iter([asked(side, "alice", key, make(hmac), version, 0)]))


def test_an_expired_one(sides):
    def story(side):
        token, _ = created(side, "alice", create_token(max_lifetime_ms=1))
        hmac = bytes(token.hmac)
        side.user = "alice"
        while side.ask(RENEW, renew_token(hmac), 2).error_code != ErrorCode.DELEGATION_TOKEN_EXPIRED:
            pause()
        yield asked(side, "alice", RENEW, renew_token(hmac), 2, 0)
        yield asked(side, "alice", EXPIRE, expire_token(hmac, 5), 2, 0)
        yield asked(side, "bob", RENEW, renew_token(hmac), 2, 0)
        yield asked(side, "bob", EXPIRE, expire_token(hmac, 5), 2, 0)
        yield asked(side, "bob", EXPIRE, expire_token(hmac), 2, 0)
        yield asked(side, "alice", EXPIRE, expire_token(hmac), 2, token.issue_timestamp_ms)
        cleared(side)

    sides.play(story)


def test_who_logged_in_by_a_token_has_its_owners_rights_and_makes_no_other(sides):
    def story(side):
        token, _ = created(side, "carol", create_token("alice", renewers=["bob"]))
        hmac = bytes(token.hmac)
        known(side, "alice", hmac)
        password = base64.b64encode(hmac).decode()
        side.logins["token"] = Security(None, "SCRAM-SHA-256", token.token_id, password, is_token=True)
        side.user = "token"
        yield side.ask(ApiKey.METADATA, metadata(["new"], include_topic_authorized_operations=True), 12).topics
        for key, request, version in (
            (CREATE, create_token(), 3),
            (CREATE, create_token("bob"), 3),
            (RENEW, renew_token(hmac), 2),
            (EXPIRE, expire_token(hmac), 2),
            (DESCRIBE, describe_tokens(), 3),
        ):
            yield asked(side, "token", key, request, version, 0)
        right = side.logins["token"]
        strangers = {
            "password": right._replace(password="wrong"),
            "no token": right._replace(is_token=False),
            "another": right._replace(user="another"),
        }
        side.logins |= strangers
        for side.user in strangers:
            with pytest.raises(NotAuthenticated) as refused:
                side.ask(DESCRIBE, describe_tokens(), 3)
            yield str(refused.value)
        cleared(side, hmac)

    sides.play(story)


def test_an_owner_of_another_type(sides):
    request = describe_tokens([])
    request.owners = [DescribeDelegationTokenOwner(principal_type="Group", principal_name="alice")]
    sides.play(lambda side: iter([asked(side, "alice", DESCRIBE, request, 3, 0)]))
