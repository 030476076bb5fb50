import pytest

from barnabas.broker.security.principal import Principal
from barnabas.broker.security.tokens import Lifetimes, Token, TokenRefused, ended, hmac_of, issued, renewed
from barnabas.protocol.errors import ErrorCode

ALICE, BOB, CAROL, DAVE = (Principal("User", name) for name in ("alice", "bob", "carol", "dave"))
LIFETIMES = Lifetimes(renewal_ms=100, max_ms=1000)
TOKEN = Token("id", ALICE, BOB, (CAROL,), issued_at_ms=0, expires_at_ms=100, max_at_ms=1000)


def test_a_password_is_computed_from_the_id_and_the_key():
    assert hmac_of("id", "key").hex().startswith("69203b2245b207c6")
    assert len(hmac_of("id", "key")) == 64
    assert hmac_of("id", "another key") != hmac_of("id", "key")


@pytest.mark.parametrize(
    ("wanted_ms", "expires_at_ms", "max_at_ms"),
    [(-1, 5100, 6000), (0, 5100, 6000), (50, 5050, 5050), (500, 5100, 5500), (5000, 5100, 6000)],
)
def test_a_life_can_be_made_shorter_but_not_longer(wanted_ms, expires_at_ms, max_at_ms):
    token = issued("id", ALICE, BOB, (CAROL,), wanted_ms, LIFETIMES, 5000)
    assert token == Token("id", ALICE, BOB, (CAROL,), 5000, expires_at_ms, max_at_ms)


@pytest.mark.parametrize("who", [ALICE, CAROL])
@pytest.mark.parametrize(("wanted_ms", "now_ms", "end_ms"), [(-1, 90, 190), (10, 90, 100), (500, 90, 190)])
def test_owner_and_renewers_renew_it(who, wanted_ms, now_ms, end_ms):
    assert renewed(TOKEN, who, wanted_ms, LIFETIMES, now_ms) == TOKEN._replace(expires_at_ms=end_ms)


def test_nothing_is_renewed_beyond_its_longest_life():
    old = TOKEN._replace(expires_at_ms=980)
    assert renewed(old, ALICE, -1, LIFETIMES, 950).expires_at_ms == 1000


def test_a_token_expires_when_asked():
    assert ended(TOKEN, ALICE, 50, 10) == TOKEN._replace(expires_at_ms=60)
    assert ended(TOKEN, ALICE, 5000, 10) == TOKEN._replace(expires_at_ms=1000)
    assert ended(TOKEN, ALICE, -1, 10) is None
    assert ended(TOKEN, ALICE, -1, 2000) is None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda: renewed(TOKEN, DAVE, -1, LIFETIMES, 10), ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (lambda: renewed(TOKEN, BOB, -1, LIFETIMES, 10), ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (lambda: ended(TOKEN, DAVE, -1, 10), ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (lambda: ended(TOKEN, DAVE, 10, 10), ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (lambda: renewed(TOKEN, ALICE, -1, LIFETIMES, 101), ErrorCode.DELEGATION_TOKEN_EXPIRED),
        (lambda: ended(TOKEN, ALICE, 0, 101), ErrorCode.DELEGATION_TOKEN_EXPIRED),
    ],
)
def test_what_is_refused(change, code):
    with pytest.raises(TokenRefused) as refused:
        change()
    assert refused.value.code == code
