"""Who a broker is to others, by its settings."""

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.interbroker.sasl_network import OwnLogin
from barnabas.broker.security.errors import SecurityError

URL = "sasl.oauthbearer.token.endpoint.url"
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def login(mechanism, settings=None):
    return OwnLogin(
        BrokerConfig(
            {
                "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": mechanism,
                "sasl.mechanism.inter.broker.protocol": mechanism,
                **(settings or {}),
            }
        )
    )


def test_a_name_and_a_password():
    jaas = f'{PLAIN_LOGIN} required username="broker" password="b";'
    own = login("PLAIN", {"listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas})
    assert (own.user, own.password) == ("broker", "b")


def test_a_token_of_a_file_is_read_each_time(tmp_path):
    file = tmp_path / "a token.jwt"
    for token in ("a.b.c", "d.e.f"):
        file.write_text(f"{token}\n")
        assert login("OAUTHBEARER", {URL: file.as_uri()}).token == token


@pytest.mark.parametrize(
    ("mechanism", "url", "complaint"),
    [
        ("PLAIN", None, "must have the username and the password of the broker itself"),
        ("GSSAPI", None, "Barnabas authenticates with PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER only"),
        ("OAUTHBEARER", None, "must be a file:// URL"),
        ("OAUTHBEARER", "https://issuer.example/token", "must be a file:// URL"),
        ("OAUTHBEARER", "file:///no/such/file", "cannot be read: No such file"),
        ("OAUTHBEARER", "file:///dev/null", "holds no token"),
    ],
)
def test_a_broker_that_has_no_login(mechanism, url, complaint):
    with pytest.raises(SecurityError, match=complaint):
        login(mechanism, {} if url is None else {URL: url})
