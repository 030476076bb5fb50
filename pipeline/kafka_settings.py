"""One set of client settings for two clients: librdkafka here and on executors, Java's in Spark's connector.

They may be given under the names of either. Where the two differ (users, passwords, stores), they are translated.
Nothing here says what a setting contains: there are passwords among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.jaas import JaasError, parse_jaas
from barnabas.protocol.scram import TOKEN_AUTH

_JAVA_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_STORES: Final = (
    *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.certificates"),
    *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password"),
    *("ssl.keystore.key", "ssl.keystore.certificate.chain"),
)
# Settings with the same name in both, or known only to the Java client.
_FOR_JAVA: Final = (
    *("security.protocol", "sasl.mechanism", "sasl.jaas.config", "client.id", "client.dns.lookup"),
    *("ssl.key.password", "ssl.endpoint.identification.algorithm", "ssl.enabled.protocols", "ssl.protocol"),
    *_STORES,
)
_ONLY_FOR_JAVA: Final = frozenset({"sasl.jaas.config", "ssl.enabled.protocols", "ssl.protocol", *_STORES})
_CA, _KEY, _CERTIFICATE = "ssl.ca.location", "ssl.key.location", "ssl.certificate.location"


class SettingsError(ValueError):
    """Why one of the two clients cannot use the settings."""


def problem_with(settings: Mapping[str, str]) -> str | None:
    try:
        for_librdkafka("", settings)
        for_java("", settings)
    except SettingsError as error:
        return str(error)
    return None


def for_librdkafka(bootstrap: str, settings: Mapping[str, str]) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        # With `rebootstrap`, calls exceeded their timeout when the broker went away.
        "metadata.recovery.strategy": "none",
        "log_level": 0,  # errors are raised; librdkafka's lines on standard error would mix with ours
        **_as_librdkafka_has_it(settings),
    }


def _as_librdkafka_has_it(settings: Mapping[str, str]) -> dict[str, str]:
    translated = {name: value for name, value in settings.items() if name not in _ONLY_FOR_JAVA}
    if "sasl.jaas.config" in settings and "sasl.username" not in settings:
        user, password = _login(settings["sasl.jaas.config"])
        translated |= {"sasl.username": user, "sasl.password": password}
    is_pem = settings.get("ssl.truststore.type", "").upper() == "PEM"
    if "ssl.truststore.location" in settings and not is_pem:
        raise SettingsError(
            "ssl.truststore.location must be a PEM file, with ssl.truststore.type=PEM: librdkafka, which works beside "
            "Spark, reads no other kind"
        )
    if is_pem:
        _move(settings, "ssl.truststore.location", translated, _CA)
        _move(settings, "ssl.truststore.certificates", translated, "ssl.ca.pem")
    if settings.get("ssl.keystore.type", "").upper() == "PEM":
        _move(settings, "ssl.keystore.location", translated, _KEY)
        _move(settings, "ssl.keystore.location", translated, _CERTIFICATE)
        _move(settings, "ssl.keystore.key", translated, "ssl.key.pem")
        _move(settings, "ssl.keystore.certificate.chain", translated, "ssl.certificate.pem")
    else:
        for name in ("ssl.keystore.location", "ssl.keystore.password"):  # PKCS12 has the same names in both
            _move(settings, name, translated, name)
    if settings.get("ssl.endpoint.identification.algorithm") == "":
        translated["ssl.endpoint.identification.algorithm"] = "none"
    return translated


def for_java(bootstrap: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Options of Spark's connector, with its prefix."""
    translated = {"bootstrap.servers": bootstrap}
    translated.update({name: settings[name] for name in _FOR_JAVA if name in settings})
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms")
    if mechanism is not None:
        translated["sasl.mechanism"] = mechanism
    if mechanism in _JAVA_MODULES and "sasl.username" in settings:
        user, password = (_quoted(settings.get(f"sasl.{name}", "")) for name in ("username", "password"))
        translated["sasl.jaas.config"] = f"{_JAVA_MODULES[mechanism]} required username={user} password={password};"
    if _CA in settings:
        translated["ssl.truststore.type"] = "PEM"
        translated["ssl.truststore.location"] = settings[_CA]
    if _CERTIFICATE in settings:
        translated["ssl.keystore.type"] = "PEM"
        translated["ssl.keystore.certificate.chain"] = _content(settings, _CERTIFICATE)
        translated["ssl.keystore.key"] = _content(settings, _KEY if _KEY in settings else _CERTIFICATE)
    if settings.get("ssl.endpoint.identification.algorithm") == "none":
        translated["ssl.endpoint.identification.algorithm"] = ""
    return {f"kafka.{name}": value for name, value in translated.items()}


def _login(jaas: str) -> tuple[str, str]:
    try:
        found = parse_jaas(jaas, "sasl.jaas.config")
    except JaasError as error:
        raise SettingsError(str(error)) from None
    if found.options.get(TOKEN_AUTH, "").lower() == "true":
        raise SettingsError(
            "sasl.jaas.config has a delegation token: librdkafka, which works beside Spark, cannot log in with one"
        )
    if found.own is None:
        raise SettingsError("sasl.jaas.config has no username and password")
    return found.own


def _move(settings: Mapping[str, str], name: str, translated: dict[str, str], new_name: str) -> None:
    if name in settings:
        translated[new_name] = settings[name]


def _content(settings: Mapping[str, str], name: str) -> str:
    try:
        with open(settings[name], encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        raise SettingsError(f"{name}: the file {settings[name]} cannot be read") from None


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
