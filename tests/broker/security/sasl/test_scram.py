import pytest

from barnabas.broker.security.principal import Principal
from barnabas.broker.security.sasl.mechanism import AuthenticationFailed
from barnabas.broker.security.sasl.scram import Scram, TokenLogin, read_credential, write_credential
from barnabas.protocol.scram import (
    ScramClient,
    ScramCredential,
    ScramError,
    encoded,
    is_proof,
    read_first_message,
    server_signature,
)

SHA256 = "SCRAM-SHA-256"
USERS = {
    "alice": ScramCredential.of_password(SHA256, "secret", b"salt of alice", 4096),
    "a=b,c": ScramCredential.of_password(SHA256, "secret", b"another salt", 5000),
}
TOKENS = {"alice": TokenLogin(ScramCredential.of_password(SHA256, "hmac", b"salt", 4096), "owner", 5000)}


def exchange():
    return Scram(SHA256, lambda user, mechanism: USERS.get(user), lambda token_id, mechanism: TOKENS.get(token_id))


def log_in(user, password, server=None):
    server = server or exchange()
    client = ScramClient(SHA256, user, password, b"a nonce of the client")
    final = server.step(client.final(server.step(client.first()).answer))
    client.finish(final.answer)
    return final.principal


def test_the_example_of_rfc_7677():
    credential = ScramCredential.of_password(SHA256, "pencil", _from64("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    auth_message = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    proof = _from64("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    assert is_proof(SHA256, credential, auth_message, proof)
    assert encoded(server_signature(SHA256, credential, auth_message)) == "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def _from64(text):
    import base64

    return base64.b64decode(text)


@pytest.mark.parametrize("user", ["alice", "a=b,c"])
def test_the_right_password_is_accepted(user):
    assert log_in(user, "secret") == Principal("User", user)


def test_a_wrong_password_and_an_unknown_user_get_the_same_answer_at_the_same_step():
    failures = []
    for user in ("alice", "nobody"):
        server = exchange()
        client = ScramClient(SHA256, user, "wrong", b"nonce")
        challenge = server.step(client.first()).answer
        with pytest.raises(AuthenticationFailed) as failure:
            server.step(client.final(challenge))
        failures.append(str(failure.value))
    assert failures[0] == failures[1]
    assert "invalid credentials with SASL mechanism SCRAM-SHA-256" in failures[0]


def test_the_salt_of_an_unknown_user_does_not_change():
    salts = set()
    for _ in range(3):
        answer = exchange().step(ScramClient(SHA256, "nobody", "x", b"nonce").first()).answer
        salts.add(answer.decode().split(",")[1])
    assert len(salts) == 1


def test_the_broker_must_know_the_password_too():
    client = ScramClient(SHA256, "alice", "secret", b"nonce")
    server = exchange()
    server.step(client.final(server.step(client.first()).answer))
    with pytest.raises(ScramError, match="does not know the password"):
        client.finish(b"v=" + encoded(b"something else").encode())


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,,",
        b"n,,n=alice",
        b"n,,r=x,n=alice",
        b"p=tls-unique,,n=alice,r=x",
        b"n,x,n=a,r=b",
        b"\xff\xfe",
        b"n,,n=a=b,r=x",
        b"n,,n=alice,n=alice,r=x",
        b"n,,n=alice,r=",
    ],
)
def test_an_invalid_first_message_is_refused(message):
    with pytest.raises(AuthenticationFailed):
        exchange().step(message)


@pytest.mark.parametrize(
    "final", [b"", b"c=biws", b"c=biws,r=x,p=", b"c=AAAA,r={},p=AAAA", b"c=biws,r={},p=%", b"\xff"]
)
def test_an_invalid_final_message_is_refused(final):
    server = exchange()
    challenge = server.step(ScramClient(SHA256, "alice", "secret", b"nonce").first()).answer
    nonce = challenge.split(b",")[0].removeprefix(b"r=")
    with pytest.raises(AuthenticationFailed):
        server.step(final.replace(b"{}", nonce))


def test_credentials_are_written_as_kafka_does():
    credential = USERS["alice"]
    text = write_credential(credential)
    assert text.startswith("salt=c2FsdCBvZiBhbGljZQ==,stored_key=")
    assert text.endswith(",iterations=4096")
    assert read_credential(text) == credential
    assert read_credential("salt=x") is None
    assert "c2FsdA" not in repr(credential)


def test_a_first_message_is_read():
    first = read_first_message(b"n,,n=x=3Dy=2Cz,r=abc,tokenauth=true")
    assert (first.user, first.nonce, first.extensions) == ("x=y,z", "abc", {"tokenauth": "true"})


@pytest.mark.parametrize(("flag", "is_let_in"), [("true", True), ("TRUE", True), ("false", False), ("", False)])
def test_a_delegation_token_is_another_kind_of_user(flag, is_let_in):
    server = exchange()
    client = ScramClient(SHA256, "alice", "hmac", b"nonce", {"tokenauth": flag})
    proof = client.final(server.step(client.first()).answer)
    if is_let_in:
        last = server.step(proof)
        client.finish(last.answer)
        assert (last.principal, last.expires_at_ms, last.by_token) == (Principal("User", "owner"), 5000, True)
    else:
        with pytest.raises(AuthenticationFailed):
            server.step(proof)


def test_a_users_password_does_not_work_for_a_token():
    server = exchange()
    client = ScramClient(SHA256, "alice", "secret", b"nonce", {"tokenauth": "true"})
    with pytest.raises(AuthenticationFailed):
        server.step(client.final(server.step(client.first()).answer))
