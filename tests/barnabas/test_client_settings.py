import pytest

from barnabas.client_settings import Access, as_properties, client_settings
from barnabas.errors import BarnabasError
from tests.support import certificates

SECURED = Access("127.0.0.1:9093", "SASL_SSL", ca="/ca.pem", user="alice", password='a"\\b')


def test_plaintext_needs_nothing_but_the_address():
    access = Access("a:1,b:2")
    assert client_settings("confluent", access) == {"bootstrap.servers": "a:1,b:2"}
    assert client_settings("kafka-python", access) == {"bootstrap_servers": ["a:1", "b:2"]}
    assert client_settings("aiokafka", access) == {"bootstrap_servers": ["a:1", "b:2"]}
    assert client_settings("java", access) == {"bootstrap.servers": "a:1,b:2"}


def test_each_library_has_names_of_its_own():
    assert client_settings("confluent", SECURED) == {
        "bootstrap.servers": "127.0.0.1:9093",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "/ca.pem",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": 'a"\\b',
    }
    assert client_settings("kafka-python", SECURED)["ssl_cafile"] == "/ca.pem"
    java = client_settings("java", SECURED)
    assert java["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        r'username="alice" password="a\"\\b";'
    )


def test_a_context_for_aiokafka(tmp_path):
    files = certificates.Files(tmp_path)
    access = Access("a:1", "SSL", ca=str(files.ca), certificate=str(files.client))
    assert client_settings("aiokafka", access)["ssl_context"].get_ca_certs()


def test_an_unknown_library_is_named():
    with pytest.raises(BarnabasError, match="the known ones are confluent, kafka-python, aiokafka, java"):
        client_settings("sarama", SECURED)


def test_passwords_are_not_shown():
    assert "\\b" not in repr(SECURED)


def test_settings_as_a_file():
    assert as_properties({"a": "b\\c"}) == "a=b\\\\c\n"
