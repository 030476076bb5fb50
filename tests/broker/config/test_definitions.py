"""The declared settings, held against a table of those that Apache Kafka 4.3.1 has."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas.broker.config.definitions.ignored import ALTERABLE_KINDS, IGNORED
from barnabas.broker.config.definitions.topic import SYNONYMS
from barnabas.broker.config.names import SETTINGS, update_mode
from barnabas.broker.config.setting import Setting
from barnabas.broker.config.topic_config import TOPIC_SETTINGS
from barnabas.broker.config.values import Text, TextList, WholeNumber


class KafkaSetting(NamedTuple):
    level: str
    name: str
    type: str
    default: str
    valid: str
    internal: bool
    update_mode: str


def read_table() -> list[KafkaSetting]:
    rows = []
    for line in (Path(__file__).parent / "kafka-4.3.1-settings.txt").read_text().splitlines():
        if not line.startswith("#"):
            level, name, type_name, default, valid, internal, mode = (cell.strip() for cell in line.split("|"))
            rows.append(
                KafkaSetting(level, name, type_name, default, valid, internal == "internal", mode or "read-only")
            )
    return rows


TABLE = read_table()
BROKER_ROWS = [row for row in TABLE if row.level == "B"]
TOPIC_ROWS = [row for row in TABLE if row.level == "T"]
LEVELS = [
    pytest.param([row for row in BROKER_ROWS if row.name in SETTINGS], SETTINGS, id="broker"),
    pytest.param(TOPIC_ROWS, TOPIC_SETTINGS, id="topic"),
]

# Kafka checks these when it uses them, not by a range in the definition.
RANGE_IN_KAFKA_S_CODE = {"log.roll.ms", "log.roll.jitter.ms", "offsets.topic.compression.codec"}
# In Kafka, these belong to the authorizer, not to the broker.
AUTHORIZER_SETTINGS = {"super.users", "allow.everyone.if.no.acl.found"}
# Kafka has had them only up to 3.9.
WITH_ZOOKEEPER = {
    *("zookeeper.connect", "zookeeper.session.timeout.ms", "zookeeper.connection.timeout.ms"),
    *("leader.imbalance.per.broker.percentage", "inter.broker.protocol.version", "delegation.token.master.key"),
}
FIXED_WHILE_RUNNING = {"listeners", "listener.security.protocol.map"}


def test_every_setting_of_kafka_is_either_declared_or_ignored():
    names = {row.name for row in BROKER_ROWS}
    assert names - SETTINGS.keys() - IGNORED == set()
    assert SETTINGS.keys() & IGNORED == set()
    assert SETTINGS.keys() - names == AUTHORIZER_SETTINGS | WITH_ZOOKEEPER


def test_every_topic_setting_of_kafka_is_declared():
    assert {row.name for row in TOPIC_ROWS} == TOPIC_SETTINGS.keys()


@pytest.mark.parametrize(("rows", "settings"), LEVELS)
def test_declared_settings_are_kafka_s(rows: list[KafkaSetting], settings: dict[str, Setting[Any]]):
    declared = {}
    for row in rows:
        setting = settings[row.name]
        default = setting.default if setting.unlike_kafka is None else setting.unlike_kafka.kafka_default
        declared[row.name] = (setting.kind.type.name, setting.show(default), setting.internal)
    assert declared == {
        row.name: (row.type, None if row.default in ("-", "null") else row.default, row.internal) for row in rows
    }


@pytest.mark.parametrize(("rows", "settings"), LEVELS)
def test_numbers_have_kafka_s_ranges(rows: list[KafkaSetting], settings: dict[str, Setting[Any]]):
    declared, expected = {}, {}
    for row in rows:
        kind = settings[row.name].kind
        if isinstance(kind, WholeNumber) and row.name not in RANGE_IN_KAFKA_S_CODE:
            declared[row.name] = (kind.at_least, kind.at_most, kind.besides)
            low, _, high = row.valid.removesuffix(" or -1").strip("[]").partition(",...")
            any_number = WholeNumber(kind.type, None, None)
            expected[row.name] = (
                int(low) if low else any_number.at_least,
                int(high.strip(",")) if high else any_number.at_most,
                -1 if row.valid.endswith(" or -1") else None,
            )
    assert declared == expected


def test_ignored_settings_that_can_be_altered_have_kafka_s_types_and_ranges():
    numbers = ("INT", "LONG", "SHORT", "DOUBLE", "BOOLEAN")
    declared, expected = {}, {}
    for row in BROKER_ROWS:
        if row.name in IGNORED and row.update_mode != "read-only" and row.type in numbers:
            kind = ALTERABLE_KINDS[row.name]
            declared[row.name] = (kind.type.name, getattr(kind, "at_least", None) if row.valid else None)
            expected[row.name] = (row.type, int(row.valid.strip("[]").partition(",")[0]) if row.valid else None)
    assert declared == expected
    assert declared.keys() == ALTERABLE_KINDS.keys()


@pytest.mark.parametrize(("rows", "settings"), LEVELS)
def test_texts_have_kafka_s_choices(rows: list[KafkaSetting], settings: dict[str, Setting[Any]]):
    declared, expected = {}, {}
    for row in rows:
        kind = settings[row.name].kind
        choices, _, _ = row.valid.removeprefix("(case insensitive) ").strip("[]").partition("partitionId")
        if isinstance(kind, Text | TextList) and (kind.one_of or ", " in choices):
            declared[row.name] = {word.lower() for word in kind.one_of}
            expected[row.name] = {word.lower() for word in choices.split(", ")}
    assert declared == expected


def test_settings_can_be_altered_when_kafka_s_can():
    declared = {row.name: update_mode(row.name).value for row in BROKER_ROWS}
    expected = {row.name: "read-only" if row.name in FIXED_WHILE_RUNNING else row.update_mode for row in BROKER_ROWS}
    assert declared == expected


def test_defaults_that_differ_from_kafka_s_say_why():
    differing = {name: setting.unlike_kafka.why for name, setting in SETTINGS.items() if setting.unlike_kafka}
    assert differing.keys() == {
        "node.id",
        "process.roles",
        "listeners",
        "controller.listener.names",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "socket.listen.backlog.size",
        "log.dir",
        "group.initial.rebalance.delay.ms",
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
    }
    assert all(differing.values())


def test_every_setting_is_documented_and_its_default_is_allowed():
    for setting in [*SETTINGS.values(), *TOPIC_SETTINGS.values()]:
        assert setting.doc.endswith("."), setting.name
        if setting.default not in (None, ()):
            assert setting.parse(setting.show(setting.default)) == setting.default


def test_topic_settings_have_the_defaults_of_the_broker_s():
    for name, synonyms in SYNONYMS.items():
        given = [(SETTINGS[synonym].default, factor) for synonym, factor in synonyms]
        default, factor = next((default, factor) for default, factor in given if default is not None)
        assert TOPIC_SETTINGS[name].default == (default if factor == 1 else default * factor)
