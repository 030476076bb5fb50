import pytest

from barnabas.protocol.jaas import JaasError, parse_jaas

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_login_module_with_users():
    users = """user_admin="a;=b" user_alice='x"y' user_bob="q\\"r\"; """
    found = parse_jaas(f'{MODULE} required\n username="admin" password="a;=b" {users}', "s")
    assert found.module == MODULE
    assert found.users == {"admin": "a;=b", "alice": 'x"y', "bob": 'q"r'}
    assert found.own == ("admin", "a;=b")
    assert "a;=b" not in repr(found)


def test_options_are_optional():
    found = parse_jaas(f"{MODULE} required;", "s")
    assert (found.users, found.own) == ({}, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        MODULE,
        f"{MODULE} required",
        f'{MODULE} maybe user_a="s3cret";',
        f'{MODULE} required user_a "s3cret";',
        f'{MODULE} required user_a="s3cret',
        f'{MODULE} required user_a="s3cret" user_b;',
    ],
)
def test_what_cannot_be_read_is_not_quoted(text):
    with pytest.raises(JaasError, match=r"^the\.setting cannot be read") as refused:
        parse_jaas(text, "the.setting")
    assert "s3cret" not in str(refused.value)
