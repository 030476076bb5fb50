import base64
import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from barnabas.broker.security.principal import Principal
from barnabas.broker.security.sasl.jwks import FileKeys
from barnabas.broker.security.sasl.mechanism import AuthenticationFailed, Step
from barnabas.broker.security.sasl.oauthbearer import InvalidToken, OAuthBearer, Validator

NOW = 1_700_000_000
RSA = rsa.generate_private_key(65537, 2048)
ELLIPTIC = ec.generate_private_key(ec.SECP256R1())
STRANGER = rsa.generate_private_key(65537, 2048)
CLAIMS = {"sub": "alice", "iat": NOW, "exp": NOW + 60, "iss": "https://issuer", "aud": ["kafka", "x"], "scope": "a b"}


def key_set(**keys):
    kinds = {rsa.RSAPrivateKey: jwt.algorithms.RSAAlgorithm, ec.EllipticCurvePrivateKey: jwt.algorithms.ECAlgorithm}
    described = []
    for key_id, key in keys.items():
        algorithm = next(kind for base, kind in kinds.items() if isinstance(key, base))
        described.append({**json.loads(algorithm.to_jwk(key.public_key())), "kid": key_id, "use": "sig"})
    return json.dumps({"keys": described})


def without(*names, **more):
    return {name: value for name, value in CLAIMS.items() if name not in names} | more


@pytest.fixture
def keys(tmp_path):
    (tmp_path / "keys.json").write_text(key_set(one=RSA, two=ELLIPTIC))
    return FileKeys(str(tmp_path / "keys.json"), "the.setting")


def signed(claims=CLAIMS, key=RSA, algorithm="RS256", key_id="one"):
    return jwt.encode(claims, key, algorithm, headers={"kid": key_id})


def validator(keys, **settings):
    return Validator(keys, lambda: NOW * 1000, **settings)


@pytest.mark.parametrize(
    "token", [signed(), signed(key=ELLIPTIC, algorithm="ES256", key_id="two"), signed(algorithm="PS512")]
)
def test_a_good_token(keys, token):
    claims = validator(keys, issuer="https://issuer", audience=["kafka"]).validate(token)
    assert (claims.subject, claims.scope, claims.expires_at_ms) == ("alice", {"a", "b"}, (NOW + 60) * 1000)


def test_claims_may_have_other_names(keys):
    token = signed(without("sub", "scope", user="bob", scp=["x"]))
    claims = validator(keys, subject_claim="user", scope_claim="scp").validate(token)
    assert (claims.subject, claims.scope) == ("bob", {"x"})


def test_clocks_may_differ_a_little(keys):
    late = signed(without("exp", exp=NOW - 29))
    assert validator(keys).validate(late).subject == "alice"
    early = signed(without(nbf=NOW + 29))
    assert validator(keys).validate(early).subject == "alice"


HMAC = jwt.encode(CLAIMS, b"a secret that is long enough for it", "HS256", {"kid": "one"})


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (signed(without("exp", exp=NOW - 31)), "has expired"),
        (signed(without("exp")), "has no exp"),
        (signed(without("iat")), "has no iat"),
        (signed(without("exp", exp="soon")), "has no exp"),
        (signed(without(nbf=NOW + 31)), "not valid yet"),
        (signed(without("sub")), "has no sub"),
        (signed(without("sub", sub=" ")), "has no sub"),
        (signed(without("iss", iss="https://other")), "another issuer"),
        (signed(without("iss")), "another issuer"),
        (signed(without("aud", aud="other")), "another audience"),
        (signed(without("aud")), "has no aud"),
        (signed(key=STRANGER), "cannot be verified"),
        (signed(key_id="three"), "key is not known"),
        (jwt.encode(CLAIMS, None, "none", {"kid": "one"}), "not signed by an algorithm with a public key"),
        (HMAC, "not signed by an algorithm with a public key"),
        (signed()[:-3] + "AAA", "cannot be verified"),
        ("nonsense", "cannot be verified"),
        ("", "cannot be verified"),
        ("a.b.c", "cannot be verified"),
    ],
)
def test_a_token_that_is_not_accepted(keys, token, reason):
    with pytest.raises(InvalidToken, match=reason) as refused:
        validator(keys, issuer="https://issuer", audience=["kafka"]).validate(token)
    assert len(token) < 30 or token not in str(refused.value)


def test_unsigned_tokens_only_where_they_are_enabled():
    unsigned = jwt.encode(CLAIMS, None, "none")
    assert validator(None).validate(unsigned).subject == "alice"
    with pytest.raises(InvalidToken, match="accepts only unsigned tokens"):
        validator(None).validate(signed())


def test_an_unsigned_token_need_not_say_when_it_was_issued():
    """As in Kafka."""
    assert validator(None).validate(jwt.encode(without("iat"), None, "none")).subject == "alice"


def unsigned_of(claims):
    header, payload = (base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (b'{"alg":"none"}', claims))
    return f"{header}.{payload}."


@pytest.mark.parametrize(
    "claims",
    [
        b'{"sub": "a", "exp": 1e999}',
        b'{"sub": "a", "exp": NaN}',
        b'{"sub": "a", "exp": 9999999999, "nbf": -1e999}',
        b'{"sub": ' + b"[" * 100_000,
    ],
)
def test_claims_that_make_no_sense(claims):
    with pytest.raises(InvalidToken):
        validator(None).validate(unsigned_of(claims))


# --- the exchange ---


def message(token, header="n,,"):
    return f"{header}\x01auth=Bearer {token}\x01\x01".encode()


@pytest.mark.parametrize("header", ["n,,", "n,a=alice,"])
def test_an_exchange(keys, header):
    step = OAuthBearer(validator(keys)).step(message(signed(), header))
    assert step == Step(b"", Principal("User", "alice"), (NOW + 60) * 1000)


def test_a_refusal_is_reported_and_acknowledged(keys):
    exchange = OAuthBearer(validator(keys))
    assert exchange.step(message("nonsense")) == Step(b'{"status":"invalid_token"}')
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        exchange.step(b"\x01")


def test_another_authorization_id_is_refused(keys):
    with pytest.raises(AuthenticationFailed, match="authorization id"):
        OAuthBearer(validator(keys)).step(message(signed(), "n,a=bob,"))


@pytest.mark.parametrize(
    "sent",
    [b"", b"\xff", b"n,,", b"x,,\x01auth=Bearer t\x01\x01", b"n,b,\x01auth=Bearer t\x01\x01", b"n,,\x01auth=t\x01\x01"],
)
def test_an_invalid_first_message(keys, sent):
    with pytest.raises(AuthenticationFailed, match="Invalid OAUTHBEARER client first message"):
        OAuthBearer(validator(keys)).step(sent)
