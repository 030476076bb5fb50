"""Requests about users, bad ones included, get the same answers from Apache Kafka and from Barnabas."""

import time

import pytest

from barnabas.client.requests.tokens import create_token, describe_tokens, expire_token, renew_token
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.admin_side_by_side import play
from tests.support.polling import pause

pytestmark = pytest.mark.java


@pytest.fixture
def brokers(administered_brokers):
    return administered_brokers


def upsertion(name, mechanism=1, iterations=4096, salt=b"salt", salted=bytes(32)):
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )


def deletion(name, mechanism=1):
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def altered(upsertions=(), deletions=()):
    return AlterUserScramCredentialsRequest(deletions=list(deletions), upsertions=list(upsertions))


def show(brokers, *requests):
    """Both show the same users. Apache Kafka answers an alteration before its broker knows about it."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return play(brokers, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, *requests)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            pause()


def described(*names):
    return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])


REFUSED = {
    "nobody": altered(),
    "an empty name": altered([upsertion("")]),
    "an empty name to delete": altered([], [deletion("")]),
    "an unknown mechanism": altered([upsertion("bad", 3)]),
    "mechanism 0": altered([upsertion("bad", 0)]),
    "an unknown mechanism to delete": altered([], [deletion("bad", 9)]),
    "too few iterations": altered([upsertion("bad", iterations=4095)]),
    "too many iterations": altered([upsertion("bad", iterations=16385)]),
    "a user that is not there": altered([], [deletion("bad")]),
    "a credential twice": altered([upsertion("bad"), upsertion("bad")]),
    "a credential set and deleted": altered([upsertion("bad")], [deletion("bad")]),
    "a deletion twice": altered([], [deletion("bad"), deletion("bad")]),
    "two mechanisms of one user, one of them wrong": altered([upsertion("bad", 1), upsertion("bad", 3)]),
}


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_altered(brokers, request_):
    play(brokers, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request_)
    show(brokers, described("bad"))


def test_users_come_and_go(brokers):
    play(
        brokers,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        altered([upsertion("alice", 1, 4096), upsertion("alice", 2, 8192, salted=bytes(64))]),
        altered([upsertion("alice", 1, 4096)]),
        altered([upsertion("alice", 2, 8192, salted=bytes(64))]),
        altered([upsertion("alice", 1, 5000)]),
        altered([upsertion("alice", 1, 5000)], [deletion("alice", 2)]),
    )
    show(brokers, described("alice"), described("alice", "alice"))
    show(brokers, described("nobody"), described())
    show(brokers, DescribeUserScramCredentialsRequest(users=None))
    play(brokers, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, altered([], [deletion("alice", 2)]))
    show(brokers, described("alice"))
    play(brokers, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, altered([], [deletion("alice", 1)]))
    show(brokers, described("alice"), described())


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_where_nobody_authenticates(brokers, version):
    play(brokers, ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism="PLAIN"))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_authentication_where_nobody_authenticates(brokers, version):
    play(brokers, ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(auth_bytes=b"\0a\0b"))


# --- delegation tokens; tests/integration/test_same_token_answers_as_kafka.py has what is answered to known users ---


@pytest.mark.parametrize(
    ("key", "version", "request_"),
    [
        *((ApiKey.CREATE_DELEGATION_TOKEN, version, create_token()) for version in (1, 2, 3)),
        (ApiKey.CREATE_DELEGATION_TOKEN, 3, create_token("bob")),
        *((ApiKey.RENEW_DELEGATION_TOKEN, version, renew_token(b"x")) for version in (1, 2)),
        *((ApiKey.EXPIRE_DELEGATION_TOKEN, version, expire_token(b"x")) for version in (1, 2)),
        *((ApiKey.DESCRIBE_DELEGATION_TOKEN, version, describe_tokens()) for version in (1, 2, 3)),
    ],
)
def test_nobody_asks_for_tokens_in_plaintext(brokers, key, version, request_):
    play(brokers, key, version, request_)
