import pytest

from broker.config import (
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


def test_deleting_what_is_not_there_is_no_error():
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


def test_all_of_a_topic_s_overrides_given_anew():
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
    assert alter_broker((SET, "sasl.enabled.mechanisms", "PLAIN")) == {"sasl.enabled.mechanisms": "PLAIN"}
    assert alter_broker((APPEND, "log.cleanup.policy", "compact")) == {"log.cleanup.policy": "delete,compact"}
    assert alter_broker((DELETE, "num.partitions", None)) == {}


def test_a_setting_without_effect_is_altered_without_effect():
    assert alter_broker((SET, "num.io.threads", "4"), cluster_wide=True) == {"num.io.threads": "4"}


@pytest.mark.parametrize(
    ("operation", "cluster_wide", "words"),
    [
        ((SET, "num.partitions", "4"), False, "num.partitions cannot be altered while the broker runs"),
        ((SET, "listeners", "PLAINTEXT://:1"), False, "listeners cannot be altered"),
        ((SET, "controller.quorum.voters", "1@h:1"), False, "controller.quorum.voters cannot be altered"),
        ((SET, "no.such.name", "1"), False, "no.such.name is not a setting"),
        ((SET, "sasl.enabled.mechanisms", "PLAIN"), True, "for one broker only"),
        ((SET, "ssl.keystore.password", "x"), False, "listener.name.<listener>.ssl.keystore.password"),
        ((SET, "listener.name.ssl.ssl.keystore.password", "x"), True, "for one broker only"),
        ((SET, "log.retention.ms", "abc"), True, "log.retention.ms is 'abc'"),
        ((SET, "log.retention.ms", "0"), True, "must be -1 or at least 1"),
        ((SET, "max.connections.per.ip", "0"), False, "max.connections.per.ip.overrides"),
        ((SET, "message.max.bytes", None), False, "message.max.bytes has no value"),
    ],
)
def test_what_a_broker_cannot_be_set_to(operation, cluster_wide, words):
    with pytest.raises(InvalidConfigRequestError) as caught:
        alter_broker(operation, cluster_wide=cluster_wide)
    assert words in str(caught.value)


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


def test_all_of_a_broker_s_overrides_given_anew():
    with pytest.raises(InvalidConfigRequestError, match="no value for"):
        replace_broker_config({"message.max.bytes": None}, BrokerConfig(), cluster_wide=False)


def test_deciding_changes_nothing():
    broker = BrokerConfig()
    alter_broker_config({}, [Operation(SET, "message.max.bytes", "5")], broker, cluster_wide=False)
    assert broker.message_max_bytes == 1048588
