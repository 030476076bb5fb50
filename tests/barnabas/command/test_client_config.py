import pytest

from barnabas.client.security import PLAINTEXT, Security
from barnabas.command.client_config import read_client_config, read_client_settings
from barnabas.command.ending import UsageError

LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SASL = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "client.properties"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("text", "security"),
    [
        ("", PLAINTEXT),
        (f"{SASL}sasl.username=alice\nsasl.password=x\n", Security(None, "SCRAM-SHA-256", "alice", "x")),
        (f'{SASL}sasl.jaas.config={LOGIN} username="a" password="x";', Security(None, "SCRAM-SHA-256", "a", "x")),
        (
            f'{SASL}sasl.jaas.config={LOGIN} username="id" password="hmac" tokenauth="true";',
            Security(None, "SCRAM-SHA-256", "id", "hmac", is_token=True),
        ),
    ],
    ids=["nothing", "librdkafka's names", "Java's names", "a delegation token"],
)
def test_who_a_client_is(file, text, security):
    assert read_client_config(file(text)) == (security, None)


def test_the_settings_themselves(file):
    assert read_client_settings(file("bootstrap.servers=h:1\nssl.ca.location=ca.pem\n")) == {
        "bootstrap.servers": "h:1",
        "ssl.ca.location": "ca.pem",
    }


@pytest.mark.parametrize(
    "text",
    [
        f'{SASL}sasl.jaas.config={LOGIN} password="s3cret\n',
        f'{SASL}sasl.jaas.config={LOGIN} user_x="s3cret";\n',
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=MAGIC\nsasl.password=s3cret\n",
        "security.protocol=TELEPATHY\n",
    ],
)
def test_what_cannot_be_used_is_said_without_secrets(file, text):
    path = file(text)
    with pytest.raises(UsageError) as refused:
        read_client_config(path)
    assert path in str(refused.value)
    assert "s3cret" not in str(refused.value)
