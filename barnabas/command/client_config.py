"""`--client-config FILE`: Kafka's client settings, as its own tools take them with --command-config.

librdkafka's names are accepted as well, where they differ.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.properties import read_properties
from barnabas.broker.security.errors import SecurityError
from barnabas.client.security import MECHANISMS, PLAINTEXT, Security
from barnabas.command.ending import UsageError
from barnabas.protocol.jaas import JaasError, parse_jaas
from barnabas.protocol.scram import TOKEN_AUTH

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def read_client_config(path: str) -> tuple[Security, str | None]:
    """What the file says about security, and its bootstrap.servers if it has any."""
    settings = read_client_settings(path)
    try:
        return _security(settings), settings.get("bootstrap.servers")
    except (ConfigError, SecurityError, JaasError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{path}: {reason}") from None


def read_client_settings(path: str) -> dict[str, str]:
    """The settings of the file themselves. UsageError if it cannot be read."""
    try:
        return {name: value for name, value, _ in read_properties(path)}
    except ConfigError as error:
        raise UsageError(str(error)) from None


def _security(settings: Mapping[str, str]) -> Security:
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise SecurityError(f"security.protocol is {protocol}, but it must be one of {', '.join(_PROTOCOLS)}")
    tls = _tls(settings) if protocol.endswith("SSL") else None
    if not protocol.startswith("SASL"):
        return PLAINTEXT._replace(tls=tls)
    mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "")).upper()
    if mechanism not in MECHANISMS:
        raise SecurityError(
            f"sasl.mechanism is {mechanism or 'not set'}, but it must be one of {', '.join(MECHANISMS)}"
        )
    user, password = settings.get("sasl.username"), settings.get("sasl.password")
    if user is not None and password is not None:
        return Security(tls, mechanism, user, password)
    jaas = parse_jaas(settings.get("sasl.jaas.config", ""), "sasl.jaas.config")
    if jaas.own is None:
        raise SecurityError("sasl.jaas.config has no username and password")
    is_token = jaas.options.get(TOKEN_AUTH, "").lower() == "true"
    return Security(tls, mechanism, *jaas.own, is_token=is_token)


def _tls(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Stores are read as a broker reads its own."""
    from barnabas.broker.config.definitions.security import SecuritySettings
    from barnabas.broker.config.setting import settings_of
    from barnabas.broker.security.tls import Tls

    found = dict(settings)
    if "ssl.ca.location" in found:
        found.update({"ssl.truststore.type": "PEM", "ssl.truststore.location": found["ssl.ca.location"]})
    if "ssl.certificate.location" in found:
        parts = [found["ssl.certificate.location"], found.get("ssl.key.location", found["ssl.certificate.location"])]
        chain, key = (_text(part) for part in parts)
        found.update({"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain})
    known = SecuritySettings()
    for name, setting in settings_of(SecuritySettings).items():
        known.__dict__[setting.attribute] = setting.parse(found[name]) if name in found else setting.default
    return Tls.of_client(known)


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()
