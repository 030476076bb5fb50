"""Ready-made settings for the clients of a broker, under each library's own names.

Only the standard library is used: this runs in the user's test process.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from barnabas.errors import BarnabasError

DEFAULT_MECHANISM: Final = "SCRAM-SHA-256"
_LIBRARIES: Final = {
    "confluent": "confluent",
    "confluent-kafka": "confluent",
    "confluent_kafka": "confluent",
    "librdkafka": "confluent",
    "kafka-python": "kafka-python",
    "kafka_python": "kafka-python",
    "kafka": "kafka-python",
    "aiokafka": "aiokafka",
    "java": "java",
}
_JAVA_LOGIN: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class Access(NamedTuple):
    """How a broker is reached."""

    bootstrap_servers: str
    protocol: str = "PLAINTEXT"
    ca: str | None = None  # the file with the certificates to be trusted
    user: str | None = None
    password: str | None = None
    mechanism: str = DEFAULT_MECHANISM
    certificate: str | None = None  # a file with a private key and its certificate

    def __repr__(self) -> str:
        return f"Access({self.bootstrap_servers}, {self.protocol}, {self.user})"


def client_settings(library: str, access: Access) -> dict[str, Any]:
    """The settings with which to create a client of this library."""
    try:
        make = _MAKERS[_LIBRARIES[library.lower()]]
    except KeyError:
        known = ", ".join(dict.fromkeys(_LIBRARIES.values()))
        raise BarnabasError(f"unknown client library {library!r}; the known ones are {known}") from None
    return make(access)


def _confluent(access: Access) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": access.bootstrap_servers}
    if access.protocol == "PLAINTEXT":
        return settings
    settings["security.protocol"] = access.protocol
    if access.ca is not None:
        settings["ssl.ca.location"] = access.ca
    if access.certificate is not None:
        settings |= {"ssl.certificate.location": access.certificate, "ssl.key.location": access.certificate}
    if access.user is not None:
        settings |= {
            "sasl.mechanism": access.mechanism,
            "sasl.username": access.user,
            "sasl.password": access.password,
        }
    return settings


def _kafka_python(access: Access) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap_servers": access.bootstrap_servers.split(",")}
    if access.protocol == "PLAINTEXT":
        return settings
    settings["security_protocol"] = access.protocol
    if access.ca is not None:
        settings["ssl_cafile"] = access.ca
    if access.certificate is not None:
        settings["ssl_certfile"] = access.certificate
    return settings | _sasl(access)


def _aiokafka(access: Access) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap_servers": access.bootstrap_servers.split(",")}
    if access.protocol == "PLAINTEXT":
        return settings
    settings["security_protocol"] = access.protocol
    if access.ca is not None:
        import ssl

        context = ssl.create_default_context(cafile=access.ca)
        if access.certificate is not None:
            context.load_cert_chain(access.certificate)
        settings["ssl_context"] = context
    return settings | _sasl(access)


def _sasl(access: Access) -> dict[str, Any]:
    if access.user is None:
        return {}
    return {
        "sasl_mechanism": access.mechanism,
        "sasl_plain_username": access.user,
        "sasl_plain_password": access.password,
    }


def _java(access: Access) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": access.bootstrap_servers}
    if access.protocol == "PLAINTEXT":
        return settings
    settings["security.protocol"] = access.protocol
    if access.ca is not None:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": access.ca}
    if access.certificate is not None:
        settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": access.certificate}
    if access.user is not None:
        login = f"{_JAVA_LOGIN[access.mechanism]} required"
        settings["sasl.mechanism"] = access.mechanism
        settings["sasl.jaas.config"] = f"{login} username={_quoted(access.user)} password={_quoted(access.password)};"
    return settings


def _quoted(text: str | None) -> str:
    escaped = (text or "").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_MAKERS: Final = {
    "confluent": _confluent,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
    "java": _java,
}


def as_properties(settings: dict[str, Any]) -> str:
    """Settings as a .properties file has them."""
    lines = []
    for name, value in settings.items():
        text = str(value).replace("\\", "\\\\").replace("\n", "\\n")
        lines.append(f"{name}={text}\n")
    return "".join(lines)
