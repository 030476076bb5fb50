import pytest

from barnabas.broker.config import BrokerConfig, ConfigSource, InvalidConfigError, Operation, alter_group_config
from barnabas.broker.config.group_config import check_group_config, describe_group


def test_a_group_has_its_brokers_settings():
    broker = BrokerConfig({"group.consumer.session.timeout.ms": "50000"})
    entries = {entry.name: entry for entry in describe_group({}, broker)}
    session = entries["consumer.session.timeout.ms"]
    assert (session.value, session.source) == ("50000", ConfigSource.STATIC_BROKER_CONFIG)
    assert [synonym.name for synonym in session.synonyms] == ["group.consumer.session.timeout.ms"] * 2
    assert entries["consumer.heartbeat.interval.ms"].source is ConfigSource.DEFAULT_CONFIG


def test_unless_something_was_set_for_it():
    (entry,) = describe_group(
        {"consumer.session.timeout.ms": "50000"}, BrokerConfig(), ["consumer.session.timeout.ms", "bogus"]
    )
    assert (entry.value, entry.source) == ("50000", ConfigSource.GROUP_CONFIG)
    assert [synonym.value for synonym in entry.synonyms] == ["50000", "45000"]


def test_single_settings_are_set_and_deleted():
    broker = BrokerConfig()
    altered = alter_group_config({}, [Operation(0, "consumer.session.timeout.ms", "50000")], broker)
    assert altered == {"consumer.session.timeout.ms": "50000"}
    assert alter_group_config(altered, [Operation(1, "consumer.session.timeout.ms")], broker) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("consumer.session.timeout.ms", "44999"),
        ("consumer.session.timeout.ms", "60001"),
        ("consumer.session.timeout.ms", "many"),
        ("consumer.heartbeat.interval.ms", "4999"),
        ("consumer.assignment.interval.ms", "15001"),
        ("streams.session.timeout.ms", "60001"),
        ("streams.num.standby.replicas", "3"),
        ("bogus", "1"),
    ],
)
def test_what_is_refused(name, value):
    with pytest.raises(InvalidConfigError):
        check_group_config({name: value}, BrokerConfig())


def test_a_session_is_longer_than_the_interval_between_heartbeats():
    broker = BrokerConfig({"group.consumer.min.session.timeout.ms": "5000"})
    with pytest.raises(InvalidConfigError, match="larger than"):
        check_group_config({"consumer.session.timeout.ms": "5000"}, broker)
