"""Requests about settings, bad ones included, get the same answers from Apache Kafka and from Barnabas."""

import pytest

from barnabas.broker.config.names import SETTINGS
from barnabas.client.requests.admin import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from barnabas.protocol.api import ApiKey
from tests.support.admin_side_by_side import SET_BY_KAFKA, play

pytestmark = pytest.mark.java


@pytest.fixture
def brokers(administered_brokers):
    return administered_brokers


def settled(side, resource_type, name, setting, value):
    """Wait until an alteration can be seen, which in Apache Kafka may be after it was answered."""
    while True:
        (result,) = side.ask(ApiKey.DESCRIBE_CONFIGS, describe_configs((resource_type, name, [setting])), 4).results
        if [entry.value for entry in result.configs] == [value]:
            return


RESOURCES = [
    *((TOPIC, name) for name in ("one", "configured", "unknown", "", "a b", "x" * 250)),
    *((BROKER, name) for name in ("1", "01", "2", "-1", "x", "1.0")),
    *((BROKER_LOGGER, name) for name in ("", "2", "x")),
    *((CLIENT_METRICS, name) for name in ("", "metrics")),
    *((GROUP, name) for name in ("",)),
    *((number, "x") for number in (0, 1, 3, 64, -1, 127)),
]
# Kafka has hundreds more settings; these are some of each kind.
SOME_SETTINGS = [
    *("retention.ms", "cleanup.policy", "compression.type", "min.cleanable.dirty.ratio", "preallocate", "flush.ms"),
    *("log.retention.ms", "log.retention.hours", "log.segment.bytes", "num.partitions", "ssl.keystore.password"),
    *("message.max.bytes", "log.cleaner.threads", "bogus", "interval.ms"),
]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: f"{resource[0]} {resource[1][:10]}")
def test_settings_are_described(brokers, resource):
    for version in range(1, 5):
        play(
            brokers,
            ApiKey.DESCRIBE_CONFIGS,
            version,
            describe_configs((*resource, SOME_SETTINGS)),
            describe_configs((*resource, SOME_SETTINGS), synonyms=True, documentation=version >= 3),
        )


def test_all_settings_of_topics_are_described(brokers):
    for version in range(1, 5):
        for request in (
            describe_configs((TOPIC, "configured")),
            describe_configs((TOPIC, "one", []), (TOPIC, "one"), synonyms=True),
            describe_configs(
                (TOPIC, "one", ["bogus"]), (TOPIC, "compacted"), synonyms=True, documentation=version >= 3
            ),
        ):
            play(brokers, ApiKey.DESCRIBE_CONFIGS, version, request)


def test_every_setting_of_a_broker_is_described_as_kafka_describes_it(brokers):
    """All settings that Barnabas has, except for values that are specific to it."""
    own = {name for name, setting in SETTINGS.items() if setting.unlike_kafka}
    own |= {"listeners", "advertised.listeners", "log.dir", "log.dirs", "node.id", "broker.id", "process.roles"}
    own |= {"controller.listener.names", "listener.security.protocol.map", SET_BY_KAFKA}
    # In Kafka, these are not the broker's but its authorizer's.
    own |= {"super.users", "allow.everyone.if.no.acl.found"}
    names = [name for name in SETTINGS if name not in own]

    def scenario(side):
        (result,) = side.ask(ApiKey.DESCRIBE_CONFIGS, describe_configs((BROKER, "1", names), synonyms=True), 4).results
        yield from sorted(result.configs, key=lambda entry: entry.name)

    brokers.play(scenario)


ALTERATIONS = {
    "an unknown setting": [("bogus", "1")],
    "a setting without a name": [("", "1")],
    "a setting without a value": [("retention.ms", None)],
    "a setting twice": [("retention.ms", "1"), ("retention.ms", "2")],
    "a setting that is not a number": [("retention.ms", "soon")],
    "a setting that is too small": [("segment.bytes", "1")],
    "one of two that cannot be": [("retention.ms", "1"), ("segment.bytes", "1")],
    "settings that contradict one another": [("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1")],
    "nothing": [],
    "something that can be": [("retention.ms", "1000")],
}
ALTERED_RESOURCES = [
    *((TOPIC, name) for name in ("one", "unknown", "", "a b")),
    *((BROKER, name) for name in ("2", "x")),
    *((BROKER_LOGGER, name) for name in ("", "2")),
    *((number, "x") for number in (0, 3, 64)),
]


@pytest.mark.parametrize("case", ALTERATIONS)
def test_alterations_that_are_only_validated(brokers, case):
    configs = ALTERATIONS[case]
    operations = [(SET, name, value) for name, value in configs]
    for resource in ALTERED_RESOURCES:
        for version in range(2):
            request = incremental_alter_configs((*resource, operations), validate_only=True)
            play(brokers, ApiKey.INCREMENTAL_ALTER_CONFIGS, version, request)
        for version in range(3):
            play(brokers, ApiKey.ALTER_CONFIGS, version, alter_configs((*resource, configs), validate_only=True))


NOT_ALTERED = {
    "no value to set": [(TOPIC, "one", [(SET, "retention.ms", None)])],
    "no value to append": [(TOPIC, "one", [(APPEND, "cleanup.policy", None)])],
    "appending to what is no list": [(TOPIC, "one", [(APPEND, "retention.ms", "1")])],
    "subtracting from what is no list": [(TOPIC, "one", [(SUBTRACT, "retention.ms", "1")])],
    "appending what cannot be": [(TOPIC, "one", [(APPEND, "cleanup.policy", "bogus")])],
    "a setting set and deleted": [(TOPIC, "one", [(SET, "retention.ms", "1"), (DELETE, "retention.ms", None)])],
    "a resource twice": [(TOPIC, "one", [(SET, "flush.ms", "1")]), (TOPIC, "one", [(SET, "flush.ms", "2")])],
    "deleting what is not set": [(TOPIC, "one", [(DELETE, "retention.ms", None), (DELETE, "bogus", None)])],
    "subtracting what is not there": [(TOPIC, "one", [(SUBTRACT, "leader.replication.throttled.replicas", "1:1")])],
    "a setting that stays as it is": [(BROKER, "1", [(SET, "num.partitions", "5")])],
    "deleting a setting that stays as it is": [(BROKER, "1", [(DELETE, "num.partitions", None)])],
    "a setting that stays as it is everywhere": [(BROKER, "", [(SET, "num.partitions", "5")])],
    "a setting of one broker for all": [(BROKER, "", [(SET, "ssl.client.auth", "none")])],
    "a broker's setting that is no number": [(BROKER, "1", [(SET, "log.retention.ms", "soon")])],
    "a broker's setting that cannot be": [(BROKER, "1", [(SET, "log.retention.ms", "0")])],
    "a broker's setting that is too small": [(BROKER, "", [(SET, "log.segment.bytes", "1")])],
    "a thread count that is more than doubled": [(BROKER, "1", [(SET, "log.cleaner.threads", "3")])],
    "no resources": [],
}
LOCKING_OUT = [
    *(("max.connections", "0"), ("max.connections.per.ip", "0"), ("max.connection.creation.rate", "0")),
    *(("message.max.bytes", "-1"), ("log.cleaner.threads", "0"), ("num.io.threads", "0"), ("num.io.threads", "")),
    *(("log.segment.bytes", "-1"), ("log.cleaner.dedupe.buffer.size", "0"), ("log.local.retention.ms", "-3")),
    *(("remote.fetch.max.wait.ms", "99999999999"), ("follower.fetch.last.tiered.offset.enable", "perhaps")),
]


@pytest.mark.parametrize("case", NOT_ALTERED)
def test_alterations_that_change_nothing(brokers, case):
    for version in range(2):
        play(brokers, ApiKey.INCREMENTAL_ALTER_CONFIGS, version, incremental_alter_configs(*NOT_ALTERED[case]))


@pytest.mark.parametrize("setting", LOCKING_OUT, ids="=".join)
def test_values_that_would_break_a_broker(brokers, setting):
    for broker_id in "1", "":
        request = incremental_alter_configs((BROKER, broker_id, [(SET, *setting)]))
        play(brokers, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)


def test_a_topics_settings_are_altered_step_by_step(brokers):
    steps = [
        ([(SET, "cleanup.policy", "compact"), (SET, "retention.ms", "2000")], "compact"),
        ([(APPEND, "cleanup.policy", "delete")], "compact,delete"),
        ([(APPEND, "cleanup.policy", "delete,compact")], "compact,delete"),
        ([(SUBTRACT, "cleanup.policy", "compact")], "delete"),
        ([(SUBTRACT, "cleanup.policy", "delete")], ""),
        ([(DELETE, "cleanup.policy", None)], "delete"),
        ([(APPEND, "cleanup.policy", "compact")], "delete,compact"),
    ]
    names = ["cleanup.policy", "retention.ms"]

    def scenario(side):
        side.create_topic("altered")
        for operations, value in steps:
            yield side.ask(
                ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs((TOPIC, "altered", operations)), 1
            )
            settled(side, TOPIC, "altered", "cleanup.policy", value)
            yield side.ask(ApiKey.DESCRIBE_CONFIGS, describe_configs((TOPIC, "altered", names), synonyms=True), 4)
        yield side.ask(ApiKey.ALTER_CONFIGS, alter_configs((TOPIC, "altered", [("flush.ms", "5")])), 2)
        settled(side, TOPIC, "altered", "flush.ms", "5")
        yield side.ask(
            ApiKey.DESCRIBE_CONFIGS, describe_configs((TOPIC, "altered", [*names, "flush.ms"]), synonyms=True), 4
        )

    brokers.play(scenario)


def test_one_resource_that_is_refused_does_not_keep_the_others_back(brokers):
    def scenario(side):
        yield side.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            incremental_alter_configs(
                (TOPIC, "one", [(SET, "flush.ms", "soon")]), (TOPIC, "three", [(SET, "flush.ms", "5000")])
            ),
            1,
        )
        settled(side, TOPIC, "three", "flush.ms", "5000")
        yield side.ask(ApiKey.DESCRIBE_CONFIGS, describe_configs((TOPIC, "one", ["flush.ms"])), 4)

    brokers.play(scenario)


def test_a_brokers_settings_are_altered(brokers):
    """For this broker, for all of them, and back again; its topics follow."""
    name = "log.retention.ms"
    steps = [
        ("1", [(SET, name, "1234567")], "1234567"),
        ("", [(SET, name, "7654321")], "1234567"),
        ("1", [(DELETE, name, None)], "7654321"),
        ("", [(DELETE, name, None)], None),
    ]
    asked = [(BROKER, "1", [name]), (BROKER, "", [name]), (TOPIC, "one", ["retention.ms"])]

    def scenario(side):
        for whose, operations, value in steps:
            yield side.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs((BROKER, whose, operations)), 1)
            settled(side, BROKER, "1", name, value)
            settled(side, TOPIC, "one", "retention.ms", value or "86400000")
            if whose == "":  # a broker's own value may be visible before the cluster's
                while bool(side.ask(ApiKey.DESCRIBE_CONFIGS, describe_configs(asked[1]), 4).results[0].configs) != bool(
                    value
                ):
                    pass
            yield side.ask(ApiKey.DESCRIBE_CONFIGS, describe_configs(*asked, synonyms=True), 4)

    brokers.play(scenario)


def test_a_brokers_settings_are_replaced(brokers):
    def scenario(side):
        yield side.ask(ApiKey.ALTER_CONFIGS, alter_configs((BROKER, "1", [("log.flush.interval.ms", "9000")])), 2)
        settled(side, TOPIC, "one", "flush.ms", "9000")
        yield side.ask(ApiKey.ALTER_CONFIGS, alter_configs((BROKER, "1", [])), 2)
        settled(side, BROKER, "1", "log.flush.interval.ms", None)
        yield side.ask(
            ApiKey.DESCRIBE_CONFIGS, describe_configs((BROKER, "1", ["log.flush.interval.ms"]), synonyms=True), 4
        )

    brokers.play(scenario)


# --- ListConfigResources ---


@pytest.mark.parametrize(
    "types", [[BROKER], [BROKER_LOGGER], [BROKER, BROKER_LOGGER, BROKER], [CLIENT_METRICS], [GROUP], [99], [BROKER, 0]]
)
def test_resources_are_listed(brokers, types):
    play(brokers, ApiKey.LIST_CONFIG_RESOURCES, 1, list_config_resources(*types))


def test_topics_are_listed(brokers):
    def scenario(side):
        for types in ([TOPIC], [], [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP]):
            listed = side.ask(ApiKey.LIST_CONFIG_RESOURCES, list_config_resources(*types), 1)
            listed.config_resources = [
                resource
                for resource in listed.config_resources
                if resource.resource_type != TOPIC or resource.resource_name in ("one", "three", "compacted")
            ]
            yield listed

    brokers.play(scenario)
    play(brokers, ApiKey.LIST_CONFIG_RESOURCES, 0, list_config_resources())
