"""The same settings for librdkafka and for Java's client, under the names of either."""

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka.admin import AdminClient

from barnabas.pipeline.kafka_settings import for_java, for_librdkafka, problem_with

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
JAVA = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": f'{SCRAM} required username="alice" password="a \\"b\\\\";',
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "/ca.pem",
    "ssl.endpoint.identification.algorithm": "",
}
LIBRDKAFKA = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "alice",
    "sasl.password": 'a "b\\',
    "ssl.ca.location": "/ca.pem",
    "ssl.endpoint.identification.algorithm": "none",
}


def librdkafka(settings):
    own = for_librdkafka("host:1", {})
    return {name: value for name, value in for_librdkafka("host:1", settings).items() if name not in own}


def java(settings):
    return {
        name.removeprefix("kafka."): value
        for name, value in for_java("host:1", settings).items()
        if name != "kafka.bootstrap.servers"
    }


@pytest.mark.parametrize("given", [JAVA, LIBRDKAFKA], ids=["Java's", "librdkafka's"])
def test_each_client_gets_its_own_names(given):
    assert librdkafka(given) == LIBRDKAFKA
    assert java(given) == JAVA


def test_the_brokers_are_those_of_the_pipeline():
    assert for_librdkafka("host:1", JAVA)["bootstrap.servers"] == "host:1"
    assert for_java("host:1", JAVA)["kafka.bootstrap.servers"] == "host:1"


def test_a_key_in_a_pem_file(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    key.write_text("the key")
    certificate.write_text("the certificate")
    given = {"ssl.key.location": str(key), "ssl.certificate.location": str(certificate), "ssl.key.password": "x"}
    assert librdkafka(given) == given
    assert java(given) == {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": "the key",
        "ssl.keystore.certificate.chain": "the certificate",
        "ssl.key.password": "x",
    }
    both = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "both.pem"}
    assert librdkafka(both) == {"ssl.key.location": "both.pem", "ssl.certificate.location": "both.pem"}
    assert java(both) == both


def test_pem_in_the_settings():
    given = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "trusted",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": "key",
        "ssl.keystore.certificate.chain": "chain",
    }
    assert librdkafka(given) == {"ssl.ca.pem": "trusted", "ssl.key.pem": "key", "ssl.certificate.pem": "chain"}
    assert java(given) == given


def test_a_pkcs12_store_of_keys_is_one_for_both():
    given = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "k.p12", "ssl.keystore.password": "x"}
    assert librdkafka(given) == {"ssl.keystore.location": "k.p12", "ssl.keystore.password": "x"}
    assert java(given) == given


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ssl.truststore.location": "t.p12", "ssl.truststore.password": "s3cret"}, "must be a PEM file"),
        ({"sasl.jaas.config": 'Module required password="s3cret'}, "a quotation mark is missing"),
        ({"sasl.jaas.config": 'Module required user_x="s3cret";'}, "no username and password"),
        (
            {"sasl.jaas.config": 'M required username="id" password="s3cret" tokenauth="true";'},
            "cannot log in with one",
        ),
        ({"ssl.certificate.location": "/nowhere/c.pem"}, "ssl.certificate.location: the file /nowhere/c.pem cannot"),
    ],
)
def test_what_one_of_them_cannot_do_is_said_without_secrets(settings, said):
    problem = problem_with(settings)
    assert said in problem
    assert "s3cret" not in problem


def test_librdkafka_takes_the_translation():
    settings = {name: value for name, value in JAVA.items() if not name.startswith("ssl.truststore")}
    AdminClient(for_librdkafka("127.0.0.1:1", settings))
