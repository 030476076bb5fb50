import pytest

from barnabas.broker.config import BrokerConfig, ConfigSource, InvalidConfigError, Operation, alter_group_config
from barnabas.broker.config.group_config import check_group_config, describe_group, duration_ms


def test_a_group_has_what_its_broker_says():
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
        ("share.record.lock.duration.ms", "14999"),
        ("share.delivery.count.limit", "11"),
        ("share.partition.max.record.locks", "99"),
        ("share.isolation.level", "serializable"),
        ("share.renew.acknowledge.enable", "perhaps"),
        ("share.auto.offset.reset", "none"),
        ("share.auto.offset.reset", "by_duration"),
        ("share.auto.offset.reset", "by_duration:P"),
        ("share.auto.offset.reset", "by_duration:PT"),
        ("share.auto.offset.reset", "by_duration:-PT1S"),
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


@pytest.mark.parametrize(
    ("reset", "ms"),
    [
        ("latest", None),
        ("by_duration:PT1S", 1000),
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
        ("by_duration:pt0.001s", 1),
        ("by_duration:PT1H-1M", 3_540_000),
    ],
)
def test_where_a_share_group_begins(reset, ms):
    check_group_config({"share.auto.offset.reset": reset}, BrokerConfig())
    assert duration_ms(reset) == ms


def test_some_settings_are_of_groups_alone():
    entries = {
        entry.name: entry for entry in describe_group({"share.isolation.level": "read_committed"}, BrokerConfig())
    }
    reset, level = entries["share.auto.offset.reset"], entries["share.isolation.level"]
    assert (reset.value, reset.source) == ("latest", ConfigSource.DEFAULT_CONFIG)
    assert (level.value, level.source) == ("read_committed", ConfigSource.GROUP_CONFIG)
    assert [synonym.name for synonym in level.synonyms] == ["share.isolation.level"] * 2
