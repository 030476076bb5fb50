import pytest

from barnabas.broker.security.principal import Principal
from barnabas.broker.security.sasl.mechanism import AuthenticationFailed
from barnabas.broker.security.sasl.plain import Plain

USERS = {"alice": "secret", "bob": "päss"}


@pytest.mark.parametrize(
    ("message", "user"), [("\0alice\0secret", "alice"), ("alice\0alice\0secret", "alice"), ("\0bob\0päss", "bob")]
)
def test_the_right_password_is_accepted(message, user):
    step = Plain(USERS).step(message.encode())
    assert (step.principal, step.answer) == (Principal("User", user), b"")


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"bob\0alice\0secret", "Client requested an authorization id that is different from username"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0a\0b\0c", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\xff\xff", "not UTF-8"),
    ],
)
def test_everything_else_is_refused(message, sentence):
    with pytest.raises(AuthenticationFailed, match=sentence) as failure:
        Plain(USERS).step(message)
    assert "wrong" not in str(failure.value)
