"""One set of client settings for two clients: librdkafka here and on executors, Java's in Spark's connector.

A file gives them under the names that librdkafka has; the few that Java's client spells differently are translated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_JAVA_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_SHARED: Final = ("security.protocol", "sasl.mechanism", "client.id", "client.dns.lookup")


def for_librdkafka(bootstrap: str, settings: Mapping[str, str]) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        # With `rebootstrap`, calls exceeded their timeout when the broker went away.
        "metadata.recovery.strategy": "none",
        "log_level": 0,  # what goes wrong is raised; librdkafka's lines on standard error would stand between ours
        **settings,
    }


def for_java(bootstrap: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Options of Spark's connector, with its prefix."""
    translated = {"bootstrap.servers": bootstrap}
    translated.update({name: settings[name] for name in _SHARED if name in settings})
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms")
    if mechanism is not None:
        translated["sasl.mechanism"] = mechanism
    if mechanism in _JAVA_MODULES and "sasl.username" in settings:
        user, password = (_quoted(settings.get(f"sasl.{name}", "")) for name in ("username", "password"))
        translated["sasl.jaas.config"] = f"{_JAVA_MODULES[mechanism]} required username={user} password={password};"
    if "ssl.ca.location" in settings:
        translated["ssl.truststore.type"] = "PEM"
        translated["ssl.truststore.location"] = settings["ssl.ca.location"]
    if settings.get("ssl.endpoint.identification.algorithm") == "none":
        translated["ssl.endpoint.identification.algorithm"] = ""
    return {f"kafka.{name}": value for name, value in translated.items()}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
