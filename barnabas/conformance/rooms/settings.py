"""Settings of topics and brokers: described, changed, refused."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.requests import admin
from barnabas.client.requests.admin import APPEND, BROKER, DELETE, SET, SUBTRACT, TOPIC
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode

room = Room("settings", "Settings described and changed")

DYNAMIC_TOPIC: Final = 1
UNKNOWN_RESOURCE: Final = 99


def _describe(
    probe: Probe, name: str, keys: list[str] | None = None, *, resource_type: int = TOPIC, synonyms: bool = False
) -> Any:
    request = admin.describe_configs((resource_type, name, keys), synonyms=synonyms)
    (found,) = probe.ask(ApiKey.DESCRIBE_CONFIGS, request).results
    return found


def _value(probe: Probe, topic: str, key: str) -> Any:
    found = _describe(probe, topic, [key])
    probe.expect_error("DescribeConfigs", found.error_code)
    (setting,) = found.configs
    return setting


def _becomes(probe: Probe, topic: str, key: str, value: str) -> None:
    """Wait for a changed setting to reach the brokers, which may happen after the response."""
    probe.until(f"{key} to become {value}", lambda: _value(probe, topic, key).value, lambda seen: seen == value)
    probe.require(True, f"{key} to become {value}", "it did")


def _alter(
    probe: Probe,
    name: str,
    *operations: tuple[int, str, str | None],
    resource_type: int = TOPIC,
    validate_only: bool = False,
) -> int:
    request = admin.incremental_alter_configs((resource_type, name, operations), validate_only=validate_only)
    (answer,) = probe.ask_controller(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
    return int(answer.error_code)


@room.check("described", "KIP-133", "DescribeConfigs", "CreateTopics")
def described(probe: Probe) -> None:
    """A topic's own setting is described with its value, as the topic's own (DYNAMIC_TOPIC_CONFIG)."""
    topic = probe.topic(configs={"retention.ms": "12345678"})
    setting = _value(probe, topic, "retention.ms")
    probe.expect("its value", setting.value, "12345678")
    probe.expect("its source", setting.config_source, DYNAMIC_TOPIC)


@room.check("described-default", "KIP-226", "DescribeConfigs 1+")
def described_default(probe: Probe) -> None:
    """A setting that the topic does not override is described with its value from another source."""
    setting = _value(probe, probe.topic(), "segment.bytes")
    probe.require(setting.config_source != DYNAMIC_TOPIC, "another source than the topic", f"{setting.config_source}")
    probe.require(bool(setting.value), "a value", repr(setting.value))


@room.check("described-keys", "KIP-133", "DescribeConfigs")
def described_keys(probe: Probe) -> None:
    """Only the requested settings are described, or all for null; an unknown name is left out."""
    topic = probe.topic()
    names = sorted(each.name for each in _describe(probe, topic, ["segment.ms", "bogus", "retention.ms"]).configs)
    probe.expect("the settings", names, ["retention.ms", "segment.ms"])
    every = len(_describe(probe, topic, None).configs)
    probe.require(every > 10, "all of a topic's settings", f"{every}")


@room.check("described-synonyms", "KIP-226", "DescribeConfigs 1+")
def described_synonyms(probe: Probe) -> None:
    """Synonyms are returned only on request, the effective one first."""
    topic = probe.topic(configs={"retention.ms": "12345678"})
    (plain,) = _describe(probe, topic, ["retention.ms"]).configs
    probe.expect("synonyms without a request", len(plain.synonyms), 0)
    (full,) = _describe(probe, topic, ["retention.ms"], synonyms=True).configs
    probe.require(bool(full.synonyms), "synonyms", f"{len(full.synonyms)}")
    first = full.synonyms[0]
    probe.expect("the first", (first.name, first.value, first.source), ("retention.ms", "12345678", DYNAMIC_TOPIC))


@room.check("described-unknown", "KIP-133", "DescribeConfigs")
def described_unknown(probe: Probe) -> None:
    """An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION, an invalid name INVALID_TOPIC_EXCEPTION, and an unknown
    resource type INVALID_REQUEST."""
    code = _describe(probe, probe.name()).error_code
    probe.expect_error("an unknown topic", code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    code = _describe(probe, "not a name").error_code
    probe.expect_error("an impossible topic", code, ErrorCode.INVALID_TOPIC_EXCEPTION)
    code = _describe(probe, "x", resource_type=UNKNOWN_RESOURCE).error_code
    probe.expect_error("an unknown kind", code, ErrorCode.INVALID_REQUEST)


@room.check("described-broker", "KIP-133", "DescribeConfigs")
def described_broker(probe: Probe) -> None:
    """A broker describes its own settings, without the values of sensitive ones."""
    node = min(probe.target.nodes)
    request = admin.describe_configs((BROKER, str(node)))
    (found,) = probe.ask(ApiKey.DESCRIBE_CONFIGS, request, node=node).results
    probe.expect_error("DescribeConfigs", found.error_code)
    probe.require(len(found.configs) > 10, "the broker's settings", f"{len(found.configs)}")
    told = [each.name for each in found.configs if each.is_sensitive and each.value is not None]
    probe.expect("sensitive settings with a value", told, [])


@room.check("set-and-delete", "KIP-339", "IncrementalAlterConfigs", "DescribeConfigs")
def set_and_delete(probe: Probe) -> None:
    """SET overrides a setting for a topic, DELETE removes the override, and other settings stay."""
    topic = probe.topic(configs={"segment.ms": "7777777"})
    before = _value(probe, topic, "retention.ms").value
    probe.expect_error("SET", _alter(probe, topic, (SET, "retention.ms", "12345678")))
    _becomes(probe, topic, "retention.ms", "12345678")
    probe.expect("the other setting", _value(probe, topic, "segment.ms").value, "7777777")
    probe.expect_error("DELETE", _alter(probe, topic, (DELETE, "retention.ms", None)))
    _becomes(probe, topic, "retention.ms", before)


@room.check("append-and-subtract", "KIP-339", "IncrementalAlterConfigs", "DescribeConfigs")
def append_and_subtract(probe: Probe) -> None:
    """APPEND and SUBTRACT add and remove single values of a list."""
    topic = probe.topic(configs={"cleanup.policy": "delete"})
    probe.expect_error("APPEND", _alter(probe, topic, (APPEND, "cleanup.policy", "compact")))
    _becomes(probe, topic, "cleanup.policy", "delete,compact")
    probe.expect_error("SUBTRACT", _alter(probe, topic, (SUBTRACT, "cleanup.policy", "delete")))
    _becomes(probe, topic, "cleanup.policy", "compact")


@room.check("append-to-a-number", "KIP-339", "IncrementalAlterConfigs")
def append_to_a_number(probe: Probe) -> None:
    """APPEND to a setting that is not a list gets INVALID_CONFIG."""
    code = _alter(probe, probe.topic(), (APPEND, "retention.ms", "1"))
    probe.expect_error("APPEND to retention.ms", code, ErrorCode.INVALID_CONFIG)


@room.check("refused", "KIP-339", "IncrementalAlterConfigs", "DescribeConfigs")
def refused(probe: Probe) -> None:
    """An unknown setting or an invalid value gets INVALID_CONFIG, and nothing in that request is changed."""
    topic = probe.topic(configs={"retention.ms": "12345678"})
    for bad in ((SET, "bogus", "1"), (SET, "segment.ms", "soon"), (SET, "cleanup.policy", "burn")):
        code = _alter(probe, topic, (SET, "retention.ms", "999"), bad)
        probe.expect_error(f"{bad[1]}={bad[2]}", code, ErrorCode.INVALID_CONFIG)
        probe.expect("the setting beside it", _value(probe, topic, "retention.ms").value, "12345678")


@room.check("refused-twice", "KIP-339", "IncrementalAlterConfigs")
def refused_twice(probe: Probe) -> None:
    """A setting changed twice in one request gets INVALID_REQUEST."""
    code = _alter(probe, probe.topic(), (SET, "retention.ms", "1000"), (DELETE, "retention.ms", None))
    probe.expect_error("retention.ms twice", code, ErrorCode.INVALID_REQUEST)


@room.check("refused-resource", "KIP-339", "IncrementalAlterConfigs")
def refused_resource(probe: Probe) -> None:
    """A topic that does not exist gets UNKNOWN_TOPIC_OR_PARTITION."""
    code = _alter(probe, probe.name(), (SET, "retention.ms", "1000"))
    probe.expect_error("an unknown topic", code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@room.check("validate-only", "KIP-339", "IncrementalAlterConfigs", "DescribeConfigs")
def validate_only(probe: Probe) -> None:
    """validate_only returns what would happen and changes nothing."""
    topic = probe.topic(configs={"retention.ms": "12345678"})
    probe.expect_error("a value that can be", _alter(probe, topic, (SET, "retention.ms", "1"), validate_only=True))
    code = _alter(probe, topic, (SET, "retention.ms", "soon"), validate_only=True)
    probe.expect_error("one that cannot", code, ErrorCode.INVALID_CONFIG)
    probe.expect("the value", _value(probe, topic, "retention.ms").value, "12345678")


@room.check("replaced", "KIP-133", "AlterConfigs", "DescribeConfigs")
def replaced(probe: Probe) -> None:
    """AlterConfigs replaces all of a topic's own settings: those it does not name are removed."""
    topic = probe.topic(configs={"retention.ms": "12345678", "segment.ms": "7777777"})
    request = admin.alter_configs((TOPIC, topic, [("segment.ms", "8888888")]))
    (answer,) = probe.ask_controller(ApiKey.ALTER_CONFIGS, request).responses
    probe.expect_error("AlterConfigs", answer.error_code)
    _becomes(probe, topic, "segment.ms", "8888888")
    source = _value(probe, topic, "retention.ms").config_source
    probe.require(source != DYNAMIC_TOPIC, "the other setting to be the topic's own no longer", f"source {source}")
