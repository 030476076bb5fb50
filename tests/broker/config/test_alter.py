import pytest

from barnabas.broker.config import (
    BrokerConfig,
    InvalidConfigError,
    InvalidConfigRequestError,
    Operation,
    OperationKind,
    alter_broker_config,
    alter_topic_config,
    new_topic_config,
    replace_broker_config,
    replace_topic_config,
)

SET, DELETE, APPEND, SUBTRACT = OperationKind


def alter_topic(overrides: dict[str, str], *operations: tuple[int, str, str | None]) -> dict[str, str]:
    return alter_topic_config(overrides, [Operation(*operation) for operation in operations], BrokerConfig())


def alter_broker(*operations: tuple[int, str, str | None], cluster_wide: bool = False) -> dict[str, str]:
    return alter_broker_config({}, [Operation(*each) for each in operations], BrokerConfig(), cluster_wide=cluster_wide)


def test_set_and_delete():
    before = {"retention.ms": "1", "flush.ms": "2"}
    after = alter_topic(before, (SET, "retention.ms", "5"), (DELETE, "flush.ms", None), (SET, "segment.ms", "7"))
    assert after == {"retention.ms": "5", "segment.ms": "7"}
    assert before == {"retention.ms": "1", "flush.ms": "2"}


def test_deleting_what_does_not_exist_is_not_an_error():
    assert alter_topic({}, (DELETE, "flush.ms", None), (DELETE, "foo", "bar")) == {}


@pytest.mark.parametrize(
    ("overrides", "operation", "policy"),
    [
        ({}, (APPEND, "cleanup.policy", "compact"), "delete,compact"),
        ({}, (APPEND, "cleanup.policy", "delete"), "delete"),
        ({"cleanup.policy": "compact"}, (APPEND, "cleanup.policy", "delete,compact"), "compact,delete"),
        ({"cleanup.policy": "compact,delete"}, (SUBTRACT, "cleanup.policy", "delete"), "compact"),
        ({"cleanup.policy": "compact"}, (SUBTRACT, "cleanup.policy", "delete"), "compact"),
        ({"cleanup.policy": "compact"}, (SUBTRACT, "cleanup.policy", "compact"), ""),
    ],
)
def test_append_and_subtract(overrides, operation, policy):
    assert alter_topic(overrides, operation) == {"cleanup.policy": policy}


@pytest.mark.parametrize("kind", [APPEND, SUBTRACT])
@pytest.mark.parametrize("name", ["retention.ms", "foo"])
def test_only_lists_are_appended_to(kind, name):
    with pytest.raises(InvalidConfigError, match=f"{name} is not a list"):
        alter_topic({}, (kind, name, "1"))


@pytest.mark.parametrize(
    "operation",
    [
        (SET, "foo", "bar"),
        (SET, "retention.ms", "-5"),
        (APPEND, "cleanup.policy", "nonsense"),
        (SET, "min.compaction.lag.ms", "100"),
    ],
)
def test_what_a_topic_cannot_be_set_to(operation):
    with pytest.raises(InvalidConfigError):
        alter_topic({"max.compaction.lag.ms": "50"}, operation)


@pytest.mark.parametrize(
    "operations",
    [
        [(SET, "retention.ms", None)],
        [(APPEND, "cleanup.policy", None)],
        [(SET, "retention.ms", "1"), (SET, "retention.ms", "2")],
        [(DELETE, "retention.ms", None), (SET, "retention.ms", "2")],
        [(9, "retention.ms", "1")],
    ],
)
def test_what_makes_no_sense(operations):
    with pytest.raises(InvalidConfigRequestError):
        alter_topic({}, *operations)


def test_all_overrides_of_a_topic_are_replaced():
    broker = BrokerConfig()
    assert replace_topic_config({"retention.ms": "5"}, broker) == {"retention.ms": "5"}
    with pytest.raises(InvalidConfigError):
        replace_topic_config({"retention.ms": "x"}, broker)
    with pytest.raises(InvalidConfigRequestError, match=r"no value for retention\.ms"):
        replace_topic_config({"retention.ms": None}, broker)


def test_the_overrides_of_a_new_topic():
    broker = BrokerConfig()
    assert new_topic_config({"retention.ms": "5"}, broker) == {"retention.ms": "5"}
    with pytest.raises(InvalidConfigError, match=r"no value for retention\.ms"):
        new_topic_config({"retention.ms": None}, broker)


def test_a_broker_s_settings():
    assert alter_broker((SET, "message.max.bytes", "5")) == {"message.max.bytes": "5"}
    assert alter_broker((SET, "message.max.bytes", "5"), cluster_wide=True) == {"message.max.bytes": "5"}
    assert alter_broker((SET, "ssl.cipher.suites", "A")) == {"ssl.cipher.suites": "A"}
    assert alter_broker((APPEND, "log.cleanup.policy", "compact")) == {"log.cleanup.policy": "delete,compact"}
    assert alter_broker((DELETE, "num.partitions", None)) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.io.threads", "4"),
        ("num.replica.fetchers", "2"),
        ("leader.replication.throttled.rate", "1000"),  # kafka-reassign-partitions sets it
    ],
)
def test_a_setting_without_effect_can_be_altered(name, value):
    assert alter_broker((SET, name, value), cluster_wide=True) == {name: value}


def test_a_topic_setting_without_effect_can_be_altered():
    throttled = {"leader.replication.throttled.replicas": "0:1"}
    assert replace_topic_config(throttled, BrokerConfig()) == throttled


@pytest.mark.parametrize(
    ("operation", "cluster_wide", "words"),
    [
        ((SET, "num.partitions", "4"), False, "num.partitions cannot be altered at run-time"),
        ((SET, "listeners", "PLAINTEXT://:1"), False, "listeners cannot be altered"),
        ((SET, "controller.quorum.voters", "1@h:1"), False, "controller.quorum.voters cannot be altered"),
        ((SET, "no.such.name", "1"), False, "no.such.name is not a Kafka setting"),
        ((SET, "sasl.enabled.mechanisms", "PLAIN"), True, "for one broker only"),
        ((SET, "ssl.keystore.password", "x"), False, "listener.name.<listener>.ssl.keystore.password"),
        ((SET, "listener.name.ssl.ssl.keystore.password", "x"), True, "for one broker only"),
        ((SET, "log.retention.ms", "abc"), True, "log.retention.ms is 'abc'"),
        ((SET, "log.retention.ms", "0"), True, "must be -1 or at least 1"),
        ((SET, "max.connections.per.ip", "0"), False, "max.connections.per.ip.overrides"),
        ((SET, "message.max.bytes", None), False, "message.max.bytes has no value"),
        ((SET, "config.providers", "file"), True, "write the values themselves"),
    ],
)
def test_what_a_broker_cannot_be_set_to(operation, cluster_wide, words):
    with pytest.raises(InvalidConfigRequestError) as caught:
        alter_broker(operation, cluster_wide=cluster_wide)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.connections", "0"),
        ("max.connections.per.ip", "0"),
        ("max.connection.creation.rate", "0"),
        ("message.max.bytes", "-1"),
        ("log.cleaner.threads", "0"),
        ("log.cleaner.threads", "3"),
        ("num.recovery.threads.per.data.dir", "5"),
        ("num.replica.fetchers", "3"),
        ("num.io.threads", "0"),
        ("num.network.threads", "x"),
        ("group.coordinator.cached.buffer.max.bytes", "1"),
    ],
)
@pytest.mark.parametrize("cluster_wide", [True, False])
def test_values_that_lock_clients_out_or_break_the_broker_are_refused(name, value, cluster_wide):
    with pytest.raises(InvalidConfigRequestError, match=name):
        alter_broker((SET, name, value), cluster_wide=cluster_wide)


def test_thread_counts_change_step_by_step():
    broker = BrokerConfig({"log.cleaner.threads": "4"})
    for value in "2", "3", "8":
        replace_broker_config({"log.cleaner.threads": value}, broker, cluster_wide=False)
    for value in "1", "9":
        with pytest.raises(InvalidConfigRequestError, match="half and twice"):
            replace_broker_config({"log.cleaner.threads": value}, broker, cluster_wide=False)


def test_a_stored_value_that_is_left_out_does_not_keep_others_from_being_altered():
    stored = {"max.connections": "0"}
    broker = BrokerConfig()
    broker.set_dynamic(stored, {})
    operations = [Operation(SET, "message.max.bytes", "5")]
    altered = alter_broker_config(stored, operations, broker, cluster_wide=True)
    assert altered == {"max.connections": "0", "message.max.bytes": "5"}
    with pytest.raises(InvalidConfigRequestError):
        replace_broker_config(altered, broker, cluster_wide=True)


def test_settings_of_one_listener_can_be_altered():
    operations = (
        (SET, "listener.name.ssl.ssl.keystore.password", "x"),
        (SET, "listener.name.plaintext.max.connections", "5"),
    )
    assert len(alter_broker(*operations)) == 2


def test_alterations_are_checked_together_with_those_of_the_other_level():
    broker = BrokerConfig()
    broker.set_dynamic({"max.connections.per.ip.overrides": "127.0.0.1:5"}, {})
    assert replace_broker_config({"max.connections.per.ip": "0"}, broker, cluster_wide=False)
    broker.set_dynamic({}, {"max.connections.per.ip.overrides": "127.0.0.1:5"})
    assert replace_broker_config({"max.connections.per.ip": "0"}, broker, cluster_wide=True)
    with pytest.raises(InvalidConfigRequestError):
        replace_broker_config({"max.connections.per.ip": "0"}, broker, cluster_wide=False)


def test_all_overrides_of_a_broker_are_replaced():
    with pytest.raises(InvalidConfigRequestError, match="no value for"):
        replace_broker_config({"message.max.bytes": None}, BrokerConfig(), cluster_wide=False)


def test_deciding_changes_nothing():
    broker = BrokerConfig()
    alter_broker_config({}, [Operation(SET, "message.max.bytes", "5")], broker, cluster_wide=False)
    assert broker.message_max_bytes == 1048588
